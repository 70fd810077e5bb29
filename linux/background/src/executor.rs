//! All queues of a host: lets the one of each disk that may use its gaps run in them, and stops it when others come back.

use crate::automount::Automounts;
use crate::directories;
use crate::disk_gaps::{DiskGaps, Front, Ours};
use crate::duty::Chance;
use crate::error::WorkError;
use crate::processor_use::HostProcessors;
use crate::processors::Hierarchy;
use crate::run::{Before, Run};
use crate::settings::Settings;
use crate::spec::{Found, Spec};
use crate::stop_all::Stopping;
use crate::told::{Told, ToldRun};
use crate::turns::{Turns, Wanting};
use crate::worker::Assignment;
use minerva_model::{
    BackgroundId, BackgroundOrder, BackgroundPace, BackgroundReport, BackgroundState, DeviceId, Nanos,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// How often it is looked for others while work runs, and while it waits for a gap.
const LOOK_RUNNING: Duration = Duration::from_millis(4);
const LOOK_WAITING: Duration = Duration::from_millis(15);
/// How often it is looked how workers are.
const LOOK_WORKERS: Nanos = Nanos::from_millis(200);

/// How a queue is, for whoever keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueStatus {
    /// What is told to the engine.
    pub report: BackgroundReport,
    /// What people are told.
    pub message: String,
    /// Where another worker would go on.
    pub position: u64,
    /// What was found up to there.
    pub found: Found,
    /// What it is for is not at its path: it is forgotten here, and to be added again once that is there.
    pub is_absent: bool,
    /// The processors that its processes are confined to, or why they are not; empty before anything was measured.
    pub processors: String,
}

/// All queues. See the file's documentation.
#[derive(Debug)]
pub struct Executor {
    settings: Settings,
    runs: BTreeMap<BackgroundId, Run>,
    /// What tenants' programs do by themselves.
    told: BTreeMap<BackgroundId, ToldRun>,
    disks: BTreeMap<DeviceId, DiskGaps>,
    turns: Turns,
    /// Removed, and not gone yet.
    leaving: Vec<Run>,
    workers_at: Nanos,
    /// In which work is confined to some processors, or why it is not.
    hierarchy: Result<Hierarchy, String>,
    host_processors: HostProcessors,
}

impl Executor {
    /// Without queues.
    pub fn new(settings: Settings) -> Self {
        let (runs, told, disks) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (leaving, workers_at, turns) = (Vec::new(), Nanos::ZERO, Turns::default());
        let hierarchy = Hierarchy::find(settings.unified_root().as_deref(), &settings.mounts());
        let host_processors = HostProcessors::default();
        Self { settings, runs, told, disks, turns, leaving, workers_at, hierarchy, host_processors }
    }

    /// Takes a queue, with a worker that it has from before this start if there is one. One that is there already goes on, on a disk that has
    /// another number by now.
    pub fn add(&mut self, now: Nanos, spec: Spec, device: DeviceId, before: Before) {
        if let Some(run) = self.runs.get_mut(&spec.id) {
            (run.device, run.spec.identity) = (device, spec.identity);
            return;
        }
        let place = self.settings.place(spec.id, &self.hierarchy);
        self.runs.insert(spec.id, Run::new(spec, device, place, now, before));
    }

    /// Takes what a tenant's program does by itself when it is told that it may.
    pub fn tell(&mut self, now: Nanos, told: Told) {
        self.told.insert(told.id, ToldRun::new(told, now));
    }

    /// When a queue may run from now on.
    pub fn order(&mut self, order: &BackgroundOrder) {
        if let Some(run) = self.runs.get_mut(&order.id) {
            run.duty.pace = order.pace;
            run.processors_wanted = order.processors;
        }
        if let Some(told) = self.told.get_mut(&order.id) {
            told.duty.pace = order.pace;
        }
    }

    /// Begins anew what failed. What it is for may not be there: then it is begun once it is.
    pub fn begin_again(&mut self, id: BackgroundId) {
        match self.runs.get_mut(&id) {
            Some(run) => run.begin_again(),
            None => {
                let place = self.settings.place(id, &self.hierarchy);
                if !place.is_alive() {
                    place.forget_run();
                }
            }
        }
    }

    /// Ends a queue's work; what it did stays done.
    pub fn remove(&mut self, id: BackgroundId) {
        self.told.remove(&id);
        self.leaving.extend(self.runs.remove(&id).or_else(|| self.left_behind(id)));
    }

    /// What a queue has that is not carried out, because it is done or what it is for is not there.
    fn left_behind(&self, id: BackgroundId) -> Option<Run> {
        let place = self.settings.place(id, &self.hierarchy);
        let assignment = directories::read::<Assignment>(&place.runtime.join("spec"));
        if assignment.is_none() {
            place.remove();
        }
        let device = DeviceId { major: 0, minor: 0 };
        assignment.map(|left| Run::new(left.spec, device, place, Nanos::ZERO, Before::default()))
    }

    /// Looks for others, lets run and stops; when to look again. To be called then, or sooner.
    pub fn step(&mut self, now: Nanos) -> Option<Duration> {
        if now.since(self.workers_at) >= LOOK_WORKERS {
            self.workers_at = now;
            let hierarchy = &self.hierarchy;
            self.runs.values_mut().for_each(|run| {
                run.look();
                run.confine(hierarchy.as_ref());
            });
            let sys = self.settings.sys.clone();
            self.leaving.retain_mut(|run| !run.remove(&sys));
        }
        let mut next: Option<Duration> = (!self.leaving.is_empty()).then_some(LOOK_WAITING);
        let of_told = self.told.values().map(|run| run.told.device);
        let devices: BTreeSet<DeviceId> = self.runs.values().map(|run| run.device).chain(of_told).collect();
        self.disks.retain(|device, _| devices.contains(device));
        self.give_turns(now, &devices);
        for device in devices {
            let front = self.front(device);
            let chance = front.map_or(Chance::Wait, |front| self.chance(now, device, front));
            let of = |is_front: bool| if is_front { chance } else { Chance::Wait };
            for told in self.told.values_mut().filter(|run| run.told.device == device) {
                told.turn(now, of(Some(told.told.id) == front));
            }
            // Who is stopped comes first: what limits its scrub is put back before another of the same file system looks what is to be.
            for is_front in [false, true] {
                let is_next = |run: &&mut Run| run.device == device && (Some(run.spec.id) == front) == is_front;
                for run in self.runs.values_mut().filter(is_next) {
                    let (worker, hierarchy) = (&self.settings.worker, self.hierarchy.as_ref().ok());
                    run.turn(now, of(is_front), (worker, hierarchy), &self.settings.sys);
                }
            }
            if front.is_some() {
                let look = if chance.is_gap() { LOOK_RUNNING } else { LOOK_WAITING };
                next = Some(next.map_or(look, |next| next.min(look)));
            }
        }
        next
    }

    /// How each queue is, since the last call.
    pub fn statuses(&mut self, now: Nanos) -> Vec<QueueStatus> {
        let groups = self.runs.values().map(Run::unified_group);
        let seen = self.host_processors.look(now, &self.settings.proc, groups);
        // Read once for all, and only for paths.
        let automounts =
            if self.runs.is_empty() { Automounts::default() } else { Automounts::read(&self.settings.proc) };
        let (hierarchy, sys) = (self.hierarchy.as_ref(), &self.settings.sys);
        let status = |run: &mut Run| {
            let (position, found) = run.position();
            QueueStatus {
                report: BackgroundReport {
                    processors: run.processors(hierarchy, seen),
                    ..run.report(&automounts, sys)
                },
                message: run.said(),
                position,
                found,
                is_absent: run.is_absent,
                processors: run.processors_said.clone(),
            }
        };
        let of_told = |run: &mut ToldRun| QueueStatus {
            report: run.report(),
            message: String::new(),
            position: 0,
            found: Found::default(),
            is_absent: false,
            processors: String::new(),
        };
        let all = self.runs.values_mut().map(status).chain(self.told.values_mut().map(of_told)).collect();
        self.runs.retain(|_, run| !run.is_absent);
        all
    }

    /// The daemon ends: all work is stopped, and waits for the next daemon. What could not be stopped, or not in time, if anything.
    pub fn stop(&mut self) -> Vec<WorkError> {
        let (runs, sys) = (std::mem::take(&mut self.runs), self.settings.sys.clone());
        let stopping = Stopping::begin(runs.into_values().filter(|run| run.state != BackgroundState::Done), &sys);
        // Nobody knows of them any more after this.
        self.leaving.retain_mut(|run| !run.remove(&sys));
        while !self.leaving.is_empty() && !stopping.is_over() {
            std::thread::sleep(LOOK_WAITING);
            self.leaving.retain_mut(|run| !run.remove(&sys));
        }
        let has_not_ended =
            |run: Run| WorkError::Refused(format!("{}, which was removed, has not ended", run.spec.name));
        self.leaving.drain(..).map(has_not_ended).chain(stopping.wait()).collect()
    }

    /// Which queue of a disk may run.
    fn front(&self, device: DeviceId) -> Option<BackgroundId> {
        let run = self.runs.values().find(|run| run.device == device && run.wants()).map(|run| run.spec.id);
        run.or_else(|| self.told.values().find(|run| run.told.device == device && run.wants()).map(|run| run.told.id))
    }

    /// The group of a queue, and whether its requests are made by threads of the kernel.
    fn group_of(&self, id: BackgroundId) -> Option<(PathBuf, bool)> {
        let run = self.runs.get(&id).map(|run| (run.group().to_owned(), run.spec.kind.works_in_kernel()));
        run.or_else(|| self.told.get(&id).map(|run| (run.told.group.clone(), false)))
    }

    /// Of disks that share one below them one has the turn at a time: only its work runs, in gaps and beside others.
    fn give_turns(&mut self, now: Nanos, devices: &BTreeSet<DeviceId>) {
        let mut wanting = BTreeMap::new();
        for device in devices {
            if let Some(front) = self.front(*device) {
                let run = self.runs.get(&front);
                let goes_first = run.is_some_and(|run| !run.hangs());
                let begins_again = run.and_then(Run::begins_again);
                let (takes, is_at_work) = self.takes(front);
                let bottom = self.refreshed(now, *device, front).bottom().clone();
                wanting.insert(*device, Wanting { bottom, goes_first, takes, is_at_work, begins_again });
            }
        }
        self.turns.give(now, &wanting);
        for (_, disk) in self.disks.iter_mut().filter(|(device, _)| !self.turns.has(**device)) {
            disk.loses_turn();
        }
    }

    /// Whether a queue has a share against others, and whether it runs.
    fn takes(&self, id: BackgroundId) -> (bool, bool) {
        let run = self.runs.get(&id).map(|run| (run.duty.pace, run.is_running()));
        let told = || self.told.get(&id).map(|run| (run.duty.pace, run.is_working()));
        let (pace, is_at_work) = run.or_else(told).unwrap_or_default();
        (matches!(pace, BackgroundPace::Share(_)), is_at_work)
    }

    fn chance(&mut self, now: Nanos, device: DeviceId, front: BackgroundId) -> Chance {
        match self.turns.has(device) {
            true if self.is_gap(now, device, front) => Chance::Gap,
            true => Chance::Beside,
            false => Chance::Wait,
        }
    }

    fn refreshed(&mut self, now: Nanos, device: DeviceId, front: BackgroundId) -> &mut DiskGaps {
        let disk = self.disks.entry(device).or_insert_with(|| DiskGaps::of(device));
        let identity = self.runs.get(&front).map(|run| &run.spec.identity);
        disk.refresh(now, &self.settings, &Front { id: front, identity });
        disk
    }

    fn is_gap(&mut self, now: Nanos, device: DeviceId, front: BackgroundId) -> bool {
        let Some((group, works_in_kernel)) = self.group_of(front) else { return false };
        let ours = Ours { group: &group, works_in_kernel, is_made_by_us: !self.told.contains_key(&front) };
        self.refreshed(now, device, front).look(now, &ours)
    }
}

#[cfg(test)]
mod volumes;

#[cfg(test)]
mod tests {
    use super::Executor;
    use crate::directories::{Ended, Progress, replace};
    use crate::run::Before;
    use crate::scrub_speed;
    use crate::settings::tests::settings;
    use crate::spec::Kind;
    use crate::worker::{Assignment, Worker};
    use minerva_model::{BackgroundId, BackgroundOrder, BackgroundPace, DeviceId, Nanos};
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    pub(super) fn executor(root: &Path, parent: &str) -> Executor {
        Executor::new(settings(root, parent))
    }

    #[test]
    fn what_failed_and_is_not_there_is_begun_again_once_it_is() {
        let root = tempfile::tempdir().unwrap();
        let mut executor = executor(root.path(), "minerva");
        let place = executor.settings.place(BackgroundId(1), &executor.hierarchy);
        place.make().unwrap();
        let message = "it ended with status 1".to_owned();
        let failed = Ended { is_done: false, is_absent: false, message, progress: Progress::default() };
        replace(&place.state.join("result"), &failed, false).unwrap();
        replace(&place.state.join("begun"), &(), false).unwrap();
        executor.begin_again(BackgroundId(1));
        assert!(place.ended().is_none() && !place.has_begun());
    }

    #[test]
    fn of_a_disk_that_is_gone_there_is_no_gap_and_work_goes_by_its_new_number_when_it_is_back() {
        let root = tempfile::tempdir().unwrap();
        let [before, now] = [0, 16].map(|minor| DeviceId { major: 8, minor });
        let mut executor = executor(root.path(), "minerva");
        let spec = Worker::of(root.path(), Kind::Delete, root.path()).spec().clone();
        let id = spec.id;
        executor.add(Nanos::ZERO, spec.clone(), before, Before::default());
        executor.add(Nanos::ZERO, spec, now, Before::default());
        assert_eq!((executor.runs.len(), executor.runs[&id].device), (1, now));
        fs::create_dir_all(root.path().join("sys/dev/block/8:16")).unwrap();
        // In each nobody else makes a request for seconds.
        let mut has_gap = |device| (0..1000).any(|look| executor.is_gap(Nanos::from_millis(10 * look), device, id));
        assert_eq!([before, now].map(&mut has_gap), [false, true]);
    }

    #[test]
    fn of_two_scrubs_of_a_file_system_the_limit_of_one_is_not_taken_for_the_operators_by_the_other() {
        let root = tempfile::tempdir().unwrap();
        let mut executor = executor(root.path(), "minerva");
        let device = DeviceId { major: 8, minor: 0 };
        let mut spec = Worker::of(root.path(), Kind::BtrfsScrub, root.path()).spec().clone();
        let devices = scrub_speed::devices(spec.identity.lasting.unwrap().file_system, &root.path().join("sys"));
        let knob = devices.join("1/scrub_speed_max");
        fs::create_dir_all(devices.join("1")).unwrap();
        fs::write(&knob, "0\n").unwrap();
        let lives = [1, 2].map(|id| {
            spec.id = BackgroundId(id);
            let place = executor.settings.place(spec.id, &executor.hierarchy);
            place.make().unwrap();
            fs::create_dir_all(&place.groups.freezer).unwrap();
            let lives = place.lock().unwrap().unwrap();
            executor.add(Nanos::ZERO, spec.clone(), device, Before::default());
            lives
        });
        for (second, front) in [(1, 2), (2, 1), (3, 2), (4, 0)] {
            for id in [1, 2] {
                let pace = if id == front { BackgroundPace::Share(500) } else { BackgroundPace::Hold };
                executor.order(&BackgroundOrder { id: BackgroundId(id), pace, reason: String::new(), processors: 0 });
            }
            let (begun, limit) = (Instant::now(), if front > 0 { (32 << 20).to_string() } else { "0".to_owned() });
            executor.step(Nanos::from_secs(second));
            // Who was stopped just now may take a moment.
            while fs::read_to_string(&knob).unwrap() != limit && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
                executor.step(Nanos::from_secs(second));
            }
            assert_eq!(fs::read_to_string(&knob).unwrap(), limit, "{second}");
        }
        drop(lives);
    }

    #[test]
    fn a_worker_that_lives_is_stopped_and_removed_in_the_groups_in_which_it_was_begun() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let spec = Worker::of(root, Kind::Delete, root).spec().clone();
        let before = executor(root, "before");
        let place = before.settings.place(spec.id, &before.hierarchy);
        replace(&place.runtime.join("spec"), &Assignment { spec: spec.clone(), place: place.clone() }, false).unwrap();
        let lives = place.lock().unwrap().unwrap();
        let (mut now, device) = (executor(root, "now"), DeviceId { major: 8, minor: 0 });
        now.add(Nanos::ZERO, spec.clone(), device, Before::default());
        assert_eq!(now.runs[&spec.id].group(), place.groups.io);
        now.runs.clear();
        assert_eq!(now.left_behind(spec.id).unwrap().group(), place.groups.io);
        drop(lives);
        now.add(Nanos::ZERO, spec.clone(), device, Before::default());
        assert_eq!(now.runs[&spec.id].group(), root.join("cgroup/now/background-b1"), "the next one is begun there");
    }
}
