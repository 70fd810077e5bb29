//! What moves: once a second it asks the policy which file of each disk is next and how fast, and every few
//! milliseconds it looks whether others are there. A piece is written, then it listens; so whoever comes back to the disk meets one
//! piece at most.

use super::copy::PIECE;
use super::disks::{Counters, NO_DISK};
use super::job::{Job, Obstacle};
use super::{Deferred, mount_of};
use minerva_background::Gap;
use minerva_cachefs::MoveRefusal;
use minerva_decide::{Migration, MigrationOrder, MigrationPace, TargetDisk, ToldBy};
use minerva_model::{DeviceId, Nanos};
use minerva_store::DeferralStep;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_secs(1);
/// After a piece it listens for so long whether others are there.
const LISTEN: Duration = Duration::from_millis(3);
/// So often it looks while it waits for a gap.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// And so often where nothing is to be moved.
const IDLE_LOOK: Duration = Duration::from_millis(200);
/// What is under way on one disk.
#[derive(Default)]
pub(super) struct Lane {
    gap: Gap,
    order: Option<MigrationOrder>,
    pub(super) job: Option<Job>,
    /// Others' requests in this slice; none before the disk was looked at for a whole one.
    others: Option<u64>,
    /// Beside others it goes on then.
    resume_at: Option<Instant>,
}

/// All moves.
pub(super) struct Moves<'a> {
    pub(super) deferred: &'a Deferred,
    policy: Migration,
    counters: Counters,
    pub(super) lanes: BTreeMap<DeviceId, Lane>,
    begun: Instant,
    slice_at: Instant,
}

impl<'a> Moves<'a> {
    pub(super) fn new(deferred: &'a Deferred) -> Self {
        let now = Instant::now();
        Self {
            deferred,
            policy: Migration::default(),
            counters: Counters::default(),
            lanes: BTreeMap::new(),
            begun: now,
            slice_at: now,
        }
    }

    /// Does what may be done now; how long it may wait until the next look.
    pub(super) fn look(&mut self) -> Duration {
        if Instant::now() >= self.slice_at {
            self.slice_at = Instant::now() + SLICE;
            self.slice();
        }
        let mut pause = IDLE_LOOK.min(self.slice_at.saturating_duration_since(Instant::now()));
        let disks: Vec<DeviceId> = self.lanes.keys().copied().collect();
        for disk in disks {
            pause = pause.min(self.look_at(disk));
        }
        pause.max(Duration::from_millis(1))
    }

    /// Asks the policy for the next second.
    fn slice(&mut self) {
        self.sync_links();
        let files = self.candidates();
        let disks: BTreeSet<DeviceId> = files.iter().map(|file| file.device).collect();
        let gone: Vec<DeviceId> = self.lanes.keys().filter(|disk| !disks.contains(disk)).copied().collect();
        for lane in gone.iter().filter_map(|disk| self.lanes.remove(disk)) {
            give_up(self.deferred, lane.job);
        }
        let mut waiting = BTreeMap::new();
        files.iter().for_each(|file| *waiting.entry(file.device).or_default() += file.bytes);
        waiting.remove(&NO_DISK);
        self.deferred.daemon.debts().owe(&waiting);
        let mut targets = Vec::new();
        for disk in disks {
            let lane = self.lanes.entry(disk).or_default();
            let counted = lane.others.replace(0).map(|others| (u32::from(others > 0), ToldBy::Counters));
            let told = self.deferred.daemon.told(disk);
            let others = match told {
                _ if disk == NO_DISK => Some((0, ToldBy::Counters)),
                Some(told) => Some((told.contention, ToldBy::Daemon)),
                // A guest's own counters say nothing of who else uses the host's disk.
                None if self.deferred.daemon.is_of_guest() => None,
                None => counted,
            };
            targets.push(TargetDisk {
                device: disk,
                others,
                expected_permille: told.and_then(|told| told.expected_permille),
            });
        }
        let orders = self.policy.slice(&targets, &files);
        self.tell(&files, &orders);
        for order in orders {
            let Some(lane) = self.lanes.get_mut(&order.device) else { continue };
            if lane.job.as_ref().is_some_and(|job| job.row.id != order.file) {
                give_up(self.deferred, lane.job.take());
            }
            lane.order = Some(order);
        }
    }

    /// Looks at one disk, and writes a piece if it may; how long it may wait until the next look.
    fn look_at(&mut self, disk: DeviceId) -> Duration {
        let now = Nanos(self.begun.elapsed().as_nanos() as u64);
        let requests = self.counters.others(disk);
        let Some(lane) = self.lanes.get_mut(&disk) else { return IDLE_LOOK };
        lane.others = lane.others.map(|others| others + requests);
        // Whoever comes to the file may wait for this to let go of it.
        if let Some(job) = lane.job.take_if(|job| job.is_disturbed()) {
            let id = job.row.id;
            give_up(self.deferred, Some(job));
            self.deferred.failed(id, &MoveRefusal::Open.into());
            self.next(disk);
            return LOOK;
        }
        let is_gap = lane.gap.look(now, requests) || disk == NO_DISK;
        let pace = lane.order.as_ref().map_or(MigrationPace::Hold, |order| order.pace);
        let may = match pace {
            MigrationPace::Hold => return IDLE_LOOK,
            MigrationPace::Gaps => is_gap,
            MigrationPace::Share(_) => lane.resume_at.is_none_or(|at| Instant::now() >= at),
        };
        if !may {
            return LOOK;
        }
        let before = Instant::now();
        self.step(disk);
        let beside = self.counters.others_beside(disk, PIECE as u64);
        let Some(lane) = self.lanes.get_mut(&disk) else { return LOOK };
        lane.others = lane.others.map(|others| others + beside);
        lane.gap.look(Nanos(self.begun.elapsed().as_nanos() as u64), beside);
        if let MigrationPace::Share(part) = pace {
            let rest = before.elapsed() * (1000 - part.min(999)) / part.max(1);
            lane.resume_at = Some(Instant::now() + rest);
            return LOOK;
        }
        if lane.order.is_none() { LOOK } else { LISTEN }
    }

    /// One piece, or what comes before the first and after the last.
    fn step(&mut self, disk: DeviceId) {
        let deferred = self.deferred;
        let Some(lane) = self.lanes.get_mut(&disk) else { return };
        let Some(mut job) = lane.job.take() else {
            let Some(order) = &lane.order else { return };
            match begin(deferred, order.file) {
                Ok(job) => lane.job = Some(job),
                Err(obstacle) => {
                    deferred.failed(order.file, &obstacle);
                    self.next(disk);
                }
            }
            return;
        };
        let id = job.row.id;
        match job.piece() {
            Ok(true) => {
                let (bytes, up_to) = job.take_fresh();
                let is_in_gap = lane.order.as_ref().is_some_and(|order| order.pace == MigrationPace::Gaps);
                // What nobody hears of now is counted by nobody.
                deferred.daemon.debts().moved(disk, bytes);
                let is_heard = !deferred.daemon.is_of_guest() && deferred.daemon.told(disk).is_some();
                if is_in_gap && is_heard {
                    deferred.reports.moved(&job.row, disk, bytes, up_to);
                }
                lane.job = Some(job);
                return;
            }
            Ok(false) => {
                let (bytes, row) = (job.done_bytes(), job.row.clone());
                match job.finish(&|row| deferred.keep(row)) {
                    Ok(()) => {
                        deferred.forget(id);
                        deferred.count(&row, |counts| {
                            counts.moved_files += 1;
                            counts.moved_bytes += bytes;
                        });
                    }
                    Err(obstacle) => deferred.failed(id, &obstacle),
                }
            }
            Err(obstacle) => {
                give_up(deferred, Some(job));
                deferred.failed(id, &obstacle);
            }
        }
        self.next(disk);
    }

    /// This file is done with; within the slice the next one of the disk goes by the same order.
    fn next(&mut self, disk: DeviceId) {
        let Some(lane) = self.lanes.get_mut(&disk) else { return };
        lane.order = lane.order.take().and_then(|mut order| {
            let file = order.then.first().copied()?;
            order.then.remove(0);
            Some(MigrationOrder { file, ..order })
        });
    }

    /// Leaves all copies that are under way.
    pub(super) fn abandon(&mut self) {
        for lane in std::mem::take(&mut self.lanes).into_values() {
            give_up(self.deferred, lane.job);
        }
    }
}

fn begin(deferred: &Deferred, id: u64) -> Result<Job, Obstacle> {
    let mut row = deferred.files().get(&id).map(|file| file.row.clone()).ok_or(Obstacle::Gone)?;
    row.counted_bytes = deferred.reports.counted_bytes(id);
    let tenants = deferred.tenants.read().unwrap_or_else(PoisonError::into_inner);
    let mount = mount_of(&tenants, &row)
        .ok_or_else(|| Obstacle::Destination(format!("its tenant {} is not served", row.tenant)))?;
    Job::begin(row, &mount.tree, &mount.at, &|row| deferred.keep(row))
}

/// The copy goes, and the file waits again.
fn give_up(deferred: &Deferred, job: Option<Job>) {
    if let Some(job) = job {
        let mut row = job.abandon();
        (row.step, row.copy_inode) = (DeferralStep::Waiting, 0);
        // Where this fails the next attempt finds it as it is.
        let _ = deferred.keep(&row);
    }
}
