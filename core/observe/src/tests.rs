mod subtrees;

use super::Observer;
use minerva_model::{
    DeviceId, DeviceSample, FindingKind, IoCounters, IoSignals, Nanos, ObserveSettings, Sample, TenantId, TenantIo,
    WaitCounters,
};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const MEGABYTE: u64 = 1_000_000;

fn reads(bytes: u64, ops: u64) -> IoCounters {
    IoCounters { read_bytes: bytes, read_ops: ops, ..IoCounters::default() }
}

fn disk(counters: IoCounters) -> DeviceSample {
    DeviceSample { device: DISK, counters, wait: WaitCounters::default(), busy_ns: 0, in_flight: 0, flushes: 0 }
}

fn row(tenant: u64, counters: IoCounters) -> TenantIo {
    TenantIo { tenant: TenantId(tenant), device: DISK, counters, wait: None, served_ns: None }
}

fn sample(disk_counters: IoCounters, rows: &[(u64, IoCounters)]) -> Sample {
    Sample {
        devices: vec![disk(disk_counters)],
        io: rows.iter().map(|(tenant, counters)| row(*tenant, *counters)).collect(),
        ..Sample::default()
    }
}

fn observer() -> Observer {
    let mut observer = Observer::default();
    observer.configure(&ObserveSettings::default());
    observer
}

#[test]
fn the_first_sample_gives_nothing_and_the_second_the_difference() {
    let mut observer = observer();
    let (signals, findings) = observer.signals(Nanos::from_secs(10), &sample(reads(100, 10), &[(1, reads(60, 6))]));
    assert!(signals.devices.is_empty() && signals.io.is_empty() && findings.is_empty());

    let later = sample(reads(300, 20), &[(1, reads(160, 11))]);
    let (signals, findings) = observer.signals(Nanos::from_millis(12_500), &later);
    assert!(findings.is_empty());
    assert_eq!(signals.devices[0].elapsed, Nanos::from_millis(2_500));
    assert_eq!(signals.devices[0].transferred, reads(200, 10));
    assert_eq!(signals.devices[0].contention, 1);
    assert_eq!(signals.devices[0].unattributed_bytes, 100);
    assert_eq!(signals.io[0].transferred, reads(100, 5));
    assert_eq!(signals.io[0].bytes_per_second(), 40.0);
}

#[test]
fn a_pair_that_was_not_read_has_a_difference_over_both_slices() {
    let mut observer = observer();
    observer.signals(Nanos::from_secs(1), &sample(reads(0, 0), &[(1, reads(10, 1)), (2, reads(10, 1))]));
    let (signals, _) = observer.signals(Nanos::from_secs(2), &sample(reads(50, 5), &[(2, reads(30, 3))]));
    assert_eq!(signals.io.len(), 1);
    let (signals, _) =
        observer.signals(Nanos::from_secs(3), &sample(reads(90, 9), &[(1, reads(70, 7)), (2, reads(30, 3))]));
    assert_eq!((signals.io[0].elapsed, signals.io[0].transferred), (Nanos::from_secs(2), reads(60, 6)));
    assert_eq!((signals.io[1].elapsed, signals.io[1].transferred), (Nanos::from_secs(1), reads(0, 0)));
    assert_eq!(signals.devices[0].contention, 1, "an idle tenant does not contend");
}

#[test]
fn a_newcomer_counts_from_zero_and_one_that_only_came_into_view_does_not() {
    let mut observer = observer();
    observer.signals(Nanos::from_secs(1), &sample(reads(0, 0), &[]));
    let rows = [(1, reads(20 * MEGABYTE, 20)), (2, reads(9_000 * MEGABYTE, 9_000))];
    let (signals, findings) = observer.signals(Nanos::from_secs(2), &sample(reads(21 * MEGABYTE, 21), &rows));
    assert!(findings.is_empty());
    assert_eq!(signals.io.len(), 1);
    assert_eq!((signals.io[0].tenant, signals.io[0].transferred), (TenantId(1), reads(20 * MEGABYTE, 20)));
    assert_eq!(signals.io[0].elapsed, Nanos::SECOND);
}

#[test]
fn counters_that_begin_again_are_one_finding_and_their_new_value_the_difference() {
    let mut observer = observer();
    let before = [(1, reads(500, 50)), (2, reads(700, 70))];
    observer.signals(Nanos::from_secs(1), &sample(reads(9_000, 900), &before));
    let after = [(1, reads(100, 1)), (2, reads(200, 2))];
    let (signals, findings) = observer.signals(Nanos::from_secs(2), &sample(reads(9_300, 903), &after));
    assert_eq!(signals.io[0].transferred, reads(100, 1));
    assert_eq!(signals.io[1].transferred, reads(200, 2));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].kind, FindingKind::CounterReset);
    expect_test::expect!["counter-reset: the counters of 2 tenant rows went backwards. They count from zero again, as after a change of the elevator; at most one slice of use is lost. Nothing is to be done."].assert_eq(&findings[0].to_string());
}

#[test]
fn a_sample_without_length_is_passed_over_and_nothing_is_lost() {
    let mut observer = observer();
    observer.signals(Nanos::from_secs(5), &sample(reads(0, 0), &[(1, reads(0, 0))]));
    for instant in [Nanos::from_secs(5), Nanos::from_secs(4), Nanos::ZERO] {
        let (signals, _) = observer.signals(instant, &sample(reads(40, 4), &[(1, reads(40, 4))]));
        assert!(signals.io.is_empty() && signals.devices.is_empty());
    }
    let (signals, _) = observer.signals(Nanos::from_secs(6), &sample(reads(50, 5), &[(1, reads(50, 5))]));
    assert_eq!(signals.io[0].transferred, reads(50, 5));
}

#[test]
fn latency_is_the_mean_of_the_requests_and_busy_time_never_above_the_slice() {
    let mut observer = observer();
    let mut first = sample(reads(0, 0), &[(1, reads(0, 0))]);
    first.io[0].wait = Some(WaitCounters::default());
    observer.signals(Nanos::from_secs(1), &first);
    let mut second = sample(reads(80, 4), &[(1, reads(80, 4))]);
    second.devices[0].wait = WaitCounters { read_ns: 40_000, write_ns: 0 };
    second.devices[0].busy_ns = 1_100_000_000;
    second.io[0].wait = Some(WaitCounters { read_ns: 20_000, write_ns: 0 });
    let (signals, _) = observer.signals(Nanos::from_secs(2), &second);
    assert_eq!(signals.devices[0].busy_permille, 1_000);
    assert_eq!(signals.devices[0].read_latency, Some(Nanos(10_000)));
    assert_eq!(signals.devices[0].write_latency, None);
    assert_eq!(signals.io[0].latency, Some(Nanos(5_000)));
}

/// Parts of a second, in percent, of tenants that did this on a disk which was busy for `busy_ms` of it.
fn disk_parts(rotational: bool, busy_ms: u64, rows: &[TenantIo]) -> Vec<u64> {
    let mut observer = observer();
    observer.device_seen(DISK, rotational);
    let nothing: Vec<(u64, IoCounters)> = rows.iter().map(|row| (row.tenant.0, reads(0, 0))).collect();
    let mut before = sample(reads(0, 0), &nothing);
    before.io.iter_mut().zip(rows).for_each(|(before, row)| before.served_ns = row.served_ns.map(|_| 0));
    observer.signals(Nanos::from_secs(1), &before);
    let all = rows.iter().fold(reads(0, 0), |all, row| {
        reads(all.read_bytes + row.counters.read_bytes, all.read_ops + row.counters.read_ops)
    });
    let mut after = Sample { io: rows.to_vec(), ..sample(all, &[]) };
    after.devices[0].busy_ns = busy_ms * 1_000_000;
    let (signals, _) = observer.signals(Nanos::from_secs(2), &after);
    signals.io.iter().map(|io| (100.0 * io.disk_part()).round() as u64).collect()
}

#[test]
fn disk_time_follows_from_requests_sizes_and_the_kind_of_disk() {
    let ops = |tenant, ops: u64, bytes_each: u64| row(tenant, reads(ops * bytes_each, ops));
    let [random, scanner, other] = [ops(1, 60, 4096), ops(2, 40, 262_144), ops(3, 40, 262_144)];
    // A disk with arms reads 60 times 4 KiB at random in about 0.76 s, and 20 MB of two scanners in about 0.22.
    assert_eq!(disk_parts(true, 1_000, &[random, scanner, other]), [77, 11, 11]);
    // What was measured is shared out, be it more or less.
    assert_eq!(disk_parts(true, 500, &[random, scanner, other]), [34, 8, 8]);
    // Without arms a request is a request.
    assert_eq!(disk_parts(false, 1_000, &[ops(1, 10_000, 4096), ops(2, 1_600, 262_144)]), [35, 65]);
    // Nobody has more than there was: 5,000 small requests that went on where they were cannot have cost a seek each.
    assert_eq!(disk_parts(true, 1_000, &[ops(1, 5_000, 4096), ops(2, 100, 262_144)]), [78, 22]);
    // The kernel's own figure counts where it gives one.
    let by_kernel = |row: TenantIo, ms: u64| TenantIo { served_ns: Some(ms * 1_000_000), ..row };
    assert_eq!(disk_parts(true, 1_000, &[by_kernel(random, 300), by_kernel(scanner, 600)]), [33, 67]);
    // Where it does not say for how long the disk was busy, the estimate stands.
    assert_eq!(disk_parts(true, 0, &[ops(1, 20, 4096)]), [25]);
}

#[test]
fn what_no_tenant_did_is_no_tenants_disk_time() {
    let mut observer = observer();
    observer.device_seen(DISK, true);
    observer.signals(Nanos::from_secs(1), &sample(reads(0, 0), &[(1, reads(0, 0))]));
    let mut after = sample(reads(50 * 4096, 50), &[(1, reads(10 * 4096, 10))]);
    after.devices[0].busy_ns = 1_000_000_000;
    let (signals, _) = observer.signals(Nanos::from_secs(2), &after);
    assert_eq!(signals.io[0].disk_time.as_millis_f64().round(), 200.0);
}

#[test]
fn a_tenant_cannot_teach_that_its_requests_are_cheap() {
    let mut observer = observer();
    observer.device_seen(DISK, true);
    let (mut all, mut own, mut scanner) = (reads(0, 0), reads(0, 0), reads(0, 0));
    let mut parts = Vec::new();
    for second in 1..=120_u64 {
        // For a minute it is alone and reads 4 KiB after 4 KiB, then here and there beside a scanner.
        let (small, large) = if second <= 60 { (3_000, 0) } else { (60, 60) };
        (own.read_ops, own.read_bytes) = (own.read_ops + small, own.read_bytes + small * 4096);
        (scanner.read_ops, scanner.read_bytes) = (scanner.read_ops + large, scanner.read_bytes + large * 262_144);
        all.read_ops += small + large;
        all.read_bytes += small * 4096 + large * 262_144;
        let mut sample = sample(all, &[(1, own), (2, scanner)]);
        sample.devices[0].busy_ns = second * 1_000_000_000;
        let (signals, _) = observer.signals(Nanos::from_secs(second), &sample);
        parts.push(signals.io.first().map_or(0.0, IoSignals::disk_part));
    }
    assert!(parts[5..60].iter().all(|part| *part > 0.99), "alone all of it: {parts:?}");
    assert!(parts[60..].iter().all(|part| *part > 0.75), "three quarters at the least: {parts:?}");
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut observer = observer();
    observer.signals(Nanos::from_secs(1), &sample(reads(0, 0), &[(1, reads(5, 1)), (2, reads(5, 1))]));
    observer.tenant_gone(TenantId(1));
    observer.tenant_gone(TenantId(77));
    assert_eq!(observer.pairs.len(), 1);
    observer.device_gone(DISK);
    assert!(observer.pairs.is_empty() && observer.devices.is_empty());
}

fn any_counters() -> impl Strategy<Value = IoCounters> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
        |(read_bytes, write_bytes, read_ops, write_ops)| IoCounters { read_bytes, write_bytes, read_ops, write_ops },
    )
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let devices = proptest::collection::vec((0..3u32, any_counters(), any::<u64>()), 0..4);
    let rows = proptest::collection::vec((0..4u64, 0..3u32, any_counters()), 0..8);
    (devices, rows).prop_map(|(devices, rows)| Sample {
        devices: devices
            .into_iter()
            .map(|(minor, counters, busy_ns)| DeviceSample {
                device: DeviceId { major: 8, minor },
                counters,
                wait: WaitCounters { read_ns: busy_ns, write_ns: busy_ns / 3 },
                busy_ns,
                in_flight: 0,
                flushes: 0,
            })
            .collect(),
        io: rows
            .into_iter()
            .map(|(tenant, minor, counters)| TenantIo {
                tenant: TenantId(tenant),
                device: DeviceId { major: 8, minor },
                counters,
                wait: Some(WaitCounters { read_ns: counters.read_bytes, write_ns: 1 }),
                served_ns: (counters.read_ops % 2 == 0).then_some(counters.write_bytes),
            })
            .collect(),
        ..Sample::default()
    })
}

proptest! {
    /// Whatever the kernel prints, in whatever order: no panic, sorted rows, sane parts.
    #[test]
    fn any_counters_give_sane_signals(samples in proptest::collection::vec((0..5u64, any_sample()), 1..8)) {
        let mut observer = observer();
        for (seconds, sample) in samples {
            let (signals, findings) = observer.signals(Nanos::from_secs(seconds), &sample);
            prop_assert!(findings.len() <= 1);
            prop_assert!(signals.io.windows(2).all(|w| (w[0].tenant, w[0].device) < (w[1].tenant, w[1].device)));
            prop_assert!(signals.devices.windows(2).all(|w| w[0].device < w[1].device));
            for device in &signals.devices {
                let active = signals.io.iter().filter(|io| io.device == device.device && io.active).count();
                prop_assert_eq!(device.contention as usize, active);
                prop_assert!(device.busy_permille <= 1_000);
                prop_assert!(device.elapsed > Nanos::ZERO);
            }
            prop_assert!(signals.io.iter().all(|io| io.elapsed > Nanos::ZERO));
            for device in &signals.devices {
                let parts = signals.io.iter().filter(|io| io.device == device.device).map(IoSignals::disk_part);
                let (sum, count) = parts.fold((0.0, 0), |(sum, count), part| (sum + part, count + 1));
                let busy = if device.busy_permille == 0 { 1.0 } else { f64::from(device.busy_permille) / 1e3 };
                prop_assert!(sum <= busy + 1e-9 * f64::from(count), "{} of {}", sum, busy);
            }
        }
    }

    /// Counters that only rise are accounted to the byte, whichever slices could not be read.
    #[test]
    fn nothing_is_lost_or_counted_twice(steps in proptest::collection::vec((0..1_000u64, any::<bool>()), 2..30)) {
        let mut observer = observer();
        let (mut total, mut first_read, mut last_read, mut seen) = (0, None, 0, 0);
        for (index, (step, read)) in steps.iter().enumerate() {
            total += step;
            let rows = if *read { vec![(1, reads(1 << 40 | total, total))] } else { Vec::new() };
            let (signals, _) = observer.signals(Nanos::from_secs(index as u64 + 1), &sample(reads(total, total), &rows));
            if *read {
                first_read.get_or_insert(total);
                last_read = total;
            }
            seen += signals.io.iter().map(|io| io.transferred.read_bytes).sum::<u64>();
        }
        prop_assert_eq!(seen, last_read - first_read.unwrap_or(last_read));
    }
}
