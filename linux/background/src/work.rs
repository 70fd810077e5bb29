//! The worker: a process of its own that does one queue's work, in groups that its daemon freezes and weighs. It outlives the daemon.

use crate::directories::{Ended, QueueDirectories, read, replace};
use crate::error::WorkError;
use crate::freezer::Freezer;
use crate::output::Kept;
use crate::spec::Kind;
use crate::worker::{Assignment, Worker};
use crate::{balance, defragment, delete_all, md, scrub, snapshot, trim};
use rustix::process::fchdir;
use sd_notify::NotifyState;
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
    // Whoever made a service of this process waits for it. Where nobody did, nothing happens.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    if place.ended().is_some() {
        return Ok(());
    }
    // Whoever works in the background leaves the processor to others too; what the daemon's thread has is not for it.
    let _ = rustix::process::setpriority_process(None, NICE);
    let mut worker = Worker::new(assignment);
    let outcome = enter(&place).and_then(|()| run(&mut worker, sys));
    let progress = place.progress().unwrap_or_default();
    let is_absent = matches!(outcome, Err(WorkError::Absent(_)));
    let (is_done, message) = match outcome {
        Ok(()) => (true, worker.message().to_owned()),
        Err(error) => (false, error.in_full()),
    };
    replace(&place.state.join("result"), &Ended { is_done, is_absent, message, progress }, true)
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
        Kind::Fstrim => trim::run(worker, sys),
    }
}

fn command(worker: &Worker) -> Result<(), WorkError> {
    let Assignment { spec, place } = worker.assignment();
    let failed = |why: String| Err(WorkError::Refused(why));
    // Not by its path, which may lead to another by then: the command is begun where this process is.
    fchdir(spec.open()?).map_err(WorkError::io("go to", &spec.path))?;
    // Before it begins, so that it is never begun twice by mistake.
    replace(&place.state.join("begun"), &(), true)?;
    let path = place.state.join("output");
    let (reader, output) = std::io::pipe().map_err(WorkError::io("make a pipe to", &path))?;
    let errors = output.try_clone().map_err(WorkError::io("make a pipe to", &path))?;
    let kept = Kept::begin(&path, reader)?;
    let program = spec.command.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(spec.command.iter().skip(1));
    // That is for the worker, not for what it runs.
    command.env_remove("NOTIFY_SOCKET");
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

/// Moves this process into its groups. The one that can be frozen is so, until the daemon lets it run; also where a daemon that gave this worker
/// up has removed it, and does not know yet that it came.
fn enter(place: &QueueDirectories) -> Result<(), WorkError> {
    let QueueDirectories { groups, .. } = place;
    let freezer = Freezer::at(&groups.freezer);
    // First, as it may be the one of the disk controller too.
    retried(|| {
        freezer.make_frozen_if_gone()?;
        crate::groups::make(&groups.io)?;
        fs::write(groups.io.join("cgroup.procs"), "0").map_err(WorkError::io("enter", &groups.io))
    })?;
    if let Some(group) = &groups.processors {
        // Work that uses every processor is better than none, and the daemon says that it is not confined.
        let _ = fs::write(group.join("cgroup.procs"), "0");
    }
    // Last: this process may be frozen from here on.
    retried(|| freezer.make_frozen_if_gone().and_then(|()| freezer.enter()))
}

fn retried(mut attempt: impl FnMut() -> Result<(), WorkError>) -> Result<(), WorkError> {
    let mut last = attempt();
    for _ in 1..ENTER_TRIES {
        if last.is_ok() {
            break;
        }
        last = attempt();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::{enter, run};
    use crate::directories::QueueDirectories;
    use crate::error::WorkError;
    use crate::freezer::Freezer;
    use crate::loop_disk::{self, LoopDisk};
    use crate::spec::Kind;
    use crate::worker::Worker;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    const PLACE: &str = "MINERVA_TEST_PLACE_TO_ENTER";

    /// A process of its own, as the one that enters is frozen.
    #[test]
    fn child_that_enters() {
        let Ok(place) = std::env::var(PLACE) else { return };
        enter(&serde_json::from_str::<QueueDirectories>(&place).unwrap()).unwrap();
        println!("it runs");
    }

    #[test]
    fn a_worker_that_comes_after_its_group_was_removed_waits_frozen() {
        let root = tempfile::tempdir().unwrap();
        let hierarchies = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"].map(Path::new);
        for hierarchy in hierarchies.into_iter().filter(|root| root.join("cgroup.procs").exists()) {
            let mut place = Worker::of(root.path(), Kind::Delete, root.path()).assignment().place.clone();
            place.groups.freezer = hierarchy.join(format!("minerva-test-enter-{}", std::process::id()));
            place.groups.io.clone_from(&place.groups.freezer);
            let freezer = Freezer::at(&place.groups.freezer);
            if freezer.make_frozen().is_err() {
                println!("skipped: needs root, and a hierarchy that can freeze");
                continue;
            }
            // As the daemon does with that of work that failed.
            assert!(freezer.remove());
            let mut late = Command::new(std::env::current_exe().unwrap());
            late.args(["--exact", "work::tests::child_that_enters", "--nocapture"]).stdout(Stdio::piped());
            let mut late = late.env(PLACE, serde_json::to_string(&place).unwrap()).spawn().unwrap();
            // An empty group says that it is frozen too. A child that is not frozen ends.
            let procs = place.groups.freezer.join("cgroup.procs");
            let is_in = || fs::read_to_string(&procs).is_ok_and(|list| !list.is_empty()) && freezer.is_frozen();
            while !is_in() && late.try_wait().unwrap().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let (is_set, is_frozen) = (freezer.is_set(), freezer.is_frozen());
            // The child may be of several threads, of which this is the end too.
            freezer.kill().unwrap();
            let said = String::from_utf8(late.wait_with_output().unwrap().stdout).unwrap();
            while !freezer.remove() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert_eq!((is_set, is_frozen), (Some(true), true), "{hierarchy:?}");
            assert!(!said.contains("it runs"), "{hierarchy:?}: {said}");
        }
    }

    /// Work of a kind on a btrfs.
    fn worker(disk: &LoopDisk, kind: Kind) -> Worker {
        let path: PathBuf = match kind {
            Kind::Delete => disk.mounted.join("tree"),
            Kind::BtrfsSnapshotDelete => disk.mounted.join("old"),
            Kind::Command
            | Kind::BtrfsScrub
            | Kind::BtrfsBalance
            | Kind::BtrfsDefragment
            | Kind::MdCheck
            | Kind::MdResync
            | Kind::Fstrim => disk.mounted.clone(),
        };
        let mut worker = Worker::of(disk.root(), kind, &path);
        if kind == Kind::Command {
            worker.spec_mut().command = ["sh", "-c", "echo ran > here"].map(str::to_owned).to_vec();
        }
        worker
    }

    #[test]
    fn work_whose_file_system_is_not_mounted_does_nothing_and_is_done_once_it_is() {
        let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
        fs::create_dir(disk.mounted.join("tree")).unwrap();
        let root = disk.mounted.to_str().unwrap();
        loop_disk::run("btrfs", &["subvolume", "snapshot", "-r", root], &disk.mounted.join("old"));
        let mut workers: Vec<Worker> =
            Kind::ALL.into_iter().filter(|kind| !kind.is_of_array()).map(|kind| worker(&disk, kind)).collect();
        disk.unmount();
        for worker in &mut workers {
            let ended = run(worker, Path::new("/sys"));
            assert!(matches!(ended, Err(WorkError::Absent(_))), "{:?}: {ended:?}", worker.spec().kind);
            assert!(!worker.assignment().place.has_begun());
        }
        assert_eq!(fs::read_dir(&disk.mounted).unwrap().count(), 0, "nothing ran in the empty directory");
        disk.mount();
        for worker in &mut workers {
            run(worker, Path::new("/sys")).unwrap_or_else(|error| panic!("{:?}: {error:?}", worker.spec().kind));
        }
        assert_eq!(fs::read_to_string(disk.mounted.join("here")).unwrap(), "ran\n");
        assert!(!disk.mounted.join("tree").exists() && !disk.mounted.join("old").exists());
        // The command left its process there.
        std::env::set_current_dir("/").unwrap();
    }

    #[test]
    fn a_scrub_adds_to_what_the_worker_before_it_found() {
        let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
        fs::write(disk.mounted.join("file"), vec![1; 4 << 20]).unwrap();
        loop_disk::run("sync", &["-f"], &disk.mounted);
        let mut worker = worker(&disk, Kind::BtrfsScrub);
        let found = &mut worker.spec_mut().found;
        (found.bytes, found.errors, found.uncorrectable) = (1 << 40, 3, 1);
        run(&mut worker, Path::new("/sys")).unwrap();
        assert_eq!(worker.message(), "3 errors, 1 of them could not be corrected");
        let progress = worker.assignment().place.progress().unwrap();
        assert!(progress.done >= ((1_u64 << 40) + (4 << 20)) as f64, "{progress:?}");
        assert_eq!((progress.found.bytes as f64, progress.found.errors), (progress.done, 3));
    }
}
