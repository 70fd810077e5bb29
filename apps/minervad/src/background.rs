//! What the slice loop does with background work. What is to last is in the store before it is answered.

use crate::command::{BackgroundKept, Command};
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_background_queues::{Change, Queues, span_of};
use minerva_config::Config;
use minerva_linux_background::{Settings, WorkerProgram};
use minerva_linux_observe::Roots;
use minerva_model::{BackgroundCost, BackgroundId, DeviceId};
use minerva_operator_server::call::{BackgroundAnswer, BackgroundCall};
use minerva_store::BackgroundRow;
use std::path::Path;

/// No queues yet; they are carried out by this program.
pub(crate) fn queues(config: &Config, roots: &Roots) -> Queues {
    let worker = WorkerProgram {
        // By the link of the kernel: after an upgrade the path holds another version.
        program: "/proc/self/exe".into(),
        name: "minervad".into(),
        arguments: vec!["background".into()],
    };
    let settings = Settings {
        runtime_dir: config.daemon.runtime_dir.clone(),
        state_dir: config.daemon.state_dir.clone(),
        cgroup_root: roots.cgroup.clone(),
        version: roots.version,
        parent: config.named.parent.clone(),
        sys: roots.sys.clone(),
        proc: roots.proc.clone(),
        worker,
    };
    Queues::new(settings, roots.clone())
}

/// What a worker's process does.
pub(crate) fn work(runtime: &Path) -> anyhow::Result<()> {
    minerva_linux_background::work(runtime, Path::new("/sys")).map_err(anyhow::Error::new)
}

impl Driver {
    /// Does what is asked. Whoever asked may have gone; the same holds below.
    pub(crate) fn background_asked(&mut self, call: BackgroundCall) {
        match call {
            BackgroundCall::Add(request, answer) => {
                let devices = &self.devices;
                match self.background.judge(request, |device| devices.contains_key(&device)) {
                    Ok((row, device)) => self.keep_then(row, Some(device), answer),
                    Err(why) => drop(answer.send(Err(why))),
                }
            }
            BackgroundCall::Change(request, answer) => match self.background.change(&request) {
                Ok(Change::Keep(row, device)) => self.keep_then(*row, device, answer),
                Ok(Change::Forget(id)) => self.forget_then(id, answer),
                Err(why) => drop(answer.send(Err(why))),
            },
            BackgroundCall::Show(request, answer) => drop(answer.send(self.show_background(&request))),
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

    /// Keeps a queue, and then puts it in force.
    fn keep_then(&self, row: BackgroundRow, device: Option<DeviceId>, answer: BackgroundAnswer) {
        let (kept_row, commands) = (row.clone(), self.commands.clone());
        self.memory.questions().look_then(
            move |store| store.keep_background(&kept_row),
            move |kept| {
                let kept = BackgroundKept::Kept { row: Box::new(row), device, kept, answer };
                // The loop may have ended.
                let _ = commands.send(Command::Background(kept));
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
                // The loop may have ended.
                let _ = commands.send(Command::Background(forgotten));
            },
        );
    }

    fn keep_row(&self, row: BackgroundRow) {
        let tell = |kept: Result<(), String>| {
            if let Err(error) = kept {
                tracing::warn!(error, "how far background work is was not kept, trying again");
            }
        };
        self.memory.questions().look_then(move |store| store.keep_background(&row), tell);
    }

    fn disk_name(&self, id: DeviceId) -> Option<String> {
        self.devices.get(&id).map(|device| device.name.clone())
    }

    fn shown_queue(&self, id: BackgroundId) -> v1::BackgroundQueue {
        let view = self.engine.background().find(|view| view.queue.id == id);
        self.background.shown(id, |device| self.disk_name(device), view.as_ref())
    }

    fn show_background(&self, request: &v1::BackgroundRequest) -> v1::BackgroundResponse {
        let view = |id| self.engine.background().find(|view| view.queue.id == id);
        let queues = self.background.shown_all(|device| self.disk_name(device), view);
        let Some(span) = span_of(request.span()) else { return v1::BackgroundResponse { queues, plans: Vec::new() } };
        let disks = self.background.disks_to_plan().into_iter();
        let plan = |device: DeviceId| {
            let name = self.disk_called(device);
            let (plan, space) = (self.engine.background_plan(device, span), self.engine.space_date(device, span));
            self.background.shown_plan(name, request.span(), &plan, space)
        };
        v1::BackgroundResponse { queues, plans: disks.map(plan).collect() }
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
