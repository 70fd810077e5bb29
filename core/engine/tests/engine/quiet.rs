//! Nothing is written on a disk that nobody uses, unless a decision says why.

use crate::{config, device, seen, serve_each};
use minerva_engine::Engine;
use minerva_model::{
    DeviceId, DeviceSample, Effect, Event, IoCounters, Mode, Nanos, Sample, TenantId, TenantIo, WaitCounters,
};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, proptest};
use std::collections::BTreeMap;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
/// Half of them below one group (`path`).
const TENANTS: u64 = 6;
/// Enough for whatever waits for a number of slices.
const QUIET_SLICES: u64 = 150;

/// When a tenant reads, in slices, and how much in each of them, in megabytes.
#[derive(Clone, Debug)]
struct Burst {
    tenant: u64,
    from: u64,
    slices: u64,
    megabytes: u64,
}

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let burst = (1..=TENANTS, 0..40_u64, 1..25_u64, 1..40_u64);
    let burst = burst.prop_map(|(tenant, from, slices, megabytes)| Burst { tenant, from, slices, megabytes });
    proptest::collection::vec(burst, 1..12)
}

fn read(megabytes: u64) -> IoCounters {
    IoCounters { read_bytes: megabytes * 1_000_000, read_ops: megabytes * 10, ..IoCounters::default() }
}

fn sample(totals: &BTreeMap<u64, u64>) -> Event {
    let io = totals.iter().map(|(tenant, megabytes)| TenantIo {
        tenant: TenantId(*tenant),
        device: DISK,
        counters: read(*megabytes),
        wait: None,
        served_ns: None,
    });
    let disk = DeviceSample {
        device: DISK,
        counters: read(totals.values().sum()),
        wait: WaitCounters::default(),
        busy_ns: 0,
        in_flight: 0,
        flushes: 0,
    };
    Event::Sampled(Box::new(Sample { devices: vec![disk], io: io.collect(), ..Sample::default() }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_the_last_tenant_has_stopped_nothing_is_written_without_a_decision(
        bursts in bursts(),
        stop_at_once in any::<bool>(),
    ) {
        let (mut engine, mut files) = (Engine::new(), BTreeMap::new());
        engine.handle(Nanos::SECOND, config(Mode::Enforce));
        engine.handle(Nanos::SECOND, Event::DeviceSeen(device(DISK, true)));
        (1..=TENANTS).for_each(|tenant| engine.handle(Nanos::SECOND, seen(tenant, Vec::new())));
        let mut totals: BTreeMap<u64, u64> = (1..=TENANTS).map(|tenant| (tenant, 0)).collect();
        engine.handle(Nanos::SECOND, sample(&totals));
        let ends = |burst: &Burst| burst.from + burst.slices;
        let stop = match stop_at_once {
            true => bursts.iter().map(ends).min(),
            false => bursts.iter().map(ends).max(),
        };
        let stop = stop.unwrap_or(0);
        for slice in 0..stop + QUIET_SLICES {
            let mut used = false;
            for burst in bursts.iter().filter(|burst| (burst.from..ends(burst)).contains(&slice) && slice < stop) {
                *totals.entry(burst.tenant).or_default() += burst.megabytes;
                used = true;
            }
            let now = Nanos::from_secs(2 + slice);
            engine.handle(now, sample(&totals));
            let (mut decided, mut written) = (0, Vec::new());
            serve_each(&mut engine, now, &mut files, |effect| match effect {
                Effect::Decided(_) => decided += 1,
                Effect::Write(write) => written.push(format!("{write:?}")),
                _ => {}
            });
            prop_assert!(
                used || decided > 0 || written.is_empty(),
                "slice {slice}, all stopped before {stop}: {written:?}"
            );
        }
    }
}
