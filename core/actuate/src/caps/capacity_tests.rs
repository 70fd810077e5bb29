//! What a disk is taken to deliver where nobody says it, slice by slice, beside what tenants want of it.

use super::{Dealer, DiskUse, Use};
use minerva_model::{Nanos, TenantId};

const DISK: DiskUse = DiskUse {
    capacity_bytes_per_second: None,
    measured_bytes_per_second: 0.0,
    busy: true,
    uncapped_bytes_per_second: 0.0,
    contention: 2,
    floor_permille: 10,
    slice: Nanos::SECOND,
    makes_room: true,
    only_if_short: true,
    keeps_both_ways_open: true,
};

/// What the second of two readers may read in a second at last, of which in each slice each wants so much and `delivers` is the most that both
/// get.
fn cap_of_second(shares: [f64; 2], delivers: f64, wants: impl IntoIterator<Item = [f64; 2]>) -> f64 {
    let (mut dealer, mut caps) = (Dealer::default(), [f64::INFINITY; 2]);
    for (slice, [first, second]) in (1..).zip(wants) {
        let first = first.min(caps[0]).min(delivers);
        let rates = [first, second.min(caps[1]).min(delivers - first)];
        let uses = [0, 1].map(|index| Use {
            tenant: TenantId(index as u64),
            share: shares[index],
            read_bytes_per_second: rates[index],
            write_bytes_per_second: 0.0,
            request_bytes: 128e3,
        });
        let disk = DiskUse { measured_bytes_per_second: rates[0] + rates[1], ..DISK };
        for (tenant, cap) in dealer.deal(Nanos::from_secs(slice), disk, &uses) {
            caps[tenant.0 as usize] = cap.map_or(f64::INFINITY, |cap| cap.read as f64);
        }
    }
    caps[1]
}

/// The disk is always busy: one request in flight is enough for that.
#[test]
fn what_tenants_want_for_an_hour_is_not_taken_for_what_the_disk_can_do() {
    let fast = [3e9; 2];
    for sparing in [1e6, 50e6, 400e6] {
        let wants = |slice| match slice {
            0 => fast,
            1..3_600 => [sparing, 40e6],
            _ => [sparing, 3e9],
        };
        let cap = cap_of_second([100.0, 5.0], 3e9, (0..3_660).map(wants));
        assert!(cap > 1e9, "{sparing} {cap}");
    }
}

#[test]
fn what_tenants_leave_under_their_caps_is_not_taken_for_what_the_disk_can_do() {
    for sparing in [1e6, 10e6, 45e6] {
        let cap = cap_of_second([100.0; 2], 100e6, (0..3_600).map(|_| [sparing, 1e9]));
        assert!(cap > 0.9 * (100e6 - sparing), "{sparing} {cap}");
    }
}
