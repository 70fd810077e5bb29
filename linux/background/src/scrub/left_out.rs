//! Devices that a scrub leaves out, kept for the workers after this one: whichever ends names all of them.

use crate::directories::{QueueDirectories, read, replace};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// By number, with why.
#[derive(Debug)]
pub(super) struct LeftOut {
    path: PathBuf,
    devices: BTreeMap<u64, String>,
}

impl LeftOut {
    /// What workers left out that came up to a device. What they left out from there on is tried again.
    pub(super) fn before(place: &QueueDirectories, device: u64) -> Self {
        let path = place.state.join("left-out");
        let mut devices: BTreeMap<u64, String> = read(&path).unwrap_or_default();
        let known = devices.len();
        devices.retain(|left_out, _| *left_out < device);
        if devices.len() < known {
            // Else a worker after this one would take it for what this one left out.
            let _ = replace(&path, &devices, true);
        }
        Self { path, devices }
    }

    pub(super) fn has(&self, device: u64) -> bool {
        self.devices.contains_key(&device)
    }

    /// One more. On the disk before the worker goes on to the next device, where another would begin after a loss of power.
    pub(super) fn add(&mut self, device: u64, why: &str) {
        self.devices.insert(device, why.to_owned());
        // Where it cannot be kept this worker still says it at its end.
        let _ = replace(&self.path, &self.devices, true);
    }

    /// For people.
    pub(super) fn told(&self) -> Vec<String> {
        self.devices.iter().map(|(device, why)| format!("device {device}, which {why}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::LeftOut;
    use crate::spec::Kind;
    use crate::worker::Worker;

    #[test]
    fn what_workers_left_out_is_known_to_those_that_go_on_behind_it_and_not_to_one_that_begins_anew() {
        let root = tempfile::tempdir().unwrap();
        let place = Worker::of(root.path(), Kind::BtrfsScrub, root.path()).assignment().place.clone();
        let mut first = LeftOut::before(&place, 1);
        first.add(1, "is read-only");
        first.add(3, "is not there");
        // It is resumed after it had failed, and its runtime directory is gone with a reboot.
        place.forget_run();
        std::fs::remove_dir_all(&place.runtime).unwrap();
        let told = |device| LeftOut::before(&place, device).told();
        assert_eq!(told(4), ["device 1, which is read-only", "device 3, which is not there"]);
        assert_eq!(told(3), ["device 1, which is read-only"], "that one is tried again");
        assert_eq!(told(4), ["device 1, which is read-only"], "and was not left out");
        assert_eq!(told(1), [""; 0]);
    }
}
