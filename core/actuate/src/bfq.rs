//! Back end `bfq`: `io.bfq.weight` of cgroup v2, 1 to 1,000. A share is written as it stands, as 100 is neutral on both
//! scales; `hierarchy` scales sibling sets that pass the maximum.
//!
//! Per-disk lines exist since Linux 5.4. `MAJ:MIN default` removes one, but its weight stays in force until the group's own weight
//! is written; the writer (`linux/actuate`, `removal`) does so in place of each removal. The file stands in every group but the root, whether
//! or not BFQ is in force anywhere; a line for a disk that is not under BFQ is refused with EOPNOTSUPP.

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
    use crate::setting::Setting;
    use minerva_model::DeviceId;

    #[test]
    fn every_form_a_kernel_shows_is_read() {
        let table = [
            ("default 100\n", 100, "8:0 default"),
            ("100\n", 100, "8:0 default"),
            ("default 250\n8:16 7\n", 250, "8:0 default"),
            ("default 250\n8:0 7\n8:16 9\n", 7, "8:0 7"),
            ("8:0 7\n", 7, "8:0 7"),
            ("", 100, "8:0 default"),
            ("default many\n8:0 few\nsome other line here\n8:0\n", 100, "8:0 default"),
        ];
        for (text, weight, undo) in table {
            let reading = parse(DeviceId { major: 8, minor: 0 }, text);
            assert_eq!((reading.setting, reading.undo.as_str()), (Setting::Weight(weight), undo), "{text:?}");
        }
    }
}
