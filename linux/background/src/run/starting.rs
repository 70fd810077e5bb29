//! Starting a worker: as a child, or as a service of its own where this process is one.
//!
//! A service may not do what background work is for: under `ProtectSystem=` it sees all file systems read-only, under `ProtectHome=` no
//! home, and it has few capabilities. Workers and the commands that they run are what root asked for, and nothing of what tenants send
//! reaches them. So systemd starts them outside (docs/adr/0079).

#[cfg(test)]
mod tests;

use super::Run;
use crate::directories::{QueueDirectories, replace};
use crate::error::WorkError;
use crate::groups;
use crate::processors::Hierarchy;
use crate::spec::Spec;
use crate::worker::Assignment;
use minerva_model::{BackgroundId, BackgroundState, Nanos};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// How often in a row a service is asked for again that was refused, after a second, and after four times as long each time: PID 1 may be busy,
/// or not be done with the service before this one.
const RETRIES: u32 = 4;

/// What is said of the worker after one that died, before it is there and before it does anything.
const ANOTHER_COMES: &str = "; another one is begun in a while";
const ANOTHER_CAME: &str = "; another one was begun";

/// Ends what is left in the working directory, a group. A frozen process of v1 takes the signal when it goes on.
const END_OF_GROUP: &str = "if [ -e cgroup.kill ]; then echo 1 > cgroup.kill; else kill -9 $(cat cgroup.procs); echo THAWED > freezer.state; fi";

/// How to start a worker: a program and its arguments, to which the runtime directory of the queue is added.
#[derive(Clone, Debug)]
pub struct WorkerProgram {
    /// The program.
    pub program: OsString,
    /// Its name for process lists.
    pub name: OsString,
    /// Arguments before the directory.
    pub arguments: Vec<OsString>,
    /// `systemd-run`, where workers are to be services of their own and not children.
    pub service_starter: Option<OsString>,
}

impl WorkerProgram {
    /// What starts the worker of a queue. The worker says what it cannot say otherwise in the file `errors`.
    fn command(&self, id: BackgroundId, place: &QueueDirectories, errors: &Path) -> Command {
        let mut command = match &self.service_starter {
            Some(starter) => {
                let mut command = Command::new(starter);
                command.args(["--quiet", "--collect", "--no-ask-password"]);
                command.arg(format!("--unit={}", service(id)));
                command.arg(format!("--description=Background work {id} of minervad"));
                // It is there once it holds its lock. One that is frozen does not end by itself when the host goes down.
                command.args(["--service-type=notify", "--property=NotifyAccess=main", "--property=TimeoutStopSec=5s"]);
                // Nothing but names: what a shell or systemd reads otherwise is lost at `systemctl daemon-reload` with systemd 252.
                let mut end = OsString::from("--property=ExecStopPost=-/bin/sh ");
                end.push(end_of_group(place));
                command.arg(end);
                let mut append = OsString::from("--property=StandardError=append:");
                append.push(errors);
                command.arg(append).arg("--").arg(&self.program);
                command
            }
            None => {
                let mut command = Command::new(&self.program);
                command.arg0(&self.name);
                command
            }
        };
        command.args(&self.arguments).arg(&place.runtime).current_dir("/");
        // A group of its own: what is typed at the daemon's terminal is not meant for it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        // What a worker says to a service manager is not said for the daemon.
        command.env_remove("NOTIFY_SOCKET");
        command
    }
}

/// The service that a worker is.
fn service(id: BackgroundId) -> String {
    format!("minerva-background-{id}.service")
}

/// The script by which all that is in a worker's group ends with its service. The worker leaves the service's own group, and so do the
/// processes of a command, which systemd would not find: frozen, they would keep a host from going down. For a shell: the program of this
/// process may be gone by then.
fn end_of_group(place: &QueueDirectories) -> PathBuf {
    place.runtime.join("end")
}

fn write_end_of_group(place: &QueueDirectories) -> Result<(), WorkError> {
    let (path, group) = (end_of_group(place), place.groups.freezer.to_string_lossy().replace('\'', r"'\''"));
    fs::write(&path, format!("cd '{group}' && {END_OF_GROUP}\n")).map_err(WorkError::io("write", &path))
}

/// Attempts to have a service made, or to have a worker get on, that failed one after the other.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failed: u32,
    /// When the next one may be.
    next: Nanos,
    /// Items that were done when the last one failed, and where another one goes on.
    done: (f64, u64),
}

impl Attempts {
    pub(super) fn may_begin(&self, now: Nanos) -> bool {
        now >= self.next
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// One failed; whether there is to be another.
    fn failed(&mut self, now: Nanos) -> bool {
        self.next = now + Nanos::from_secs(4_u64.pow(self.failed.min(RETRIES)));
        self.failed += 1;
        self.failed <= RETRIES
    }

    /// So many items are done, and another one would go on there: if that is more than at the last failure, or elsewhere, that is over. Some
    /// workers count from 0 what they do themselves.
    fn gets_on(&mut self, done: (f64, u64)) -> bool {
        let gets_on = self.failed > 0 && (done.0 > self.done.0 || done.1 != self.done.1);
        if gets_on {
            *self = Self { done, ..Self::default() };
        }
        gets_on
    }
}

impl Run {
    pub(super) fn start(&mut self, worker: &WorkerProgram, hierarchy: Option<&Hierarchy>) -> Result<(), WorkError> {
        self.place.make()?;
        groups::make(&self.place.groups.io)?;
        self.freezer.make_frozen()?;
        let (position, found) = self.position();
        let spec = Spec { position, found, ..self.spec.clone() };
        if let (Some(hierarchy), Some(group)) = (hierarchy, &self.place.groups.processors)
            && let Err(error) = hierarchy.make(group)
        {
            self.processors_said = error.in_full();
        }
        replace(&self.place.runtime.join("spec"), &Assignment { spec, place: self.place.clone() }, false)?;
        let errors = self.place.state.join("errors");
        let mut command = worker.command(self.spec.id, &self.place, &errors);
        // What the worker before said is not said of this one.
        let file = File::create(&errors).map_err(WorkError::io("open", &errors))?;
        let said = self.starter_said();
        let is_service = worker.service_starter.is_some();
        let file = if is_service {
            write_end_of_group(&self.place)?;
            File::create(&said).map_err(WorkError::io("open", &said))?
        } else {
            file
        };
        let program = PathBuf::from(command.get_program());
        self.child = Some(command.stderr(file).spawn().map_err(WorkError::io("start", &program))?);
        self.is_alive = true;
        self.is_running = false;
        Ok(())
    }

    /// What it is that was started has ended: the worker, or what made a service of it. If that failed there is no worker. It is tried again
    /// some times, not for ever.
    pub(super) fn child_ended(&mut self, status: ExitStatus) {
        self.child = None;
        let path = self.starter_said();
        let Ok(said) = fs::read_to_string(&path) else { return };
        let _ = fs::remove_file(&path);
        if status.success() {
            // It was made: that its worker dies is another thing.
            if self.attempts.has_failed() {
                self.attempts = Attempts::default();
                self.message.clear();
            }
            return;
        }
        if self.place.is_alive() || self.place.ended().is_some() {
            return;
        }
        // Of a worker that ended at once the starter says nothing.
        let errors = fs::read_to_string(self.place.state.join("errors")).unwrap_or_default();
        let last = said.lines().next_back().or_else(|| errors.lines().next_back()).map(str::to_owned);
        let last = last.unwrap_or_else(|| format!("`journalctl -u {}` may say more", service(self.spec.id)));
        self.message = format!("systemd-run did not start it ({status}): {last}");
        if self.attempts.failed(self.counted_at) {
            self.message.push_str("; trying again");
        } else {
            self.state = BackgroundState::Failed;
        }
    }

    /// A worker has ended without saying how, whose work can be repeated: killed, or by a fault of its own. Another one is begun after a while,
    /// and after some that did nothing none any more.
    pub(super) fn worker_died(&mut self) {
        let done = self.done_and_position();
        self.deaths.gets_on(done);
        self.deaths.done = done;
        let errors = fs::read_to_string(self.place.state.join("errors")).unwrap_or_default();
        let last = errors.lines().next_back().map_or_else(|| "killed, it seems".to_owned(), str::to_owned);
        self.message = format!("its worker ended without saying how ({last})");
        if self.deaths.failed(self.counted_at) {
            self.message.push_str(ANOTHER_COMES);
        } else {
            self.state = BackgroundState::Failed;
            let count = self.deaths.failed;
            self.message
                .push_str(&format!(", {count} times without getting on: minerva-ctl background resume begins another"));
        }
    }

    /// The worker after one that died is there, and once it does more than that did what was said is over.
    pub(super) fn note_worker_gets_on(&mut self) {
        if self.deaths.failed > 0 && self.deaths.gets_on(self.done_and_position()) {
            self.message.clear();
        } else if let Some(why) = self.message.strip_suffix(ANOTHER_COMES) {
            self.message = format!("{why}{ANOTHER_CAME}");
        }
    }

    fn done_and_position(&self) -> (f64, u64) {
        let done = self.place.progress().map_or(self.before.done_items, |progress| progress.done);
        (done, self.position().0)
    }

    /// A worker is there: whatever was said of its start is over. One comes also after systemd-run gave up waiting for it.
    pub(super) fn note_worker_appeared(&mut self) {
        if self.child.is_none() && (self.attempts.failed > 0 || self.state == BackgroundState::Failed) {
            self.attempts = Attempts::default();
            self.message.clear();
        }
    }

    /// What the starter of the worker's service says.
    fn starter_said(&self) -> PathBuf {
        self.place.runtime.join("starter")
    }
}
