//! Free space of disks, looked at by a thread of its own: a file system that does not answer delays nobody else.

use minerva_linux_observe::{Roots, free_bytes_by_disk};
use minerva_model::{DeviceId, DeviceSpace, Sample};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// From one look to the next: several in each bin of ten minutes.
const PERIOD: Duration = Duration::from_secs(60);

type Found = Arc<Mutex<BTreeMap<DeviceId, u64>>>;

/// What the thread found since it was last asked.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace {
    found: Found,
}

impl FreeSpace {
    /// Begins to look. Where no thread can be had nothing is found, and a warning says so.
    pub(crate) fn watch(roots: Roots) -> Self {
        let watch = Self::default();
        let found = Arc::downgrade(&watch.found);
        let look = move || {
            // Ends with the daemon's interest.
            while let Some(found) = found.upgrade() {
                if let Ok(free) = free_bytes_by_disk(&roots) {
                    *found.lock().unwrap_or_else(PoisonError::into_inner) = free;
                }
                drop(found);
                std::thread::sleep(PERIOD);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("free-space".to_owned()).spawn(look) {
            tracing::warn!(%error, "free space is not watched");
        }
        watch
    }

    /// Adds what was found since the last time to a sample.
    pub(crate) fn add_to(&self, sample: &mut Sample) {
        // Held by the thread for no longer than it takes to put a map there.
        let found = std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
        for (device, free) in found {
            match sample.spaces.binary_search_by_key(&device, |space| space.device) {
                Ok(index) => sample.spaces[index].free_bytes = Some(free),
                Err(index) => {
                    let space = DeviceSpace { device, discarded_bytes: None, free_bytes: Some(free) };
                    sample.spaces.insert(index, space);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FreeSpace;
    use minerva_model::{DeviceId, DeviceSpace, Sample};

    #[test]
    fn what_was_found_is_told_once_and_in_order() {
        let watch = FreeSpace::default();
        let disk = |minor| DeviceId { major: 8, minor };
        watch.found.lock().expect("not poisoned").extend([(disk(0), 5), (disk(2), 7)]);
        let discards = DeviceSpace { device: disk(2), discarded_bytes: Some(1), free_bytes: None };
        let mut sample = Sample { spaces: vec![discards], ..Sample::default() };
        watch.add_to(&mut sample);
        let rows: Vec<_> =
            sample.spaces.iter().map(|row| (row.device.minor, row.discarded_bytes, row.free_bytes)).collect();
        assert_eq!(rows, [(0, None, Some(5)), (2, Some(1), Some(7))]);
        let mut next = Sample::default();
        watch.add_to(&mut next);
        assert!(next.spaces.is_empty());
    }
}
