//! Free space on the file systems of each disk. One that is frozen, or whose disk is gone, may not answer for as long as it likes, so
//! that each is asked by a thread of its own.

use crate::mounts::read_mount_facts;
use crate::{MountFacts, ObserveError, Roots};
use minerva_model::DeviceId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a round waits for answers. A file system that works takes microseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file system by its device number, and its free bytes. Nothing of one that does not answer well.
type Answer = Option<(u64, u64)>;

/// What a round found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeSpaceRound {
    /// Free bytes on the file systems that lie on one disk alone, summed by disk. A disk with a file system that is silent is left out, as
    /// are file systems of machines elsewhere and of memory.
    pub by_disk: BTreeMap<DeviceId, u64>,
    /// File systems that have not answered yet.
    pub silent: Vec<SilentFileSystem>,
}

/// A file system that was asked and has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentFileSystem {
    /// Where it is mounted.
    pub mount_point: String,
    /// The disk on which it lies.
    pub device: DeviceId,
    /// For how many rounds, the one in which it was asked included.
    pub rounds: u32,
}

/// Asks in rounds. A file system that is silent is not asked again before it answers, so that there are never more threads than file
/// systems.
#[derive(Debug, Default)]
pub struct FreeSpaceAsker {
    asked: BTreeMap<FileSystem, Question>,
}

/// The disk, and what is mounted from it: the same in all places where it is mounted.
type FileSystem = (DeviceId, String);

#[derive(Debug)]
struct Question {
    mount_point: String,
    answer: Receiver<Answer>,
    rounds: u32,
}

impl FreeSpaceAsker {
    /// Asks every file system of the mount table, and waits for a bounded time.
    ///
    /// # Errors
    /// The mount table cannot be read.
    pub fn round(&mut self, roots: &Roots) -> Result<FreeSpaceRound, ObserveError> {
        Ok(self.round_of(&read_mount_facts(roots)?, ask, PATIENCE))
    }

    fn round_of(&mut self, mounts: &[MountFacts], ask: fn(&Path) -> Answer, patience: Duration) -> FreeSpaceRound {
        let mounted = mounts.iter().filter_map(|mount| match (&mount.devices[..], mount.hidden_because) {
            ([device], None) => Some(((*device, mount.source.clone()), mount.mount_point.as_str())),
            _ => None,
        });
        let mounted: BTreeMap<FileSystem, &str> = mounted.collect();
        // What became of one that is no longer mounted is of no use; its thread ends when it answers.
        self.asked.retain(|file_system, _| mounted.contains_key(file_system));
        let mut incomplete = BTreeSet::new();
        for (file_system, mount_point) in mounted {
            if self.asked.contains_key(&file_system) {
                continue;
            }
            match Question::put(mount_point, ask) {
                Ok(question) => _ = self.asked.insert(file_system, question),
                // Without a thread nothing is known of it in this round.
                Err(_) => _ = incomplete.insert(file_system.0),
            }
        }
        self.collect(Instant::now() + patience, incomplete)
    }

    fn collect(&mut self, until: Instant, mut incomplete: BTreeSet<DeviceId>) -> FreeSpaceRound {
        let mut round = FreeSpaceRound::default();
        let mut counted = BTreeSet::new();
        self.asked.retain(|(device, _), question| {
            match question.answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
                // The same file system may go by several names.
                Ok(Some((number, free))) if counted.insert(number) => {
                    *round.by_disk.entry(*device).or_default() += free
                }
                Ok(_) | Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    question.rounds = question.rounds.saturating_add(1);
                    let (mount_point, rounds) = (question.mount_point.clone(), question.rounds);
                    round.silent.push(SilentFileSystem { mount_point, device: *device, rounds });
                    incomplete.insert(*device);
                    return true;
                }
            }
            false
        });
        round.by_disk.retain(|device, _| !incomplete.contains(device));
        round
    }
}

impl Question {
    fn put(mount_point: &str, ask: fn(&Path) -> Answer) -> std::io::Result<Self> {
        let (sender, answer) = mpsc::sync_channel(1);
        let path = mount_point.to_owned();
        // Fails only when nobody wants to know any more.
        let look = move || _ = sender.send(ask(Path::new(&path)));
        std::thread::Builder::new().name("free-space-of".to_owned()).spawn(look)?;
        Ok(Self { mount_point: mount_point.to_owned(), answer, rounds: 0 })
    }
}

/// Asks a file system.
fn ask(mount_point: &Path) -> Answer {
    let (stat, space) = (rustix::fs::stat(mount_point).ok()?, rustix::fs::statvfs(mount_point).ok()?);
    Some((stat.st_dev, space.f_bavail.saturating_mul(space.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::{FreeSpaceAsker, FreeSpaceRound, ask};
    use crate::{MountFacts, Roots};
    use minerva_model::DeviceId;
    use std::path::Path;
    use std::time::Duration;

    /// What is known of this machine, whose disks nobody here has chosen: each that has a file system of its own is told once, and no
    /// more is free than `statvfs` says of all mounts together.
    #[test]
    fn each_file_system_counts_once() {
        let Ok(roots) = Roots::detect() else {
            println!("skipped: this machine has no hierarchy to look at");
            return;
        };
        let all: u64 = crate::read_mount_facts(&roots)
            .expect("the mount table")
            .iter()
            .filter_map(|mount| rustix::fs::statvfs(&mount.mount_point).ok())
            .map(|space| space.f_blocks.saturating_mul(space.f_frsize))
            .fold(0, u64::saturating_add);
        let FreeSpaceRound { by_disk, silent } = FreeSpaceAsker::default().round(&roots).expect("the mount table");
        assert!(by_disk.values().sum::<u64>() <= all && silent.is_empty(), "{by_disk:?}, {silent:?}");
    }

    /// Who opens a FIFO to read waits until somebody writes.
    #[test]
    fn a_file_system_that_hangs_blinds_nobody_but_its_own_disk_until_it_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .expect("a FIFO");
        let mount = |minor, source: &str, place: &Path| MountFacts {
            mount_point: place.display().to_string(),
            file_system: "ext4".to_owned(),
            source: source.to_owned(),
            devices: vec![DeviceId { major: 8, minor }],
            hidden_because: None,
            writeback_attributed: false,
        };
        let mounts =
            [mount(0, "/dev/a1", folder.path()), mount(16, "/dev/b1", folder.path()), mount(16, "/dev/b2", &fifo)];
        let waits = |path: &Path| std::fs::File::open(path).ok().and_then(|_| ask(path.parent()?));
        let mut asker = FreeSpaceAsker::default();
        let mut round = || asker.round_of(&mounts, waits, Duration::from_millis(200));
        for rounds in 1..=3 {
            let FreeSpaceRound { by_disk, silent } = round();
            let known: Vec<u32> = by_disk.keys().map(|device| device.minor).collect();
            let hangs: Vec<(u32, u32)> = silent.iter().map(|hangs| (hangs.device.minor, hangs.rounds)).collect();
            assert_eq!((known, hangs), (vec![0], vec![(16, rounds)]), "it is asked once");
        }
        let writer = std::fs::OpenOptions::new().write(true).open(&fifo).expect("somebody reads");
        let answered = (0..100).map(|_| round()).find(|round| round.silent.is_empty());
        drop(writer);
        assert!(answered.is_some(), "it answers once somebody writes");
    }
}
