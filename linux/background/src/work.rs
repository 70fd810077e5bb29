//! The worker: a process of its own that does one queue's work, in groups that its daemon freezes and weighs. It outlives the daemon.

use crate::directories::{Ended, QueueDirectories, read, replace};
use crate::error::WorkError;
use crate::freezer::Freezer;
use crate::output::Kept;
use crate::spec::Kind;
use crate::worker::{Assignment, Worker};
use crate::{balance, defragment, delete_all, md, scrub, snapshot, trim};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A group may be swept away before its first process; then it is made again.
const ENTER_TRIES: usize = 16;
const NICE: i32 = 10;
/// How often a command's running time is written down.
const COMMAND_PERIOD: Duration = Duration::from_millis(500);

/// Does the work of the assignment in a runtime directory, unless another worker does or did.
///
/// # Errors
/// Only where that cannot even be written down.
pub fn work(runtime: &Path, sys: &Path) -> Result<(), WorkError> {
    let path = runtime.join("spec");
    let Some(assignment) = read::<Assignment>(&path) else {
        return Err(WorkError::Refused(format!("{} holds no assignment", path.display())));
    };
    let place = assignment.place.clone();
    let Some(_lock) = place.lock()? else { return Ok(()) };
    if place.ended().is_some() {
        return Ok(());
    }
    // Whoever works in the background leaves the processor to others too; what the daemon's thread has is not for it.
    let _ = rustix::process::setpriority_process(None, NICE);
    let mut worker = Worker::new(assignment);
    let outcome = enter(&place).and_then(|()| run(&mut worker, sys));
    let (is_done, message) = match outcome {
        Ok(()) => (true, worker.message().to_owned()),
        Err(error) => (false, error.in_full()),
    };
    let progress = place.progress().unwrap_or_default();
    replace(&place.state.join("result"), &Ended { is_done, message, progress }, true)
}

fn run(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    match worker.spec().kind {
        Kind::Delete => delete_all::run(worker),
        Kind::Command => command(worker),
        Kind::BtrfsScrub => scrub::run(worker),
        Kind::BtrfsBalance => balance::run(worker),
        Kind::BtrfsDefragment => defragment::run(worker),
        Kind::BtrfsSnapshotDelete => snapshot::run(worker),
        Kind::MdCheck => md::check(worker, sys),
        Kind::MdResync => md::resync(worker, sys),
        Kind::Fstrim => {
            trim::run(worker)?;
            worker.say(&format!("{} bytes were told to be unused", worker.freed_bytes()));
            Ok(())
        }
    }
}

fn command(worker: &Worker) -> Result<(), WorkError> {
    let Assignment { spec, place } = worker.assignment();
    let failed = |why: String| Err(WorkError::Refused(why));
    // Before it begins, so that it is never begun twice by mistake.
    replace(&place.state.join("begun"), &(), true)?;
    let path = place.state.join("output");
    let (reader, output) = std::io::pipe().map_err(WorkError::io("make a pipe to", &path))?;
    let errors = output.try_clone().map_err(WorkError::io("make a pipe to", &path))?;
    let kept = Kept::begin(&path, reader)?;
    let program = spec.command.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(spec.command.iter().skip(1)).current_dir(&spec.path);
    let mut child = match command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn() {
        Ok(child) => child,
        Err(error) => return failed(format!("{program} could not be started: {error}")),
    };
    // It holds the pipe's other end, which only the command and what it starts are to have.
    drop(command);
    let (began, before) = (Instant::now(), spec.position);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {
                // Frozen time counts here too; what it ran for, the daemon knows.
                let seconds = before + began.elapsed().as_secs();
                worker.progress(0.0, None, seconds);
                std::thread::sleep(COMMAND_PERIOD);
            }
            Err(error) => return failed(format!("{program} could not be waited for: {error}")),
        }
    };
    kept.wait();
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => failed(format!("{program} ended with status {code}; see {}", path.display())),
        (None, signal) => failed(format!("{program} was ended by signal {}", signal.unwrap_or(0))),
    }
}

/// Moves this process into its groups. The one that can be frozen is so, until the daemon lets it run.
fn enter(place: &QueueDirectories) -> Result<(), WorkError> {
    let QueueDirectories { groups, .. } = place;
    let mut last = Ok(());
    for _ in 0..ENTER_TRIES {
        crate::groups::make(&groups.io)?;
        last = fs::write(groups.io.join("cgroup.procs"), "0").map_err(WorkError::io("enter", &groups.io));
        if last.is_ok() {
            break;
        }
    }
    last?;
    if let Some(group) = &groups.processors {
        // Work that uses every processor is better than none, and the daemon says that it is not confined.
        let _ = fs::write(group.join("cgroup.procs"), "0");
    }
    // Last: this process may be frozen from here on.
    Freezer::at(&groups.freezer).enter()
}
