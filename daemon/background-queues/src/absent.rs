//! Queues whose disk is not there: they wait until it is, under whichever number.

use crate::disk_of::{self, disk_of};
use crate::registered::{keep_identity, spec};
use crate::{Queue, Queues};
use minerva_linux_background::{Automounts, WorkError};
use minerva_linux_observe::{MountFacts, Roots};
use minerva_model::{BackgroundId, BackgroundOrder, BackgroundPace, BackgroundState, DeviceId, Event};
use minerva_store::BackgroundRow;
use std::cell::OnceCell;
use std::path::Path;

/// Tables of mounts, each read once, and only if something is to be found there.
#[derive(Default)]
pub(crate) struct Tables {
    automounts: OnceCell<Automounts>,
    mounts: OnceCell<Result<Vec<MountFacts>, String>>,
}

impl Tables {
    fn automounts(&self, roots: &Roots) -> &Automounts {
        self.automounts.get_or_init(|| Automounts::read(&roots.proc))
    }

    fn mounts(&self, roots: &Roots) -> Result<&[MountFacts], String> {
        self.mounts.get_or_init(|| disk_of::mounts(roots)).as_deref().map_err(Clone::clone)
    }
}

impl Queues {
    /// For people only.
    pub(crate) fn disk_of_done(&self, row: &BackgroundRow, tables: &Tables) -> Option<DeviceId> {
        let (kind, path) = (spec(row)?.kind, Path::new(&row.path));
        tables.automounts(&self.roots).check(kind, path).ok()?;
        disk_of(&self.roots, tables.mounts(&self.roots).ok()?, kind, path).ok()
    }

    /// Queues whose disk was not there, and is by now, or has another number than before. The answer is for the engine.
    pub fn find_disks(&mut self, is_watched: impl Fn(DeviceId) -> bool) -> Vec<Event> {
        self.find_disks_by(&Tables::default(), is_watched)
    }

    pub(crate) fn find_disks_by(&mut self, tables: &Tables, is_watched: impl Fn(DeviceId) -> bool) -> Vec<Event> {
        let mut events = self.leave_gone_disks(&is_watched);
        let is_lost = |queue: &&Queue| queue.device.is_none() && queue.row.state != BackgroundState::Done;
        let lost: Vec<BackgroundRow> = self.queues.values().filter(is_lost).map(|queue| queue.row.clone()).collect();
        for mut row in lost {
            let id = row.id;
            match self.find_disk(&mut row, tables, &is_watched) {
                Ok(device) => events.extend(self.set(row, Some(device))),
                Err(why) => self.note_absent(id, why),
            }
        }
        events
    }

    /// The disk of what was asked for, if that is there. What an earlier version knew it by is kept in full from now on.
    fn find_disk(
        &self,
        row: &mut BackgroundRow,
        tables: &Tables,
        is_watched: impl Fn(DeviceId) -> bool,
    ) -> Result<DeviceId, String> {
        let work = spec(row).ok_or_else(|| format!("this version knows no work of the kind {}", row.kind))?;
        // Whatever this thread waits for, no disk is steered meanwhile.
        let waits =
            |error: WorkError| format!("{}: it waits until it is mounted, or until this is removed", error.in_full());
        tables.automounts(&self.roots).check(work.kind, &work.path).map_err(waits)?;
        let identity = work.look(&self.roots.sys).map_err(|error| error.in_full())?;
        let device = disk_of(&self.roots, tables.mounts(&self.roots)?, work.kind, Path::new(&row.path))?;
        keep_identity(row, &identity);
        is_watched(device).then_some(device).ok_or_else(|| "its path is on no disk that is watched now".to_owned())
    }

    /// What a queue is for is not there: it waits, and people are told once.
    pub(crate) fn note_absent(&mut self, id: BackgroundId, why: String) {
        let Some(queue) = self.queues.get_mut(&id).filter(|queue| queue.absent != why) else { return };
        tracing::warn!(name = queue.row.name, "background work waits, trying again: {why}");
        queue.absent = why;
    }

    /// Queues whose disk is watched no more: that is gone, and may be back under another number, while nobody uses the former one. The
    /// answer is for the engine.
    fn leave_gone_disks(&mut self, is_watched: impl Fn(DeviceId) -> bool) -> Vec<Event> {
        let is_gone = |queue: &&Queue| {
            queue.device.is_some_and(|device| !is_watched(device)) && queue.row.state != BackgroundState::Done
        };
        let gone: Vec<BackgroundId> = self.queues.values().filter(is_gone).map(|queue| queue.row.id).collect();
        gone.into_iter().map(|id| self.without_disk(id)).collect()
    }

    /// A queue has no disk now: when it is there again, it may be another one. Its worker rests meanwhile. The answer is for the engine.
    pub(crate) fn without_disk(&mut self, id: BackgroundId) -> Event {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.device = None;
        }
        let (pace, reason, processors) = (BackgroundPace::Hold, String::new(), 0);
        self.order(BackgroundOrder { id, pace, reason, processors });
        Event::BackgroundGone(id)
    }
}

#[cfg(test)]
mod tests {
    use crate::Queue;
    use crate::requests::row;
    use crate::testing::queues_in;
    use minerva_api::v1;
    use minerva_linux_background::Kind;
    use minerva_model::{BackgroundId, BackgroundState, DeviceId, Event, Nanos};

    #[test]
    fn work_below_an_automount_waits_and_what_is_refused_there_is_not_said_to() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
        let table = "22 20 0:31 / /minerva-test/disk rw - autofs systemd-1 rw,direct\n";
        std::fs::write(root.path().join("proc/self/mountinfo"), table).expect("a file");
        let mut queues = queues_in(root.path());
        queues.is_loaded = true;
        let request = v1::AddBackgroundRequest {
            name: "old".to_owned(),
            kind: Kind::Delete.as_str().to_owned(),
            path: "/minerva-test/disk/tree".to_owned(),
            ..<_>::default()
        };
        let why = "nothing is mounted on /minerva-test/disk, where an automount waits for its disk";
        assert_eq!(queues.judge(request.clone(), |_| true).expect_err("nobody may wait for it"), why);
        let row = row(BackgroundId(1), Kind::Delete, request).expect("it can be meant");
        let (absent, processors) = (String::new(), String::new());
        let queue = Queue { row, device: None, absent, kept_at: Nanos::ZERO, processors };
        queues.queues.insert(BackgroundId(1), queue);
        assert_eq!(queues.find_disks(|_| true), []);
        let waits = format!("{why}: it waits until it is mounted, or until this is removed");
        assert_eq!(queues.queues[&BackgroundId(1)].absent, waits);
    }

    /// As one that hung off a controller that was reset.
    #[test]
    fn work_whose_disk_is_back_under_another_number_goes_by_that() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
        let disk = root.path().join("sys/dev/block/8:16");
        std::fs::create_dir_all(&disk).expect("a directory");
        std::fs::write(disk.join("dev"), "8:16\n").expect("a file");
        let tree = root.path().join("tree");
        std::fs::create_dir(&tree).expect("a directory");
        let table = format!("22 20 8:16 / {} rw - ext4 /dev/sdb rw\n", root.path().display());
        std::fs::write(root.path().join("proc/self/mountinfo"), table).expect("a file");
        let mut queues = queues_in(root.path());
        queues.is_loaded = true;
        let [before, now] = [0, 16].map(|minor| DeviceId { major: 8, minor });
        let request = |name: &str| v1::AddBackgroundRequest {
            name: name.to_owned(),
            kind: Kind::Delete.as_str().to_owned(),
            path: tree.to_str().expect("a plain path").to_owned(),
            ..<_>::default()
        };
        let (first, device) = queues.judge(request("first"), |_| true).expect("it can be done");
        assert_eq!(device, now);
        let mut done = row(BackgroundId(2), Kind::Delete, request("done")).expect("it can be meant");
        done.state = BackgroundState::Done;
        for row in [first, done] {
            let (absent, processors) = (String::new(), String::new());
            let queue = Queue { device: Some(before), absent, kept_at: Nanos::ZERO, processors, row };
            queues.queues.insert(queue.row.id, queue);
        }
        // It is gone, and not back yet.
        assert_eq!(queues.find_disks(|_| false), [Event::BackgroundGone(BackgroundId(1))]);
        assert_eq!(queues.find_disks(|_| false), [], "said once");
        assert_eq!(queues.queues[&BackgroundId(1)].absent, "its path is on no disk that is watched now");
        let found = queues.find_disks(|device| device == now);
        let [Event::BackgroundSet(queue)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((queue.id, queue.device), (BackgroundId(1), now));
        // Back within a slice.
        queues.queues.get_mut(&BackgroundId(1)).expect("it is there").device = Some(before);
        let found = queues.find_disks(|device| device == now);
        let [Event::BackgroundGone(_), Event::BackgroundSet(queue)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(queue.device, now);
        assert_eq!(queues.queues[&BackgroundId(2)].device, Some(before), "of what is done the disk is for people");
    }
}
