//! What moves to one destination: once a second it asks the policy which file is next and how fast, and every few milliseconds it looks
//! whether others are there. A piece is written, then it listens; so whoever comes back to the disk meets one piece at most.

use super::copy::PIECE;
use super::disks::{Counters, Destination, NO_DISK};
use super::job::{Job, Obstacle};
use super::read_directories::ReadDirectories;
use super::{Deferred, Waiting};
use minerva_background::Gap;
use minerva_cachefs::MoveRefusal;
use minerva_decide::{Migration, MigrationOrder, MigrationPace, TargetDisk, ToldBy};
use minerva_model::Nanos;
use minerva_store::DeferralStep;
use std::mem;
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_secs(1);
/// After a piece it listens for so long whether others are there.
const LISTEN: Duration = Duration::from_millis(3);
/// So often it looks while it waits for a gap.
const LOOK: Duration = Duration::from_millis(10);
/// And so often where nothing may be moved.
const IDLE_LOOK: Duration = Duration::from_millis(200);

/// The moves to one destination.
pub(super) struct Moves<'a> {
    pub(super) deferred: &'a Deferred,
    pub(super) destination: Destination,
    policy: Migration,
    counters: Counters,
    gap: Gap,
    order: Option<MigrationOrder>,
    pub(super) job: Option<Job>,
    /// Others' requests in this slice; none before the disk was looked at for a whole one.
    others: Option<u64>,
    /// Beside others it goes on then.
    resume_at: Option<Instant>,
    begun: Instant,
    slice_at: Instant,
    /// The file whose link was made durable last, or could not be.
    pub(super) synced_up_to: u64,
    /// The file for whose link it was looked last, and the directories that were read for such files.
    pub(super) looked_up_to: u64,
    pub(super) read_directories: ReadDirectories,
}

impl<'a> Moves<'a> {
    pub(super) fn new(deferred: &'a Deferred, destination: Destination) -> Self {
        let now = Instant::now();
        Self {
            deferred,
            destination,
            policy: Migration::default(),
            counters: Counters::default(),
            gap: Gap::default(),
            order: None,
            job: None,
            others: None,
            resume_at: None,
            begun: now,
            slice_at: now,
            synced_up_to: 0,
            looked_up_to: 0,
            read_directories: ReadDirectories::default(),
        }
    }

    pub(super) fn is_for(&self, file: &Waiting) -> bool {
        file.destination == self.destination
    }

    /// Does what may be done now; how long it may wait until the next look. Nothing once no file is to go there.
    pub(super) fn look(&mut self) -> Option<Duration> {
        if Instant::now() >= self.slice_at {
            self.slice_at = Instant::now() + SLICE;
            if !self.deferred.files().values().any(|file| self.is_for(file)) {
                return None;
            }
            self.slice();
        }
        let pause = IDLE_LOOK.min(self.slice_at.saturating_duration_since(Instant::now()));
        Some(pause.min(self.look_at_disk()).max(Duration::from_millis(1)))
    }

    /// Asks the policy for the next second.
    fn slice(&mut self) {
        self.sync_links();
        let files = self.candidates();
        if files.is_empty() {
            self.abandon();
            let before = mem::replace(self, Self::new(self.deferred, self.destination));
            (self.slice_at, self.synced_up_to) = (before.slice_at, before.synced_up_to);
            (self.looked_up_to, self.read_directories) = (before.looked_up_to, before.read_directories);
            return;
        }
        let disk = self.destination.disk;
        if disk != NO_DISK {
            self.deferred.daemon.debts().owe(disk, files.iter().map(|file| file.bytes).sum());
        }
        let counted = self.others.replace(0).map(|others| (u32::from(others > 0), ToldBy::Counters));
        let told = self.deferred.daemon.told(disk);
        let others = match told {
            _ if disk == NO_DISK => Some((0, ToldBy::Counters)),
            Some(told) => Some((told.contention, ToldBy::Daemon)),
            // A guest's own counters say nothing of who else uses the host's disk.
            None if self.deferred.daemon.is_of_guest() => None,
            None => counted,
        };
        let expected_permille = told.and_then(|told| told.expected_permille);
        let target = TargetDisk { device: disk, others, expected_permille };
        for order in self.policy.slice(&[target], &files) {
            self.tell(&files, &order);
            if let Some(job) = self.job.take_if(|job| job.row.id != order.file) {
                give_up(self.deferred, job);
            }
            self.order = Some(order);
        }
    }

    /// Looks at the disk, and writes a piece if it may; how long it may wait until the next look.
    fn look_at_disk(&mut self) -> Duration {
        let disk = self.destination.disk;
        let requests = self.counters.others(disk);
        self.others = self.others.map(|others| others + requests);
        // Whoever comes to the file may wait for this to let go of it.
        if let Some(job) = self.job.take_if(|job| job.is_disturbed()) {
            let id = job.row.id;
            give_up(self.deferred, job);
            self.deferred.failed(id, &MoveRefusal::Open.into());
            self.next();
            return LOOK;
        }
        let now = self.now();
        let is_gap = self.gap.look(now, requests) || disk == NO_DISK;
        let pace = self.order.as_ref().map_or(MigrationPace::Hold, |order| order.pace);
        let may = match pace {
            MigrationPace::Hold => return IDLE_LOOK,
            MigrationPace::Gaps => is_gap,
            MigrationPace::Share(_) => self.resume_at.is_none_or(|at| Instant::now() >= at),
        };
        if !may {
            return LOOK;
        }
        let before = Instant::now();
        self.step();
        let beside = self.counters.others_beside(disk, PIECE as u64);
        self.others = self.others.map(|others| others + beside);
        let now = self.now();
        self.gap.look(now, beside);
        if let MigrationPace::Share(part) = pace {
            let rest = before.elapsed() * (1000 - part.min(999)) / part.max(1);
            self.resume_at = Some(Instant::now() + rest);
            return LOOK;
        }
        if self.order.is_none() { LOOK } else { LISTEN }
    }

    fn now(&self) -> Nanos {
        Nanos(self.begun.elapsed().as_nanos() as u64)
    }

    /// One piece, or what comes before the first and after the last.
    fn step(&mut self) {
        let deferred = self.deferred;
        let Some(mut job) = self.job.take() else {
            let Some(order) = &self.order else { return };
            match begin(deferred, order.file) {
                Ok(job) => self.job = Some(job),
                Err(obstacle) => {
                    if !deferred.find_directory_again(order.file) {
                        deferred.failed(order.file, &obstacle);
                    }
                    self.next();
                }
            }
            return;
        };
        let id = job.row.id;
        match job.piece() {
            Ok(true) => {
                self.count(&mut job);
                self.job = Some(job);
                return;
            }
            Ok(false) => {
                let (bytes, row) = (job.done_bytes(), job.row.clone());
                match job.finish(&|row| deferred.keep(row)) {
                    Ok(()) => {
                        deferred.count(&row, |counts| {
                            counts.moved_files += 1;
                            counts.moved_bytes += bytes;
                        });
                        deferred.forget(id);
                    }
                    Err(obstacle) => deferred.failed(id, &obstacle),
                }
            }
            Err(obstacle) => {
                give_up(deferred, job);
                deferred.failed(id, &obstacle);
            }
        }
        self.next();
    }

    /// Tells of the piece that was written.
    fn count(&self, job: &mut Job) {
        let (deferred, disk) = (self.deferred, self.destination.disk);
        let (bytes, up_to) = job.take_fresh();
        let is_in_gap = self.order.as_ref().is_some_and(|order| order.pace == MigrationPace::Gaps);
        // What nobody hears of now is counted by nobody.
        deferred.daemon.debts().moved(disk, bytes);
        let is_heard = !deferred.daemon.is_of_guest() && deferred.daemon.told(disk).is_some();
        if is_in_gap && is_heard {
            deferred.reports.moved(&job.row, disk, bytes, up_to);
        }
    }

    /// This file is done with; within the slice the next one goes by the same order.
    fn next(&mut self) {
        self.order = self.order.take().and_then(|mut order| {
            let file = order.then.first().copied()?;
            order.then.remove(0);
            Some(MigrationOrder { file, ..order })
        });
    }

    /// Leaves the copy that is under way; the disk is owed nothing until files are to go there again.
    pub(super) fn abandon(&mut self) {
        if let Some(job) = self.job.take() {
            give_up(self.deferred, job);
        }
        self.deferred.daemon.debts().owe_nothing(self.destination.disk);
    }
}

fn begin(deferred: &Deferred, id: u64) -> Result<Job, Obstacle> {
    let mut row = deferred.files().get(&id).map(|file| file.row.clone()).ok_or(Obstacle::TakenOut)?;
    row.counted_bytes = deferred.reports.counted_bytes(id);
    let (tree, at) = deferred.tree_of(&row)?;
    Job::begin(row, &tree, &at, &|row| deferred.keep(row))
}

/// The copy goes, and the file waits again.
fn give_up(deferred: &Deferred, job: Job) {
    let mut row = job.abandon();
    (row.step, row.copy_inode) = (DeferralStep::Waiting, 0);
    // Where this fails the next attempt finds it as it is.
    let _ = deferred.keep(&row);
}
