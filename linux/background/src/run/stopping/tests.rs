//! Stopping at the end of a daemon, and calls into the kernel that are cancelled.

use super::cancel_until;
use crate::directories::replace;
use crate::error::WorkError;
use crate::md::Array;
use crate::run::Run;
use crate::run::tests::{slowable, speeds};
use crate::spec::Kind;
use crate::stop_all::{Stopping, put_arrays_back_and_stop_all, stop_all};
use crate::worker::{Assignment, Worker};
use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[test]
fn a_worker_that_stopped_outside_of_a_call_has_nothing_cancelled_and_one_about_to_call_has() {
    // After so many attempts it has stopped.
    for stops_after in [0, 1, 3] {
        let cancelled = Cell::new(0);
        let cancel = || {
            cancelled.set(cancelled.get() + 1);
            Ok(())
        };
        cancel_until(|| cancelled.get() >= stops_after, cancel).unwrap();
        assert_eq!(cancelled.get(), stops_after);
    }
    let refused = cancel_until(|| false, || Err(WorkError::Refused("not permitted".to_owned())));
    assert_eq!(refused.unwrap_err().in_full(), "not permitted");
}

/// Work whose worker lives, and its knob for freezing.
fn living(root: &Path, kind: Kind, path: &Path) -> (Run, File, PathBuf) {
    fs::create_dir_all(root).unwrap();
    let assignment = Worker::of(root, kind, path).assignment().clone();
    let Assignment { spec, place } = assignment.clone();
    replace(&place.runtime.join("spec"), &assignment, false).unwrap();
    let lives = place.lock().unwrap().unwrap();
    fs::create_dir_all(&place.groups.freezer).unwrap();
    let state = place.groups.freezer.join("freezer.state");
    (Run::left(spec, place), lives, state)
}

fn in_full(errors: &[WorkError]) -> Vec<String> {
    errors.iter().map(WorkError::in_full).collect()
}

/// A call into the kernel that ends when this says so.
fn call(ends: Receiver<()>) -> JoinHandle<Result<(), WorkError>> {
    std::thread::spawn(move || ends.recv().map_err(|_| WorkError::Refused("the test is over".to_owned())))
}

#[test]
fn all_work_is_stopped_before_any_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let [mut first, second] = ["1", "2"].map(|name| living(&root.path().join(name), Kind::Delete, root.path()));
    let state = second.2.clone();
    // Its call ends once the other has stopped too.
    first.0.cancelling = Some(std::thread::spawn(move || {
        let begun = Instant::now();
        while fs::read_to_string(&state).unwrap_or_default() != "FROZEN" {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(WorkError::Refused("the other goes on".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }));
    let failed = Stopping::begin([first.0, second.0].into_iter(), root.path()).wait();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn calls_that_do_not_end_are_waited_for_to_one_deadline_and_told() {
    let root = tempfile::tempdir().unwrap();
    let mut runs = ["1", "2", "3"].map(|name| living(&root.path().join(name), Kind::Delete, root.path()));
    let ends = [0, 1].map(|at| {
        let (end, ends) = channel();
        runs[at].0.cancelling = Some(call(ends));
        end
    });
    let (locks, runs): (Vec<File>, Vec<Run>) = runs.into_iter().map(|(run, lives, _)| (lives, run)).unzip();
    let stopping = Stopping::begin(runs.into_iter(), root.path());
    // They are still in their calls after this.
    let failed = in_full(&stopping.wait_until(Instant::now()));
    let why = format!("test: the kernel has not ended yet what it does on {}", root.path().display());
    assert_eq!(failed, [why.clone(), why]);
    drop((ends, locks));
}

#[test]
fn work_that_cannot_be_stopped_is_told_by_name() {
    let root = tempfile::tempdir().unwrap();
    let (_, _lives, state) = living(root.path(), Kind::Delete, root.path());
    fs::remove_dir(state.parent().unwrap()).unwrap();
    let failed = in_full(&stop_all(&root.path().join("run"), root.path()).wait());
    assert!(failed.len() == 1 && failed[0].starts_with("test: failed to write"), "{failed:?}");
    assert!(failed[0].contains("freezer.state"), "{failed:?}");
    // On no btrfs, the kernel refuses it.
    let root = tempfile::tempdir().unwrap();
    let (_, _lives, state) = living(root.path(), Kind::BtrfsScrub, root.path());
    let (group, freeze) = (state.parent().unwrap(), state.with_file_name("cgroup.freeze"));
    fs::write(&freeze, "0").unwrap();
    fs::write(group.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
    let failed = in_full(&stop_all(&root.path().join("run"), root.path()).wait());
    assert!(failed.len() == 1 && failed[0].starts_with("test: failed to cancel the scrub of"), "{failed:?}");
    assert_eq!(fs::read_to_string(freeze).unwrap(), "1", "and all the same it begins no more");
}

#[test]
fn a_resync_goes_at_its_own_speeds_when_its_daemon_is_gone() {
    for was_slowed in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let (sys, node, knobs) = slowable(root.path(), "resync\n");
        let (run, _lives, _) = living(root.path(), Kind::MdResync, &node);
        if was_slowed {
            let array = Array::of(&node, &sys).unwrap();
            replace(&run.place.runtime.join("speeds"), &array.speeds().unwrap(), true).unwrap();
            array.stop().unwrap();
        }
        let stopping = stop_all(&root.path().join("run"), &sys);
        let own = if was_slowed { ["1000", "5000"] } else { ["1000 (local)\n", "5000 (local)\n"] };
        assert_eq!(speeds(&knobs), own, "before anything is waited for");
        assert!(!run.place.runtime.join("speeds").exists());
        assert!(stopping.wait().is_empty());
    }
}

#[test]
fn a_check_that_ran_in_a_gap_when_its_daemon_went_is_ended_at_the_arrays_own_speeds() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let (run, _lives, _) = living(root.path(), Kind::MdCheck, &node);
    fs::write(run.place.runtime.join("checking"), "{}").unwrap();
    let (arrays, stopping) = put_arrays_back_and_stop_all(&root.path().join("run"), &sys);
    assert!(stopping.wait().is_empty());
    assert_eq!(arrays.iter().map(|array| &array.path).collect::<Vec<_>>(), [&node]);
    assert_eq!(speeds(&knobs), ["1000", "5000"]);
    assert!(!run.place.runtime.join("speeds").exists());
}

/// systemd may still begin a service that was asked for.
#[test]
fn a_worker_that_has_not_come_when_the_daemon_ends_is_not_let_run() {
    let root = tempfile::tempdir().unwrap();
    let (mut run, lives, state) = living(root.path(), Kind::Delete, root.path());
    drop(lives);
    run.is_alive = false;
    fs::write(&state, "THAWED\n").unwrap();
    assert!(run.leave(root.path()).is_empty());
    assert_eq!(fs::read_to_string(state).unwrap(), "FROZEN");
}
