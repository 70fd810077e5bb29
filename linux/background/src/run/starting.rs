//! Starting a worker: as a child, or as a service of its own where this process is one.
//!
//! A service may not do what background work is for: under `ProtectSystem=` it sees all file systems read-only, under `ProtectHome=` no
//! home, and it has few capabilities. Workers and the commands that they run are what root asked for, and nothing of what tenants send
//! reaches them. So systemd starts them outside (docs/adr/0079).

use super::Run;
use crate::directories::{QueueDirectories, replace};
use crate::error::WorkError;
use crate::groups;
use crate::processors::Hierarchy;
use crate::spec::Spec;
use crate::worker::Assignment;
use minerva_model::{BackgroundId, BackgroundState};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

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
                command.arg(format!("--unit=minerva-background-{id}.service"));
                command.arg(format!("--description=Background work {id} of minervad"));
                // It is there once it holds its lock. One that is frozen does not end by itself when the host goes down.
                command.args(["--service-type=notify", "--property=NotifyAccess=main", "--property=TimeoutStopSec=5s"]);
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
        let said = if worker.service_starter.is_some() { self.starter_said() } else { errors };
        let file = File::options().create(true).append(true).open(&said).map_err(WorkError::io("open", &said))?;
        let program = PathBuf::from(command.get_program());
        self.child = Some(command.stderr(file).spawn().map_err(WorkError::io("start", &program))?);
        self.is_alive = true;
        self.is_running = false;
        Ok(())
    }

    /// What it is that was started has ended: the worker, or what made a service of it. If that failed there is no worker, and to start it
    /// again and again would fail alike.
    pub(super) fn child_ended(&mut self, status: ExitStatus) {
        self.child = None;
        let path = self.starter_said();
        let Ok(said) = fs::read_to_string(&path) else { return };
        let _ = fs::remove_file(&path);
        if !status.success() && !self.place.is_alive() && self.place.ended().is_none() {
            self.state = BackgroundState::Failed;
            // Of a worker that ended at once the starter says nothing.
            let errors = fs::read_to_string(self.place.state.join("errors")).unwrap_or_default();
            let last = said.lines().next_back().or_else(|| errors.lines().next_back());
            let last = last.unwrap_or("`journalctl` may say more");
            self.message = format!("systemd-run did not start it ({status}): {last}");
        }
    }

    /// What the starter of the worker's service says.
    fn starter_said(&self) -> PathBuf {
        self.place.runtime.join("starter")
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerProgram;
    use crate::run::Run;
    use crate::spec::Kind;
    use crate::worker::{Assignment, Worker};
    use minerva_model::{BackgroundState, DeviceId, Nanos};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    /// A worker by a script in place of systemd-run.
    fn started(root: &Path, script: &str) -> Run {
        let starter = root.join("systemd-run");
        fs::write(&starter, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&starter, fs::Permissions::from_mode(0o755)).unwrap();
        let worker = WorkerProgram {
            program: "/usr/bin/minervad".into(),
            name: "minervad".into(),
            arguments: vec!["background".into()],
            service_starter: Some(starter.into()),
        };
        let Assignment { spec, place } = Worker::of(root, Kind::Delete, root).assignment().clone();
        let mut run = Run::new(spec, DeviceId { major: 8, minor: 0 }, place, Nanos::ZERO, Nanos::ZERO);
        fs::create_dir_all(&run.place.groups.freezer).unwrap();
        run.start(&worker, None).unwrap();
        while run.child.is_some() {
            run.look();
            std::thread::sleep(Duration::from_millis(5));
        }
        run.look();
        run
    }

    #[test]
    fn a_service_is_asked_for_with_the_worker_and_its_directory() {
        let root = tempfile::tempdir().unwrap();
        let run = started(root.path(), &format!("printf '%s\\n' \"$@\" > {}/said", root.path().display()));
        let said = fs::read_to_string(root.path().join("said")).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let at = lines.iter().position(|line| *line == "--").unwrap();
        let runtime = run.place.runtime.display().to_string();
        assert_eq!(lines[at + 1..], ["/usr/bin/minervad", "background", runtime.as_str()]);
        assert!(lines[..at].contains(&"--service-type=notify"), "{said}");
        assert_eq!(run.state, BackgroundState::Waiting, "{}", run.message);
    }

    #[test]
    fn what_no_service_can_be_made_of_fails_with_the_reason_and_is_not_tried_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let run = started(root.path(), "echo 'Failed to connect to bus' >&2; exit 1");
        assert_eq!(run.state, BackgroundState::Failed);
        assert!(run.message.ends_with("exit status: 1): Failed to connect to bus"), "{}", run.message);
        let errors = run.place.state.join("errors");
        let run = started(root.path(), &format!("echo 'no space left' >> {}; exit 1", errors.display()));
        assert!(run.message.ends_with("exit status: 1): no space left"), "{}", run.message);
    }

    #[test]
    fn a_child_says_nothing_to_the_daemons_service_manager() {
        let root = tempfile::tempdir().unwrap();
        let place = Worker::of(root.path(), Kind::Delete, root.path()).assignment().place.clone();
        let worker = WorkerProgram {
            program: "true".into(),
            name: "minervad".into(),
            arguments: Vec::new(),
            service_starter: None,
        };
        let command = worker.command(minerva_model::BackgroundId(1), &place, Path::new("errors"));
        assert!(command.get_envs().any(|variable| variable == (OsStr::new("NOTIFY_SOCKET"), None)));
        assert_eq!(command.get_program(), "true");
    }
}
