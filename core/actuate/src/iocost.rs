//! Back end `iocost`: `io.weight` of cgroup v2, 1 to 10,000, obeyed for disks that `io.cost.qos` of the root group enables.
//! Shares and weights are the same scale.
//!
//! `MAJ:MIN default` unsets a weight. `io.cost.qos` shows a line only for disks whose iocost was ever touched; a write may
//! name only the keys that change, so enabling and disabling leave the operator's latency targets as they are.

use crate::setting::{Reading, Setting};
use crate::weight_file;
use minerva_model::DeviceId;

/// More is refused with ERANGE.
pub(crate) const WEIGHT_MAX: u32 = 10_000;

/// What `io.weight` says of `device`.
pub(crate) fn parse(device: DeviceId, text: &str) -> Reading {
    weight_file::parse(device, text)
}

/// What to write to `io.cost.qos`.
pub(crate) fn render_enable(device: DeviceId, enabled: bool) -> String {
    format!("{device} enable={}", u8::from(enabled))
}

/// What `io.cost.qos` says of `device`; a disk that it does not name is not enabled.
pub(crate) fn parse_qos(device: DeviceId, text: &str) -> Reading {
    let mut enabled = false;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if words.next().is_some_and(|id| id.parse() == Ok(device)) {
            enabled = words.any(|word| word == "enable=1");
        }
    }
    Reading { setting: Setting::IoCost(enabled), undo: render_enable(device, enabled) }
}

#[cfg(test)]
mod tests {
    use super::{parse, parse_qos, render_enable};
    use crate::setting::Setting;
    use minerva_model::DeviceId;

    const DEVICE: DeviceId = DeviceId { major: 254, minor: 0 };

    #[test]
    fn weights_are_read() {
        assert_eq!(parse(DEVICE, "default 100\n254:0 2500\n").setting, Setting::Weight(2500));
        assert_eq!(parse(DEVICE, "default 100\n").undo, "254:0 default");
    }

    #[test]
    fn enabling_is_read_and_undone() {
        let on = "8:0 enable=0 ctrl=auto\n254:0 enable=1 ctrl=auto rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 \
                  max=10000.00\n";
        assert_eq!(
            (parse_qos(DEVICE, on).setting, parse_qos(DEVICE, on).undo.as_str()),
            (Setting::IoCost(true), "254:0 enable=1")
        );
        for off in ["", "8:0 enable=1 ctrl=auto\n", "254:0 enable=0 ctrl=auto\n", "254:0\n"] {
            assert_eq!(parse_qos(DEVICE, off).undo, "254:0 enable=0", "{off:?}");
        }
        assert_eq!(render_enable(DEVICE, true), "254:0 enable=1");
    }
}
