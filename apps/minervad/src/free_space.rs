//! Free space of disks, looked at by a thread of its own: a file system that does not answer delays nobody else.

use minerva_linux_observe::{FreeSpaceAsker, FreeSpaceRound, Roots, SilentFileSystem};
use minerva_model::{DeviceId, DeviceSpace, Finding, FindingKind, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// From one look to the next: several in each bin of ten minutes.
const PERIOD: Duration = Duration::from_secs(60);
/// After so many rounds without an answer an operator should know.
const SILENT_ROUNDS: u32 = 3;

/// What the thread found since it was last asked.
#[derive(Debug, Default)]
struct Found {
    free: BTreeMap<DeviceId, u64>,
    findings: Vec<Finding>,
    /// Disks with file systems that do not answer, as the last round found them.
    silent: BTreeSet<DeviceId>,
    /// Disks that had such file systems, and have none any more.
    answering: Vec<DeviceId>,
}

impl Found {
    fn take(&mut self, round: FreeSpaceRound) {
        self.free = round.by_disk;
        self.findings.extend(round.silent.iter().filter(|silent| silent.rounds == SILENT_ROUNDS).map(finding));
        let silent = round.silent.iter().filter(|silent| silent.rounds >= SILENT_ROUNDS);
        let before = std::mem::replace(&mut self.silent, silent.map(|silent| silent.device).collect());
        self.answering.extend(before.difference(&self.silent));
    }
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace {
    found: Arc<Mutex<Found>>,
}

impl FreeSpace {
    /// Begins to look. Where no thread can be had nothing is found, and a warning says so.
    pub(crate) fn watch(roots: Roots) -> Self {
        let watch = Self::default();
        let found = Arc::downgrade(&watch.found);
        let mut asker = FreeSpaceAsker::default();
        // Ends with the daemon's interest, which is held only while something is put there.
        let look = move || {
            while found.strong_count() > 0 {
                if let (Ok(round), Some(found)) = (asker.round(&roots), found.upgrade()) {
                    found.lock().unwrap_or_else(PoisonError::into_inner).take(round);
                }
                std::thread::sleep(PERIOD);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("free-space".to_owned()).spawn(look) {
            tracing::warn!(%error, "free space is not watched");
        }
        watch
    }

    /// File systems of which it was found since the last time that they do not answer.
    pub(crate) fn silent(&self) -> Vec<Finding> {
        std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner).findings)
    }

    /// Disks of which it was found since the last time that all their file systems answer again.
    pub(crate) fn answering(&self) -> Vec<DeviceId> {
        std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner).answering)
    }

    /// Adds what was found since the last time to a sample.
    pub(crate) fn add_to(&self, sample: &mut Sample) {
        // Held by the thread for no longer than it takes to put a map there.
        let found = std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner).free);
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

fn finding(silent: &SilentFileSystem) -> Finding {
    let SilentFileSystem { mount_point, device, .. } = silent;
    let message = format!(
        "the file system at {mount_point} has not said for {SILENT_ROUNDS} minutes how much space is free; the free space of its disk is \
         unknown until it does; see in the kernel's log whether its disk is gone"
    );
    Finding { kind: FindingKind::FileSystemSilent, device: Some(*device), tenant: None, message }
}

#[cfg(test)]
mod tests {
    use super::{FreeSpace, SILENT_ROUNDS};
    use minerva_linux_observe::{FreeSpaceRound, SilentFileSystem};
    use minerva_model::{DeviceId, DeviceSpace, FindingKind, Sample};

    #[test]
    fn a_file_system_that_does_not_answer_for_minutes_is_found_once() {
        let watch = FreeSpace::default();
        let found = |rounds| {
            let device = DeviceId { major: 8, minor: 0 };
            let silent = vec![SilentFileSystem { mount_point: "/data".to_owned(), device, rounds }];
            let round = FreeSpaceRound { silent, ..FreeSpaceRound::default() };
            watch.found.lock().expect("not poisoned").take(round);
            watch.silent()
        };
        let findings: Vec<_> = (1..=SILENT_ROUNDS + 2).flat_map(found).collect();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].kind == FindingKind::FileSystemSilent && findings[0].message.contains("/data"));
    }

    #[test]
    fn a_disk_answers_again_once_none_of_its_file_systems_is_silent() {
        let watch = FreeSpace::default();
        let disk = |minor| DeviceId { major: 8, minor };
        let answering = |silent: &[(&str, u32, u32)]| {
            let of = |(mount_point, minor, rounds): &(&str, u32, u32)| SilentFileSystem {
                mount_point: (*mount_point).to_owned(),
                device: disk(*minor),
                rounds: *rounds,
            };
            let round = FreeSpaceRound { silent: silent.iter().map(of).collect(), ..FreeSpaceRound::default() };
            watch.found.lock().expect("not poisoned").take(round);
            watch.answering()
        };
        let all = [("/data", 0, SILENT_ROUNDS), ("/logs", 0, SILENT_ROUNDS), ("/other", 16, 1)];
        assert_eq!(answering(&all), []);
        // One that answered before anything was told of it is no news.
        assert_eq!(answering(&all[..1]), []);
        assert_eq!(answering(&[]), [disk(0)]);
        assert_eq!(answering(&[]), []);
    }

    #[test]
    fn what_was_found_is_told_once_and_in_order() {
        let watch = FreeSpace::default();
        let disk = |minor| DeviceId { major: 8, minor };
        watch.found.lock().expect("not poisoned").free.extend([(disk(0), 5), (disk(2), 7)]);
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
