//! Back end `throttle-v1`: `blkio.throttle.{read,write}_bps_device` of cgroup v1, lines `MAJ:MIN N`.
//!
//! Writing 0 removes a line, also one that is not there; the largest number means no limit and shows no line either (tried on
//! Linux 6.18). Only direct I/O and reads are charged to the tenant: buffered writes escape.

use crate::setting::{Reading, Setting};
use minerva_model::DeviceId;

/// What to write; no limit is 0.
pub(crate) fn render(device: DeviceId, limit: Option<u64>) -> String {
    format!("{device} {}", limit.unwrap_or(0))
}

/// What either file says of `device`.
pub(crate) fn parse(device: DeviceId, text: &str) -> Reading {
    let limit = text.lines().find_map(|line| {
        let (id, limit) = line.trim().split_once(' ')?;
        let limit: u64 = limit.trim().parse().ok()?;
        (id.parse() == Ok(device) && limit > 0).then_some(limit)
    });
    Reading { setting: Setting::Limit(limit), undo: render(device, limit) }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::setting::Setting;
    use minerva_model::DeviceId;

    #[test]
    fn lines_are_read_and_undone() {
        let table = [
            ("", None, "7:0 0"),
            ("7:0 1048576\n", Some(1_048_576), "7:0 1048576"),
            ("7:1 5\n", None, "7:0 0"),
            ("7:0 much\n7:0 9\n", Some(9), "7:0 9"),
        ];
        for (text, limit, undo) in table {
            let reading = parse(DeviceId { major: 7, minor: 0 }, text);
            assert_eq!((reading.setting, reading.undo.as_str()), (Setting::Limit(limit), undo), "{text:?}");
        }
    }
}
