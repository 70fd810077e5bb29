//! What was measured of disks while their background work rested.

use crate::Memory;
use minerva_model::{DeviceId, DiskCalibration};

impl Memory {
    /// What was measured of a disk, if it ever was and that is known to be of it.
    pub fn calibration(&self, device: DeviceId) -> Option<DiskCalibration> {
        let disk = self.disks.identity_of(device)?;
        self.read("calibrations of disks", |store| store.calibration(&disk)).flatten()
    }

    /// Keeps what was measured of a disk, which is told by `tell`; false if it would not be known again, so that nothing is kept.
    pub fn keep_calibration(
        &self,
        device: DeviceId,
        calibration: DiskCalibration,
        tell: impl FnOnce(Result<(), String>) + Send + 'static,
    ) -> bool {
        let Some(disk) = self.disks.identity_of(device) else { return false };
        self.questions().look_then(move |store| store.keep_calibration(&disk, &calibration), tell);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, MemorySettings, StoreMetrics};
    use minerva_model::{DeviceId, DiskCalibration, Nanos};
    use std::sync::mpsc::channel;

    #[test]
    fn what_a_disk_serves_is_kept_and_read_only_where_it_is_known_to_be_of_that_disk() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = MemorySettings {
            state_dir: directory.path().to_owned(),
            boot_id: "a boot".to_owned(),
            ledger_keep: Nanos::from_secs(86_400),
        };
        let mut memory = Memory::start(settings, StoreMetrics::default(), Box::new(|| {})).expect("a thread");
        let disk = |minor| DeviceId { major: 8, minor };
        for (minor, identity) in [(0, ""), (1, ""), (2, "wwid:1"), (3, "wwid:1"), (4, "wwid:2")] {
            memory.disk_seen(disk(minor), identity.to_owned());
        }
        let measured = |bytes_per_busy_second| DiskCalibration {
            bytes_per_busy_second,
            requests_per_second: 100.0,
            busy_seconds: 30.0,
        };
        for minor in 0..5 {
            let (sender, kept) = channel();
            let tell = move |kept: Result<(), String>| sender.send(kept).expect("who waits");
            let is_kept = memory.keep_calibration(disk(minor), measured(f64::from(minor)), tell);
            assert_eq!((is_kept, kept.recv().ok()), (minor == 4, (minor == 4).then_some(Ok(()))), "{minor}");
        }
        memory.look_for_store();
        let read = |memory: &Memory| [0, 1, 2, 3, 4].map(|minor| memory.calibration(disk(minor)));
        assert_eq!(read(&memory), [None, None, None, None, Some(measured(4.0))]);
        // A disk that says the same as another that was measured.
        memory.disk_seen(disk(0), "wwid:2".to_owned());
        assert_eq!(read(&memory), [None; 5]);
        memory.close();
    }
}
