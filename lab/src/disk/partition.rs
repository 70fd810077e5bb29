//! Partitions of an emulated disk: block devices of their own that the disk's elevator sees as one.

use super::Disk;
use crate::error::{At, LabError, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Of util-linux: tells the kernel of a partition, and writes nothing to the disk.
const ADDPART: &str = "addpart";
const SECTOR_BYTES: u64 = 512;
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

impl Disk {
    /// Makes partition `number` of the disk, which can have partitions, and waits until it is there. It goes with the disk.
    pub fn partition(&self, number: u32, start_bytes: u64, length_bytes: u64) -> Result<PathBuf> {
        let [start, length] = [start_bytes, length_bytes].map(|bytes| (bytes / SECTOR_BYTES).to_string());
        let output = Command::new(ADDPART).arg(self.device()).args([number.to_string(), start, length]).output();
        let output = output.at("start", ADDPART)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(LabError::BadPlan(format!("{} gets no partition {number}: {said}", self.device().display())));
        }
        let path = PathBuf::from(format!("{}p{number}", self.device().display()));
        let begun = Instant::now();
        while !path.exists() {
            if begun.elapsed() > PATIENCE {
                return Err(LabError::BadPlan(format!("{} does not come", path.display())));
            }
            std::thread::sleep(STEP);
        }
        Ok(path)
    }
}
