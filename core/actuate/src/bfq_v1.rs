//! Back end `bfq-v1`: `blkio.bfq.weight_device` of cgroup v1, 1 to 1,000. A share is written as it stands.
//!
//! What Linux 6.18 does, tried by hand on a loop device:
//!
//! | written | effect |
//! |---|---|
//! | `7:0 400` | a line `7:0 400` below `default 100` |
//! | `7:0 default` | the line is gone, and its weight stays in force: this is what undoes, by way of the next row |
//! | `default 100` | sets the group's own weight anew on every disk, and removes the lines of all of them |
//! | `7:0 0`, `7:0 1001` | refused, ERANGE, nothing changed |
//! | `default 200` | refused nothing: `default` changes; `blkio.bfq.weight` shows 200 too |
//! | a disk that does not exist | refused, ENODEV |
//! | a disk that is not under BFQ | refused, EOPNOTSUPP |
//!
//! So in place of a removal the writer (`linux/actuate`, `removal`) writes the group's own weight and then the lines of the other
//! disks.
//!
//! The file shows `default 100` even while no disk is under BFQ. When the disk leaves BFQ its lines vanish from every group
//! and do not come back with BFQ, and BFQ comes back with `low_latency` 1.

use crate::setting::Reading;
use crate::weight_file;
use minerva_model::DeviceId;

/// More is refused with ERANGE.
pub(crate) const WEIGHT_MAX: u32 = 1_000;

/// What the file says of `device`.
pub(crate) fn parse(device: DeviceId, text: &str) -> Reading {
    weight_file::parse(device, text)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::setting::{Reading, Setting};
    use minerva_model::DeviceId;

    #[test]
    fn the_texts_of_linux_6_18_are_read() {
        let device = DeviceId { major: 7, minor: 0 };
        let read = |text| parse(device, text);
        let default = Reading { setting: Setting::Weight(100), undo: "7:0 default".to_owned() };
        assert_eq!(read("default 100\n"), default);
        assert_eq!(read("default 100\n7:0 400\n").setting, Setting::Weight(400));
        assert_eq!(read("default 250\n7:0 77\n").undo, "7:0 77");
        assert_eq!(Setting::Weight(400).render(device), "7:0 400");
    }
}
