//! What the built-in disks do, in virtual time: rates, hits, queues, flushes.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use minerva_model::Nanos;
use minerva_sim_device::{
    Completion, DeviceModel, Kind, Layout, Media, Profile, Request, Seek, Serpentine, Sparing, WriteBack, Zone, profile,
};

const PAGE: u32 = 4096;

/// A fixed stream of pseudo-random numbers (a linear congruential generator), so that every run asks the same.
struct Stream(u64);

impl Stream {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn request(tag: u64, kind: Kind, offset_bytes: u64, length_bytes: u32) -> Request {
    Request { tag, kind, offset_bytes, length_bytes }
}

fn wait(device: &mut dyn DeviceModel) -> Completion {
    let at = device.next_completion().expect("a request is under way");
    device.complete(at).expect("it is due")
}

/// Submits one request at a time; answers the seconds it all took.
fn one_by_one(device: &mut dyn DeviceModel, requests: impl Iterator<Item = Request>) -> f64 {
    let mut now = Nanos::ZERO;
    for request in requests {
        device.submit(now, request);
        now = wait(device).at;
    }
    now.as_secs_f64()
}

/// Keeps `depth` random page reads at the disk; answers reads a second.
fn random_reads_per_second(profile: &Profile, depth: u64, count: u64) -> f64 {
    let mut device = profile.build(None, 7);
    let pages = device.capacity_bytes() / u64::from(PAGE);
    let mut stream = Stream(11);
    let mut read = |tag| request(tag, Kind::Read, stream.below(pages) * u64::from(PAGE), PAGE);
    let mut now = Nanos::ZERO;
    for tag in 0..depth {
        device.submit(now, read(tag));
    }
    for tag in depth..count {
        now = wait(device.as_mut()).at;
        device.submit(now, read(tag));
    }
    (count - depth) as f64 / now.as_secs_f64()
}

fn sequential_mb_per_s(profile: &Profile, kind: Kind, from: u64, block: u32) -> f64 {
    let mut device = profile.build(None, 7);
    let count = (64 << 20) / u64::from(block);
    let seconds =
        one_by_one(device.as_mut(), (0..count).map(|tag| request(tag, kind, from + tag * u64::from(block), block)));
    (count * u64::from(block)) as f64 / 1e6 / seconds
}

fn desktop() -> Profile {
    profile("sata7200-80g").expect("built in")
}

fn with_cache(change: impl FnOnce(&mut minerva_sim_device::CacheProfile)) -> Profile {
    let mut profile = desktop();
    if let Media::Hdd(hdd) = &mut profile.media {
        change(&mut hdd.cache);
    }
    profile
}

#[test]
fn random_reads_come_at_the_rate_of_seek_latency_and_overhead() {
    // 0.3 + 8.9 + 4.17 + 0.08 ms; a random page shares no cylinder with the one before.
    let rate = random_reads_per_second(&desktop(), 1, 4000);
    assert!((72.0..77.0).contains(&rate), "{rate} a second");
    let server = random_reads_per_second(&profile("sas10k-300g").expect("built in"), 1, 4000);
    assert!((138.0..147.0).contains(&server), "{server} a second");
}

#[test]
fn a_sequential_reader_gets_the_zone_s_speed_at_any_block_size() {
    let profile = desktop();
    let inner = profile.capacity_bytes - (80 << 20);
    for block in [PAGE, 64 << 10, 1 << 20] {
        let outer_speed = sequential_mb_per_s(&profile, Kind::Read, 0, block);
        let inner_speed = sequential_mb_per_s(&profile, Kind::Read, inner, block);
        assert!((outer_speed / 61.0 - 1.0).abs() < 0.05 || block == PAGE, "{block}: outer {outer_speed} MB/s");
        assert!((inner_speed / 29.0 - 1.0).abs() < 0.05 || block == PAGE, "{block}: inner {inner_speed} MB/s");
    }
    // A page at a time the electronics' 0.3 ms are the limit.
    let pages = sequential_mb_per_s(&profile, Kind::Read, 0, PAGE);
    assert!((pages / (4096.0 / 313.7) - 1.0).abs() < 0.05, "{pages} MB/s");
}

#[test]
fn without_read_ahead_a_sequential_reader_loses_a_turn_each_time() {
    let profile = with_cache(|cache| cache.segments = 0);
    let speed = sequential_mb_per_s(&profile, Kind::Read, 0, 64 << 10);
    assert!(speed < 8.0, "{speed} MB/s");
}

#[test]
fn two_sequential_readers_lose_to_seeks() {
    let mut device = desktop().build(None, 7);
    let half = device.capacity_bytes() / 2;
    let block = 64 << 10;
    let seconds = one_by_one(
        device.as_mut(),
        (0..512u64).map(|tag| request(tag, Kind::Read, (tag % 2) * half + tag / 2 * block, block as u32)),
    );
    let speed = (512 * block) as f64 / 1e6 / seconds;
    assert!(speed < 61.0 / 2.5, "{speed} MB/s");
    assert!(device.statistics().seeks > 200, "{:?}", device.statistics());
}

#[test]
fn a_queue_at_the_disk_raises_the_rate_of_random_reads() {
    let (one, four, many) = (
        random_reads_per_second(&desktop(), 1, 2000),
        random_reads_per_second(&desktop(), 4, 2000),
        random_reads_per_second(&desktop(), 32, 2000),
    );
    assert!(four > 1.2 * one && many > 1.3 * four, "{one}, {four}, {many} a second");
}

#[test]
fn nobody_is_passed_over_for_longer_than_the_bound() {
    let profile = desktop();
    let Media::Hdd(hdd) = &profile.media else { unreachable!() };
    let mut device = profile.build(None, 7);
    let far = device.capacity_bytes() - u64::from(PAGE);
    let mut stream = Stream(5);
    device.submit(Nanos::ZERO, request(0, Kind::Read, 0, PAGE));
    device.submit(Nanos::ZERO, request(1, Kind::Read, far, PAGE));
    // Near requests keep coming: each would win against the far one.
    for tag in 2..2000 {
        device.submit(device.next_completion().expect("busy"), request(tag, Kind::Read, stream.below(64) * 4096, PAGE));
        let done = wait(device.as_mut());
        if done.tag == 1 {
            assert!(done.at.as_millis_f64() < hdd.age_ms_max + 60.0, "{}", done.at);
            return;
        }
    }
    panic!("the far request never came");
}

#[test]
fn write_back_hides_the_medium_until_a_flush() {
    let on = with_cache(|cache| cache.write_back = WriteBack::On);
    let mut device = on.build(None, 7);
    let mut stream = Stream(3);
    let mut now = Nanos::ZERO;
    for tag in 0..8 {
        device.submit(now, request(tag, Kind::Write, stream.below(1 << 20) * u64::from(PAGE), PAGE));
        let done = wait(device.as_mut());
        assert!(done.at.since(now).as_millis_f64() < 1.0, "{}", done.at.since(now));
        now = done.at;
    }
    device.submit(now, request(8, Kind::Flush, 0, 0));
    let flushed = wait(device.as_mut()).at.since(now);
    // Eight random writes of about 14 ms each, less what the disk did by itself.
    assert!(flushed.as_millis_f64() > 40.0, "{flushed}");
    let now = Nanos(now.0 + flushed.0);
    device.submit(now, request(9, Kind::Flush, 0, 0));
    assert!(wait(device.as_mut()).at.since(now).as_millis_f64() < 1.0, "there is nothing left to flush");

    let mut through = desktop().build(None, 7);
    through.submit(Nanos::ZERO, request(0, Kind::Write, 1 << 30, PAGE));
    assert!(wait(through.as_mut()).at.as_millis_f64() > 1.0);
}

#[test]
fn an_idle_disk_writes_back_by_itself() {
    let on = with_cache(|cache| cache.write_back = WriteBack::On);
    let mut device = on.build(None, 7);
    device.submit(Nanos::ZERO, request(0, Kind::Write, 1 << 30, PAGE));
    wait(device.as_mut());
    let later = Nanos::SECOND;
    device.submit(later, request(1, Kind::Flush, 0, 0));
    assert!(wait(device.as_mut()).at.since(later).as_millis_f64() < 1.0);
}

#[test]
fn a_flush_is_a_line_that_requests_do_not_cross() {
    let mut device = desktop().build(None, 7);
    for (tag, kind) in [(0, Kind::Read), (1, Kind::Read), (2, Kind::Flush), (3, Kind::Read), (4, Kind::Read)] {
        device.submit(Nanos::ZERO, request(tag, kind, tag * 7_000_000_000 / 512 * 512, PAGE));
    }
    let order: Vec<u64> = (0..5).map(|_| wait(device.as_mut()).tag).collect();
    let flush = order.iter().position(|tag| *tag == 2).expect("done");
    assert!(order[..flush].contains(&0) && order[..flush].contains(&1), "{order:?}");
}

#[test]
fn a_read_of_what_was_just_read_needs_no_arm() {
    let mut device = desktop().build(None, 7);
    device.submit(Nanos::ZERO, request(0, Kind::Read, 1 << 30, PAGE));
    let first = wait(device.as_mut()).at;
    device.submit(first, request(1, Kind::Read, 1 << 30, PAGE));
    let again = wait(device.as_mut()).at.since(first);
    assert!(again.as_millis_f64() < 0.35, "{again}");
    // A write makes the copy stale, but what was written may be read from the buffer.
    let now = Nanos(first.0 + again.0);
    device.submit(now, request(2, Kind::Write, 1 << 30, PAGE));
    let written = wait(device.as_mut()).at;
    device.submit(written, request(3, Kind::Read, 1 << 30, PAGE));
    assert!(wait(device.as_mut()).at.since(written).as_millis_f64() < 0.35);
    assert_eq!(device.statistics().cache_hits, 2);
}

#[test]
fn the_smaller_disk_has_the_same_stroke() {
    let profile = desktop();
    let small = profile.build(Some(1 << 30), 7);
    assert_eq!(small.capacity_bytes(), 1 << 30);
    let mut device = small;
    let ends = (0..400u64).map(|tag| request(tag, Kind::Read, (tag % 2) * ((1 << 30) - 8192), PAGE));
    // Every read seeks across all zones: 18 ms, half a turn and overhead, but for what the buffer holds.
    let seconds = one_by_one(device.as_mut(), ends.map(|r| Request { offset_bytes: r.offset_bytes, ..r }));
    assert!(seconds < 1.0, "the two places stay in the buffer: {seconds} s");
    let mut uncached = with_cache(|cache| cache.segments = 0).build(Some(1 << 30), 7);
    let ends = (0..400u64).map(|tag| request(tag, Kind::Read, (tag % 2) * ((1 << 30) - 8192), PAGE));
    let mean_ms = one_by_one(uncached.as_mut(), ends) * 1e3 / 400.0;
    assert!((18.0..28.0).contains(&mean_ms), "{mean_ms} ms");
}

#[test]
fn the_ssd_scales_with_depth_and_stalls_only_for_writes() {
    let ssd = profile("sata-ssd").expect("built in");
    let (one, deep) = (random_reads_per_second(&ssd, 1, 4000), random_reads_per_second(&ssd, 32, 20_000));
    assert!((7_000.0..10_000.0).contains(&one), "{one} a second");
    assert!((60_000.0..100_000.0).contains(&deep), "{deep} a second");
    let speed = sequential_mb_per_s(&ssd, Kind::Read, 0, 1 << 20);
    assert!((400.0..520.0).contains(&speed), "{speed} MB/s");
    let mut device = ssd.build(None, 3);
    one_by_one(device.as_mut(), (0..2048u64).map(|tag| request(tag, Kind::Write, tag << 20, 1 << 20)));
    let stalls = device.statistics().stalls;
    assert!((2..=20).contains(&stalls), "2 GiB at one stall in 256 MiB: {stalls}");
    let (mut a, mut b) = (ssd.build(None, 3), ssd.build(None, 3));
    let writes = || (0..512u64).map(|tag| request(tag, Kind::Write, tag << 20, 1 << 20));
    assert_eq!(one_by_one(a.as_mut(), writes()).to_bits(), one_by_one(b.as_mut(), writes()).to_bits());
}

/// The sectors before the first one of a zone may have no address.
#[test]
fn what_passes_the_head_before_the_first_sector_of_a_disk_is_not_kept() {
    for unused_front_sectors in [0, 100] {
        let mut profile = with_cache(|cache| cache.keeps_passing_sectors = true);
        profile.capacity_bytes = 1 << 30;
        if let Media::Hdd(hdd) = &mut profile.media {
            let zone = Zone { last_cylinder: 10_000, sectors_per_track: 500, unused_front_sectors, ..Zone::default() };
            hdd.layout = Layout::Table { sparing: Sparing::None, serpentine: Serpentine::No, zones: vec![zone] };
        }
        // From wherever the disk stands: for some the head comes to the track well before the sector.
        for seed in 0..16 {
            let mut device = profile.build(None, seed);
            device.submit(Nanos::ZERO, request(0, Kind::Read, 512, 512));
            let first = wait(device.as_mut()).at;
            device.submit(first, request(1, Kind::Read, 0, PAGE));
            assert_eq!(wait(device.as_mut()).tag, 1);
        }
    }
}

#[test]
fn a_table_curve_serves_a_linear_layout() {
    let mut profile = desktop();
    if let Media::Hdd(hdd) = &mut profile.media {
        hdd.seek = Seek::Table(vec![(1, 1.0), (1000, 3.0), (50_000, 12.0)]);
    }
    assert_eq!(profile.problem(), None);
    assert!(random_reads_per_second(&profile, 1, 500) > 50.0);
}

#[test]
fn an_ssds_cable_may_be_slower_for_writes_than_for_reads() {
    let mut ssd = profile("sata-ssd").expect("built in");
    if let Media::Ssd(flash) = &mut ssd.media {
        flash.collection = None;
    }
    let rate = |ssd: &Profile, kind| sequential_mb_per_s(ssd, kind, 0, 1 << 20);
    let [reads, writes] = [Kind::Read, Kind::Write].map(|kind| rate(&ssd, kind));
    ssd.interface_write_mb_per_s = Some(20.0);
    assert!((rate(&ssd, Kind::Read) - reads).abs() < 0.001 * reads);
    let slow = rate(&ssd, Kind::Write);
    assert!((15.0..20.0).contains(&slow), "{slow} MB/s, {writes} by the faster cable");
}
