//! What a disk is taken to deliver, slice by slice, beside what it does.

use super::{Dealer, DiskUse, HEADROOM, Use};
use minerva_model::{Nanos, TenantId};

const SECOND: DiskUse = DiskUse {
    capacity_bytes_per_second: None,
    measured_bytes_per_second: 0.0,
    busy: true,
    uncapped_bytes_per_second: 0.0,
    contention: 2,
    floor_permille: 10,
    slice: Nanos::SECOND,
    makes_room: true,
    only_if_short: false,
    forgets_peaks: true,
    keeps_both_ways_open: true,
};

/// The read caps of two readers of equal shares after as many slices of a disk that delivers so much in each, of which the first wants
/// `sparing` and the second all that it may have.
fn caps_after(disk: DiskUse, slices: u64, delivers: impl Fn(u64) -> f64, sparing: f64) -> [f64; 2] {
    let (mut dealer, mut caps) = (Dealer::default(), [f64::INFINITY; 2]);
    for slice in 1..=slices {
        let can = delivers(slice);
        let first = sparing.min(caps[0]).min(can / 2.0);
        let rates = [first, caps[1].min(can - first)];
        let uses: Vec<Use> = (0..2)
            .map(|index| Use {
                tenant: TenantId(index as u64),
                share: 100.0,
                read_bytes_per_second: rates[index],
                write_bytes_per_second: 0.0,
                request_bytes: 128e3,
            })
            .collect();
        let disk = DiskUse { measured_bytes_per_second: rates[0] + rates[1], ..disk };
        for (tenant, cap) in dealer.deal(Nanos::from_secs(slice), disk, &uses) {
            caps[tenant.0 as usize] = cap.map_or(f64::INFINITY, |cap| cap.read as f64);
        }
    }
    caps
}

#[test]
fn after_one_fast_second_caps_bind_again_within_minutes() {
    let once = |slice| if slice == 1 { 3e9 } else { 400e6 };
    let after = |disk, slices| caps_after(disk, slices, once, f64::INFINITY);
    assert!(after(SECOND, 10).iter().all(|cap| *cap > 1e9), "a pause is none");
    let bound = after(SECOND, 600);
    // Each has 200 MB/s, and an eighth more is what nobody's waiting speaks against.
    assert!(bound.iter().all(|cap| (200e6..1.05 * HEADROOM * 200e6).contains(cap)), "{bound:?}");
    let unforgotten = after(DiskUse { forgets_peaks: false, ..SECOND }, 600);
    assert!(unforgotten.iter().all(|cap| *cap > 1e9), "{unforgotten:?}");
}

#[test]
fn what_tenants_leave_under_their_caps_is_not_taken_for_what_the_disk_can_do() {
    for sparing in [1e6, 10e6, 45e6] {
        let caps = caps_after(SECOND, 3_600, |_| 100e6, sparing);
        assert!(caps[1] > 0.9 * (100e6 - sparing), "{sparing} {caps:?}");
    }
}
