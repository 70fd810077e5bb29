//! A disk under way, made of its profile.

use crate::device::{DeviceModel, SECTOR_BYTES};
use crate::hdd::Hdd;
use crate::profile::{Media, Profile};
use crate::ssd::Ssd;

impl Profile {
    /// Makes a disk of it. `seed` places the platters' first angle and the stalls of an SSD; the same seed gives the
    /// same disk. `capacity_override` is rounded down to whole sectors, at least one.
    pub fn build(&self, capacity_override: Option<u64>, seed: u64) -> Box<dyn DeviceModel> {
        let sectors = (capacity_override.unwrap_or(self.capacity_bytes) / SECTOR_BYTES).max(1);
        match &self.media {
            Media::Hdd(hdd) => Box::new(Hdd::new(self, hdd, sectors, seed)),
            Media::Ssd(ssd) => Box::new(Ssd::new(self, ssd, sectors, seed)),
        }
    }
}
