//! What the slice loop does with background work. What is to last is in the store before it is answered.

use crate::command::{BackgroundKept, Command};
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_background_queues::{Change, Queues, shown_plan, span_of};
use minerva_config::Config;
use minerva_engine::WorkView;
use minerva_linux_actuate::InstanceLock;
use minerva_linux_background::{Settings, WorkError, WorkerProgram};
use minerva_linux_observe::Roots;
use minerva_model::{BackgroundCost, BackgroundId, DeviceId, DiskCalibration, Event, Nanos};
use minerva_operator_server::call::{BackgroundAnswer, BackgroundCall, Shown};
use minerva_store::{BackgroundRow, Store, StoreError};
use std::collections::BTreeMap;
use std::path::Path;

/// Of a plan's time, that are told of each queue.
const STRETCHES: usize = 24;

/// No queues yet; they are carried out by this program.
pub(crate) fn queues(config: &Config, roots: &Roots) -> Queues {
    let service_starter = is_service().then(|| "systemd-run".into());
    let worker = WorkerProgram {
        // By the link of the kernel, and as another process sees it: after an upgrade the path holds another version.
        program: format!("/proc/{}/exe", std::process::id()).into(),
        name: "minervad".into(),
        arguments: vec!["background".into()],
        service_starter,
    };
    let settings = Settings {
        runtime_dir: config.daemon.runtime_dir.clone(),
        state_dir: config.daemon.state_dir.clone(),
        cgroup_root: roots.cgroup.clone(),
        version: roots.version,
        parent: config.named.background_parent(),
        sys: roots.sys.clone(),
        proc: roots.proc.clone(),
        worker,
    };
    Queues::new(settings, roots.clone())
}

/// Whether systemd started this process itself, and so may have confined it: it tells each service its own number
/// (systemd.exec(5), `$SYSTEMD_EXEC_PID`, since version 248), which those that a service starts inherit.
fn is_service() -> bool {
    std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|text| text == std::process::id().to_string())
}

/// What a worker's process does.
pub(crate) fn work(runtime: &Path) -> anyhow::Result<()> {
    minerva_linux_background::work(runtime, Path::new("/sys")).map_err(anyhow::Error::new)
}

/// Ends all work, of a daemon that has ended and will not come back.
pub(crate) fn end_all(runtime_dir: &Path) -> anyhow::Result<()> {
    let holder = InstanceLock::holder(runtime_dir)?;
    if let Some(pid) = holder {
        let shown = runtime_dir.display();
        anyhow::bail!(
            "minervad (pid {pid}) runs in {shown}, whose work this is: stop it first, or use `minerva-ctl background remove`"
        );
    }
    let failed: Vec<String> = minerva_linux_background::end_all(runtime_dir).iter().map(WorkError::in_full).collect();
    anyhow::ensure!(failed.is_empty(), "some background work goes on: {}", failed.join("; "));
    Ok(())
}

impl Driver {
    /// Does what is asked. Whoever asked may have gone; the same holds below.
    pub(crate) fn background_asked(&mut self, call: BackgroundCall) {
        match call {
            BackgroundCall::Add(request, answer) => {
                let devices = &self.devices;
                match self.background.judge(request, |device| devices.contains_key(&device)) {
                    Ok((row, device)) => {
                        self.keep_then(
                            (row, Some(device)),
                            |store, row| store.add_background(row).map(|()| true),
                            answer,
                        );
                    }
                    Err(why) => drop(answer.send(Err(why))),
                }
            }
            BackgroundCall::Change(request, answer) => match self.background.change(&request) {
                Ok(Change::Keep(row, device)) => self.keep_then((*row, device), Store::update_background, answer),
                Ok(Change::Forget(id)) => self.forget_then(id, answer),
                Err(why) => drop(answer.send(Err(why))),
            },
            BackgroundCall::Show(request, answer) => drop(answer.send(self.show_background(&request))),
            BackgroundCall::Calibrate(request, answer) => drop(answer.send(self.calibrate(&request))),
        }
    }

    /// Puts in force what the store has, and answers.
    pub(crate) fn background_kept(&mut self, kept: BackgroundKept) {
        match kept {
            BackgroundKept::Kept { row, device, kept, answer } => {
                let outcome = kept.map(|()| {
                    let id = row.id;
                    if let Some(event) = self.background.set(*row, device) {
                        self.feed(event);
                    }
                    self.shown_queue(id)
                });
                drop(answer.send(outcome));
            }
            BackgroundKept::Forgotten { id, forgotten, answer } => {
                let outcome = forgotten.map(|()| {
                    let shown = self.shown_queue(id);
                    if let Some(event) = self.background.remove(id) {
                        self.feed(event);
                    }
                    shown
                });
                drop(answer.send(outcome));
            }
        }
    }

    /// Keeps a queue, new or changed, and then puts it in force unless it is removed by then.
    fn keep_then(
        &self,
        (row, device): (BackgroundRow, Option<DeviceId>),
        keep: fn(&Store, &BackgroundRow) -> Result<bool, StoreError>,
        answer: BackgroundAnswer,
    ) {
        let (kept_row, commands) = (row.clone(), self.commands.clone());
        self.memory.questions().look_then(
            move |store| keep(store, &kept_row),
            move |kept| {
                let is_there =
                    |is_there: bool| is_there.then_some(()).ok_or_else(|| format!("{} is removed", row.name));
                let kept = kept.and_then(is_there);
                let kept = BackgroundKept::Kept { row: Box::new(row), device, kept, answer };
                commands.send_surely(Command::Background(kept));
            },
        );
    }

    /// Forgets a queue, and then ends it.
    fn forget_then(&self, id: BackgroundId, answer: BackgroundAnswer) {
        let commands = self.commands.clone();
        self.memory.questions().look_then(
            move |store| store.forget_background(id),
            move |forgotten| {
                let forgotten = BackgroundKept::Forgotten { id, forgotten, answer };
                commands.send_surely(Command::Background(forgotten));
            },
        );
    }

    /// Keeps how far a queue is. What the store forgot meanwhile must not come back, or it would run after the next start.
    fn keep_row(&self, row: BackgroundRow) {
        let tell = |kept: Result<bool, String>| {
            if let Err(error) = kept {
                tracing::warn!(error, "how far background work is was not kept, trying again");
            }
        };
        self.memory.questions().look_then(move |store| store.update_background(&row), tell);
    }

    fn disk_name(&self, id: DeviceId) -> Option<String> {
        self.devices.get(&id).map(|device| device.name.clone())
    }

    fn shown_queue(&self, id: BackgroundId) -> v1::BackgroundQueue {
        let view = self.engine.background().find(|view| view.queue.id == id);
        self.background.shown(id, |device| self.disk_name(device), view.as_ref())
    }

    /// What the loop has to say; plans are made elsewhere. Errors: a sentence.
    fn show_background(&self, request: &v1::BackgroundRequest) -> Result<Shown, String> {
        // Whoever waits for work would take it for removed.
        self.background.check_loaded()?;
        let views: BTreeMap<BackgroundId, WorkView<'_>> =
            self.engine.background().map(|view| (view.queue.id, view)).collect();
        let queues = self.background.shown_all(|device| self.disk_name(device), |id| views.get(&id).cloned());
        let planned: Vec<(DeviceId, String)> =
            self.background.disks_to_plan().into_iter().map(|device| (device, self.disk_called(device))).collect();
        let disks = planned.iter().map(|(device, name)| self.shown_disk_of_work(*device, name.clone())).collect();
        let shown = v1::BackgroundResponse { queues, plans: Vec::new(), disks };
        let asked = request.span();
        let Some(span) = span_of(asked) else { return Ok(Shown::by(|| shown)) };
        let (planning, names) = (self.engine.background_planning(), self.background.names());
        Ok(Shown::by(move || {
            let plan = |(device, name): (DeviceId, String)| {
                let plan = planning.plan(device, span, STRETCHES);
                shown_plan(&names, (name, asked), &plan, planning.space_date(device, span))
            };
            v1::BackgroundResponse { plans: planned.into_iter().map(plan).collect(), ..shown }
        }))
    }

    fn shown_disk_of_work(&self, device: DeviceId, name: String) -> v1::BackgroundDisk {
        let serves = self.engine.disk_serves(device);
        v1::BackgroundDisk {
            device: name,
            bytes_per_busy_second: serves.map_or(0.0, |serves| serves.bytes_per_busy_second),
            requests_per_second: serves.map_or(0.0, |serves| serves.requests_per_second),
            calibrated_seconds: serves.map_or(0.0, |serves| serves.busy_seconds),
            calibrating_left_ns: self.engine.calibrating_left(device).map(|left| left.0),
        }
    }

    fn calibrate(&mut self, request: &v1::CalibrateBackgroundRequest) -> Result<(), String> {
        self.background.check_loaded()?;
        let name = request.device.as_str();
        let found = self.devices.values().find(|device| device.name == name).map(|device| device.id);
        let device =
            found.ok_or_else(|| format!("'{name}' is no disk that Minerva watches; `minerva-ctl top` shows them"))?;
        if !self.background.disks_to_plan().contains(&device) {
            return Err(format!("no background work waits on {name}: there is nothing to plan for it"));
        }
        self.feed(Event::BackgroundCalibrate { device, length: Nanos(request.length_ns) });
        Ok(())
    }

    /// The engine measured what a disk serves.
    pub(crate) fn background_calibrated(&self, device: DeviceId, calibration: DiskCalibration) {
        let Some(name) = self.disk_name(device) else { return };
        let DiskCalibration { bytes_per_busy_second, busy_seconds, .. } = calibration;
        tracing::info!(device = name, bytes_per_busy_second, busy_seconds, "calibrated without background work");
        let tell = |kept: Result<(), String>| {
            if let Err(error) = kept {
                tracing::warn!(error, "what a disk serves was not kept, and is forgotten at the next start");
            }
        };
        if !self.memory.keep_calibration(device, calibration, tell) {
            tracing::warn!(
                device = name,
                "it says nothing of itself by which it is told from others: what it serves is forgotten at the next start"
            );
        }
    }

    /// Once a slice, before the sample: reads what is registered, if that has not been done, and tells the engine how far all is.
    pub(crate) fn carry_background(&mut self) {
        let devices = &self.devices;
        let is_watched = |device| devices.contains_key(&device);
        let mut events = Vec::new();
        if !self.background.is_loaded() {
            let Some(stored) = self.memory.background() else { return };
            events.extend(self.background.load(stored, is_watched));
        }
        events.extend(self.background.find_disks(is_watched));
        let reported = self.background.reported();
        reported.rows.into_iter().for_each(|row| self.keep_row(row));
        events.into_iter().chain(reported.events).for_each(|event| self.feed(event));
    }

    /// The engine learnt what a queue costs.
    pub(crate) fn background_learnt(&mut self, id: BackgroundId, cost: BackgroundCost) {
        if let Some(row) = self.background.learnt(id, cost) {
            self.keep_row(row);
        }
    }

    /// Stops all work, which waits for the next daemon.
    pub(crate) fn stop_background(&mut self) {
        self.background.stop().into_iter().for_each(|row| self.keep_row(row));
    }
}

#[cfg(test)]
mod tests {
    use super::end_all;
    use minerva_linux_actuate::InstanceLock;

    #[test]
    fn the_work_of_a_daemon_that_runs_is_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let runtime_dir = folder.path().join("run");
        let daemon = InstanceLock::acquire(&runtime_dir).unwrap();
        let refused = end_all(&runtime_dir).unwrap_err().to_string();
        assert!(refused.contains(&format!("minervad (pid {}) runs", std::process::id())), "{refused}");
        drop(daemon);
        end_all(&runtime_dir).unwrap();
    }
}
