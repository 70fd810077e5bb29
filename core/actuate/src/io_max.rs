//! Back end `max`: `io.max` of cgroup v2, `MAJ:MIN rbps=N wbps=N riops=N wiops=N` with `max` for no limit.
//!
//! Only `rbps` and `wbps` are written: the kernel leaves keys that a write does not name, so an operator's limits in requests a
//! second stay, and his limits in bytes stay as upper bounds of ours ([`crate::knob::Setting::within`]). A disk without a line
//! has no limit; when all four are `max` the kernel drops the line.

use crate::setting::{Reading, Setting};
use minerva_model::DeviceId;

/// What to write.
pub(crate) fn render(device: DeviceId, read: Option<u64>, write: Option<u64>) -> String {
    let number = |limit: Option<u64>| limit.map_or_else(|| "max".to_owned(), |limit| limit.to_string());
    format!("{device} rbps={} wbps={}", number(read), number(write))
}

/// What the file says of `device`.
pub(crate) fn parse(device: DeviceId, text: &str) -> Reading {
    let (mut read, mut write) = (None, None);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next().is_none_or(|id| id.parse() != Ok(device)) {
            continue;
        }
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "rbps" => read = value.parse().ok(),
                "wbps" => write = value.parse().ok(),
                _ => {}
            }
        }
    }
    Reading { setting: Setting::Limits { read, write }, undo: render(device, read, write) }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::setting::Setting;
    use minerva_model::DeviceId;

    #[test]
    fn lines_are_read_and_undone() {
        let table = [
            ("", None, None, "8:16 rbps=max wbps=max"),
            ("8:16 rbps=2097152 wbps=max riops=max wiops=120\n", Some(2_097_152), None, "8:16 rbps=2097152 wbps=max"),
            ("8:0 rbps=1 wbps=1 riops=max wiops=max\n", None, None, "8:16 rbps=max wbps=max"),
            ("8:16 rbps=max wbps=5 torn\n", None, Some(5), "8:16 rbps=max wbps=5"),
        ];
        for (text, read, write, undo) in table {
            let reading = parse(DeviceId { major: 8, minor: 16 }, text);
            assert_eq!(reading.setting, Setting::Limits { read, write }, "{text:?}");
            assert_eq!(reading.undo, undo);
        }
    }

    #[test]
    fn an_operators_own_limit_stays_in_force() {
        let ours = Setting::Limits { read: Some(10), write: None };
        let theirs = Setting::Limits { read: Some(4), write: Some(9) };
        assert_eq!(ours.within(&theirs), theirs);
        assert_eq!(ours.within(&Setting::Limits { read: None, write: None }), ours);
    }
}
