//! A queue without a disk of its own.

use super::{Before, LOOK_MAX, Run, WorkerProgram};
use crate::automount::Automounts;
use crate::duty::Chance;
use crate::loop_disk::LoopDisk;
use crate::spec::Kind;
use crate::worker::{Assignment, Worker};
use minerva_model::{BackgroundPace, DeviceId, Nanos};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn run(root: &Path, kind: Kind, path: &Path) -> Run {
    let Assignment { spec, place } = Worker::of(root, kind, path).assignment().clone();
    Run::new(spec, DeviceId { major: 8, minor: 0 }, place, Nanos::ZERO, Before::default())
}

#[test]
fn removing_work_whose_worker_does_not_end_yet_waits_for_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run(root.path(), Kind::Delete, root.path());
    // In no group, where no signal reaches it, as one that is in a long call into the kernel.
    let worker = Command::new("sleep").arg("600").spawn().unwrap();
    let id = worker.id();
    run.child = Some(worker);
    let sys = root.path().join("sys");
    assert!(!run.remove(&sys) && !run.remove(&sys), "it is looked at again later");
    assert!(Path::new(&format!("/proc/{id}")).exists());
    assert!(run.place.runtime.exists());
    run.child.as_mut().unwrap().kill().unwrap();
    while !run.remove(&sys) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!run.place.runtime.exists() && !run.place.state.exists());
}

/// As on v1 what was forked while the processes of the list were ended one by one.
#[test]
fn removing_work_ends_also_what_its_worker_left_in_its_group() {
    let root = tempfile::tempdir().unwrap();
    let mut run = run(root.path(), Kind::Command, root.path());
    let group = run.place.groups.freezer.clone();
    fs::create_dir_all(&group).unwrap();
    let mut left = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), left.id().to_string()).unwrap();
    let sys = root.path().join("sys");
    assert!(!run.remove(&sys) && run.place.runtime.exists(), "its group is not empty");
    let is_ended = left.try_wait().unwrap().is_some() || fs::read_to_string(group.join("freezer.state")).is_ok();
    // Also where it was not ended: it does not outlive the test.
    let _ = left.kill();
    assert_eq!((is_ended, left.wait().unwrap().signal()), (true, Some(9)));
    fs::remove_dir_all(&group).unwrap();
    assert!(run.remove(&sys) && !run.place.runtime.exists());
}

#[test]
fn the_space_of_an_array_is_not_that_of_the_file_system_with_its_node() {
    let root = tempfile::tempdir().unwrap();
    let knobs = root.path().join("sys/block/md7/md");
    fs::create_dir_all(&knobs).unwrap();
    fs::write(knobs.join("sync_action"), "idle\n").unwrap();
    let node = root.path().join("md7");
    fs::write(&node, "").unwrap();
    let of = |kind| {
        let report = run(root.path(), kind, &node).report(&Automounts::default(), Path::new("/sys"));
        (report.used_bytes > 0, report.size_bytes > 0, report.file_system.is_some())
    };
    assert_eq!(of(Kind::MdCheck), (false, false, false));
    assert_eq!(of(Kind::Delete), (true, true, true));
}

#[test]
fn the_space_of_a_file_system_that_is_not_mounted_is_not_that_of_the_one_above() {
    let Some(disk) = LoopDisk::new(&["mkfs.ext4", "-q", "-F"]) else { return };
    let tree = disk.mounted.join("tree");
    fs::create_dir(&tree).unwrap();
    let mut runs =
        [(Kind::Delete, &tree), (Kind::Command, &disk.mounted)].map(|(kind, path)| run(disk.root(), kind, path));
    let mut sizes = || {
        runs.each_mut().map(|run| {
            let report = run.report(&Automounts::default(), Path::new("/sys"));
            (report.size_bytes, report.file_system.is_some())
        })
    };
    let [(size, true), there] = sizes() else { panic!("it is mounted") };
    assert!((400 << 20..513 << 20).contains(&size) && there == (size, true), "{size}");
    disk.unmount();
    assert_eq!(sizes(), [(0, false); 2]);
    disk.mount();
    fs::remove_dir(&tree).unwrap();
    assert_eq!(sizes(), [(size, true); 2], "what is deleted leaves the file system");
}

#[test]
fn removing_a_check_of_an_array_ends_it_only_if_it_was_begun_for_that() {
    for is_ours in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let (sys, node) = (root.path().join("sys"), root.path().join("md7"));
        let action = sys.join("block/md7/md/sync_action");
        fs::create_dir_all(action.parent().unwrap()).unwrap();
        fs::write(&action, "check\n").unwrap();
        fs::write(&node, "").unwrap();
        let mut run = run(root.path(), Kind::MdCheck, &node);
        if is_ours {
            run.place.begin_check().unwrap();
        }
        while !run.remove(&sys) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(fs::read_to_string(&action).unwrap(), if is_ours { "idle" } else { "check\n" });
        assert_eq!(
            action.with_file_name("sync_min").exists(),
            is_ours,
            "the next check of another begins where it would"
        );
    }
}

/// A worker that does nothing, and is ended with the test.
pub(super) struct Sleeper(pub(super) Run);

impl Sleeper {
    pub(super) fn new(mut run: Run) -> Self {
        run.child = Some(Command::new("sleep").arg("600").spawn().unwrap());
        run.duty.pace = BackgroundPace::Gaps;
        run.look();
        Self(run)
    }

    pub(super) fn turn(&mut self, is_gap: bool, sys: &Path) {
        self.turn_at(Nanos::ZERO, is_gap, sys);
    }

    pub(super) fn turn_at(&mut self, now: Nanos, is_gap: bool, sys: &Path) {
        let worker = WorkerProgram {
            program: "false".into(),
            name: "false".into(),
            arguments: Vec::new(),
            service_starter: None,
        };
        self.0.look();
        self.0.turn(now, if is_gap { Chance::Gap } else { Chance::Beside }, (&worker, None), sys);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn work_that_the_guard_stopped_goes_on_as_told_once_its_daemon_does() {
    for is_gap in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let run = run(root.path(), Kind::Delete, root.path());
        let state = run.place.groups.freezer.join("freezer.state");
        fs::create_dir_all(state.parent().unwrap()).unwrap();
        let (is, other) = if is_gap { ("THAWED", "FROZEN") } else { ("FROZEN", "THAWED") };
        let mut sleeper = Sleeper::new(run);
        for _ in 0..2 {
            fs::write(&state, other).unwrap();
            sleeper.turn(is_gap, root.path());
            assert_eq!((fs::read_to_string(&state).unwrap().as_str(), sleeper.0.is_running), (is, is_gap));
        }
    }
}

/// `CLOCK_BOOTTIME` goes on meanwhile.
#[test]
fn work_does_not_run_while_the_host_is_suspended() {
    let root = tempfile::tempdir().unwrap();
    let run = run(root.path(), Kind::Delete, root.path());
    let state = run.place.groups.freezer.join("freezer.state");
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    fs::write(&state, "FROZEN").unwrap();
    let mut sleeper = Sleeper::new(run);
    sleeper.turn(true, root.path());
    sleeper.turn_at(Nanos::from_millis(250), true, root.path());
    assert_eq!(sleeper.0.report(&Automounts::default(), Path::new("/sys")).ran, Nanos::from_millis(250));
    sleeper.turn_at(Nanos::from_secs(8 * 3600), true, root.path());
    assert_eq!(sleeper.0.report(&Automounts::default(), Path::new("/sys")).ran, LOOK_MAX);
}

#[test]
fn an_array_that_the_guard_slowed_goes_on_as_told_once_its_daemon_does() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let mut sleeper = Sleeper::new(run(root.path(), Kind::MdCheck, &node));
    fs::create_dir_all(&sleeper.0.place.groups.freezer).unwrap();
    sleeper.turn(true, &sys);
    assert_eq!(speeds(&knobs), ["1000 (local)\n", "5000 (local)\n"]);
    sleeper.0.stop_with(&sys).unwrap();
    assert_eq!(speeds(&knobs), ["1", "1"]);
    sleeper.turn(true, &sys);
    assert_eq!(speeds(&knobs), ["1000", "5000"]);
}

#[test]
fn what_could_not_be_stopped_or_let_run_is_tried_again() {
    for is_gap in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let mut sleeper = Sleeper::new(run(root.path(), Kind::Delete, root.path()));
        sleeper.0.is_running = !is_gap;
        // Its group is not there.
        sleeper.turn(is_gap, root.path());
        assert_eq!(sleeper.0.is_running, !is_gap);
        assert!(sleeper.0.message.contains("freezer.state"), "{}", sleeper.0.message);
        let state = sleeper.0.place.groups.freezer.join("freezer.state");
        fs::create_dir_all(state.parent().unwrap()).unwrap();
        sleeper.turn(is_gap, root.path());
        assert_eq!(fs::read_to_string(&state).unwrap(), if is_gap { "THAWED" } else { "FROZEN" });
        assert_eq!(sleeper.0.is_running, is_gap);
        assert_eq!(sleeper.0.message, "", "it works again");
    }
}

#[test]
fn a_scrub_that_cannot_be_cancelled_is_told_and_tried_again_until_it_has_stopped() {
    let root = tempfile::tempdir().unwrap();
    // On no btrfs, the kernel refuses it.
    let run = run(root.path(), Kind::BtrfsScrub, root.path());
    let group = run.place.groups.freezer.clone();
    fs::create_dir_all(&group).unwrap();
    fs::write(group.join("cgroup.freeze"), "0").unwrap();
    let is_frozen = |frozen: u8| {
        fs::write(group.join("cgroup.events"), format!("populated 1\nfrozen {frozen}\n")).unwrap();
    };
    is_frozen(0);
    let _lives = run.place.lock().unwrap().unwrap();
    let mut sleeper = Sleeper::new(run);
    sleeper.turn(true, root.path());
    for _ in 0..3 {
        sleeper.turn(false, root.path());
        while sleeper.0.is_cancelling() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(sleeper.0.cancelling.is_some(), "it was tried");
        sleeper.0.look();
        assert!(sleeper.0.message.contains("failed to cancel the scrub of"), "{}", sleeper.0.message);
    }
    is_frozen(1);
    sleeper.0.look();
    assert_eq!((sleeper.0.message.as_str(), sleeper.0.is_in_doubt), ("", false));
}

/// A scrub or a balance that runs then is somebody else's.
#[test]
fn removing_work_that_had_stopped_between_its_calls_cancels_none() {
    for had_stopped in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let run = run(root.path(), Kind::BtrfsScrub, root.path());
        let events = run.place.groups.freezer.join("cgroup.events");
        fs::create_dir_all(events.parent().unwrap()).unwrap();
        fs::write(&events, format!("populated 1\nfrozen {}\n", u8::from(had_stopped))).unwrap();
        let mut sleeper = Sleeper::new(run);
        assert!(!sleeper.0.remove(root.path()));
        // It is being killed, and not frozen any more.
        fs::write(&events, "populated 1\nfrozen 0\n").unwrap();
        assert!(!sleeper.0.remove(root.path()));
        assert_eq!(sleeper.0.cancelling.is_some(), !had_stopped);
    }
}

/// The directory of sysfs, the node, and the knobs of an array that does something.
pub(super) fn slowable(root: &Path, action: &str) -> (PathBuf, PathBuf, PathBuf) {
    let (sys, node) = (root.join("sys"), root.join("md7"));
    let knobs = sys.join("block/md7/md");
    fs::create_dir_all(&knobs).unwrap();
    let files = [("sync_action", action), ("sync_speed_min", "1000 (local)\n"), ("sync_speed_max", "5000 (local)\n")];
    files.iter().for_each(|(name, text)| fs::write(knobs.join(name), text).unwrap());
    fs::write(&node, "").unwrap();
    (sys, node, knobs)
}

pub(super) fn speeds(knobs: &Path) -> [String; 2] {
    ["sync_speed_min", "sync_speed_max"].map(|name| fs::read_to_string(knobs.join(name)).unwrap())
}

#[test]
fn what_an_array_does_beside_a_check_that_was_refused_or_never_begun_is_not_slowed() {
    for has_check in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let (sys, node, knobs) = slowable(root.path(), if has_check { "check\n" } else { "recover\n" });
        let mut run = run(root.path(), Kind::MdCheck, &node);
        if has_check {
            run.place.begin_check().unwrap();
        }
        run.stop_with(&sys).unwrap();
        let is_slowed = speeds(&knobs) == ["1", "1"];
        assert_eq!((is_slowed, run.place.runtime.join("speeds").exists()), (has_check, has_check));
    }
}
