//! Which disk a row is of. The kernel numbers disks anew with every boot, so histories are kept by what a disk says of itself, such
//! as its world-wide name, and by its number only where it says nothing.

use minerva_model::DeviceId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the disks that are there say of themselves. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct DiskIdentities(Arc<Mutex<BTreeMap<DeviceId, String>>>);

impl DiskIdentities {
    /// A disk is there. An empty identity says nothing. False if all that was known.
    pub fn enter(&self, device: DeviceId, identity: String) -> bool {
        self.with(|known| {
            let before = match identity.is_empty() {
                true => known.remove(&device),
                false => known.insert(device, identity),
            };
            before.as_ref() != known.get(&device)
        })
    }

    /// A disk is gone, and its number may be another's.
    pub fn strike(&self, device: DeviceId) {
        self.with(|known| known.remove(&device));
    }

    /// What a disk is known again by; nothing if it says nothing of itself, or what another that is there says too.
    pub fn identity_of(&self, device: DeviceId) -> Option<String> {
        self.with(|known| unique(known, device).map(str::to_owned))
    }

    /// What rows of a disk are kept by.
    pub(crate) fn name_of(&self, device: DeviceId) -> String {
        self.with(|known| unique(known, device).map_or_else(|| device.to_string(), str::to_owned))
    }

    /// The disk that is meant by a name, which had this number when the row was written; nothing if that disk is not there.
    ///
    /// A row that has only a number is from a time before there were names, or of a disk without one: it is taken to be of the disk of
    /// that number.
    pub(crate) fn disk_called(&self, name: &str, numbered: DeviceId) -> Option<DeviceId> {
        if name == numbered.to_string() {
            return Some(numbered);
        }
        self.with(|known| {
            let mut called = known.keys().copied().filter(|device| unique(known, *device) == Some(name));
            called.next()
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<DeviceId, String>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A disk's identity, unless another that is there has the same, as two paths to one disk do.
fn unique(known: &BTreeMap<DeviceId, String>, device: DeviceId) -> Option<&str> {
    let own = known.get(&device)?;
    let is_shared = known.iter().any(|(other, identity)| *other != device && identity == own);
    (!is_shared).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::DiskIdentities;
    use minerva_model::DeviceId;

    const A: DeviceId = DeviceId { major: 8, minor: 0 };
    const B: DeviceId = DeviceId { major: 8, minor: 16 };

    #[test]
    fn a_name_that_two_disks_have_names_neither() {
        let disks = DiskIdentities::default();
        disks.enter(A, "naa.1".to_owned());
        assert_eq!((disks.name_of(A), disks.name_of(B)), ("naa.1".to_owned(), "8:16".to_owned()));
        assert_eq!(disks.disk_called("naa.1", B), Some(A));
        disks.enter(B, "naa.1".to_owned());
        assert_eq!((disks.name_of(A), disks.name_of(B)), ("8:0".to_owned(), "8:16".to_owned()));
        assert_eq!((disks.identity_of(A), disks.identity_of(B)), (None, None));
        assert_eq!(disks.disk_called("naa.1", A), None);
        disks.strike(A);
        assert_eq!((disks.disk_called("naa.1", A), disks.disk_called("8:0", A)), (Some(B), Some(A)));
        assert_eq!(disks.identity_of(B).as_deref(), Some("naa.1"));
        disks.enter(B, String::new());
        assert_eq!(disks.identity_of(B), None);
        assert_eq!(disks.disk_called("naa.1", A), None);
    }
}
