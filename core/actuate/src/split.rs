//! A cap of bytes, split between reads and writes.
//!
//! It is split as the tenant used them, with [`OTHER_WAY_PERMILLE`] kept for the other way. Of a small cap that is next to nothing, and
//! whoever waits for the other way waits long: a file system's commit for the writes of a tenant that reads, and with it all that commit
//! there. So neither way is below [`DEALT_BYTES_MIN`], and the way that was used less is not below [`OTHER_WAY_BYTES`] where that is no
//! more than a hundredth of what the disk delivers (the setting `caps_keep_both_ways_open`).

use crate::tenant_use::{Cap, Use};

/// No cap that is dealt is below this, whatever the floor: one 64 KiB request a second.
pub(crate) const DEALT_BYTES_MIN: f64 = 65_536.0;
/// Part of a cap that stays open for the way (reads, writes) that the tenant did not use, so that its first request there does
/// not wait a slice.
const OTHER_WAY_PERMILLE: f64 = 50.0;
/// The way that was used less lets one request of the largest size pass in a second.
const OTHER_WAY_BYTES: f64 = 1_048_576.0;
/// Unless that is more than this part of the disk.
const OTHER_WAY_PART: f64 = 0.01;

/// The cap of `bytes` a second in two ways. `capacity` is what the disk delivers, where both ways have a least size.
pub(crate) fn split(one: &Use, bytes: f64, capacity: Option<f64>) -> Cap {
    let reads = if one.rate() > 0.0 { one.read_bytes_per_second / one.rate() } else { 0.5 };
    let other_way = OTHER_WAY_PERMILLE / 1e3;
    let read = bytes * (other_way + (1.0 - 2.0 * other_way) * reads);
    let (mut read, mut write) = (read, bytes - read);
    if let Some(capacity) = capacity {
        let least = (OTHER_WAY_PART * capacity).clamp(DEALT_BYTES_MIN, OTHER_WAY_BYTES);
        let less_used = if reads < 0.5 { &mut read } else { &mut write };
        *less_used = less_used.max(least);
        (read, write) = (read.max(DEALT_BYTES_MIN), write.max(DEALT_BYTES_MIN));
    }
    Cap { read: read as u64, write: write as u64 }
}

#[cfg(test)]
mod tests {
    use super::{DEALT_BYTES_MIN, split};
    use crate::tenant_use::{Cap, Use};
    use minerva_model::TenantId;

    fn user(read_bytes_per_second: f64, write_bytes_per_second: f64) -> Use {
        let (tenant, request_bytes) = (TenantId(1), 64e3);
        Use { tenant, share: 100.0, read_bytes_per_second, write_bytes_per_second, request_bytes }
    }

    #[test]
    fn neither_way_of_the_least_cap_is_closed() {
        let table = [
            // Capacity, use, and what of the least cap either way has.
            (1e9, user(50e3, 0.0), (65_536, 1_048_576)),
            (1e9, user(0.0, 50e3), (1_048_576, 65_536)),
            (20e6, user(50e3, 0.0), (65_536, 200_000)),
            (1e6, user(50e3, 0.0), (65_536, 65_536)),
            (1e6, user(30e3, 20e3), (65_536, 65_536)),
        ];
        for (capacity, one, (read, write)) in table {
            assert_eq!(split(&one, DEALT_BYTES_MIN, Some(capacity)), Cap { read, write }, "{capacity}");
        }
        // As in earlier versions: a writeback of 1 MiB waits for 320 s.
        assert_eq!(split(&user(50e3, 0.0), DEALT_BYTES_MIN, None), Cap { read: 62_259, write: 3_276 });
    }

    #[test]
    fn a_cap_of_some_size_is_split_as_it_was_used() {
        let cap = |capacity| split(&user(60e6, 20e6), 80e6, capacity);
        assert_eq!(cap(Some(100e6)), cap(None));
        assert!((57_999_999..=58_000_000).contains(&cap(None).read));
    }
}
