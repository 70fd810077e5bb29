//! The form that all three weight files share (cgroup-v2.rst, `io.weight`): a line `default N`, then lines `MAJ:MIN W`.
//! Older kernels show a bare `N` for the default. Lines of another form are skipped.

use crate::setting::{Reading, Setting, WEIGHT_DEFAULT};
use minerva_model::DeviceId;

/// `MAJ:MIN W`.
pub(crate) fn render(device: DeviceId, weight: u32) -> String {
    format!("{device} {weight}")
}

/// The weight that holds for `device`: its own line, else the default's.
pub(crate) fn parse(device: DeviceId, text: &str) -> Reading {
    let mut default = WEIGHT_DEFAULT;
    let mut own = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("default"), Some(weight), None) => default = weight.parse().unwrap_or(default),
            (Some(weight), None, None) => default = weight.parse().unwrap_or(default),
            (Some(id), Some(weight), None) if id.parse() == Ok(device) => own = weight.parse().ok().or(own),
            _ => {}
        }
    }
    let undo = match own {
        Some(weight) => render(device, weight),
        None => format!("{device} default"),
    };
    Reading { setting: Setting::Weight(own.unwrap_or(default)), undo }
}
