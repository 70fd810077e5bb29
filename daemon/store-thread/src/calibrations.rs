//! What was measured of disks while their background work rested.

use crate::Memory;
use minerva_model::DiskCalibration;

impl Memory {
    /// What was measured of a disk of this identity, if it ever was.
    pub fn calibration(&self, disk: &str) -> Option<DiskCalibration> {
        self.read("calibrations of disks", |store| store.calibration(disk)).flatten()
    }
}
