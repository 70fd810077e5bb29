//! Arrays whose knobs are plain files.

use super::END_ATTEMPTS;
use crate::error::WorkError;
use crate::run::tests::{run, slowable, speeds};
use crate::spec::Kind;
use minerva_model::BackgroundState;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

/// Of an array that nobody meant.
const ANOTHER: &str = "00000000-0000-0000-0000-00000000002b\n";
const A_WHILE: Duration = Duration::from_millis(5);

#[test]
fn a_failed_check_of_an_array_that_is_away_for_a_moment_is_ended_all_the_same() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let mut run = run(root.path(), Kind::MdCheck, &node);
    run.place.begin_check().unwrap();
    run.state = BackgroundState::Failed;
    fs::write(knobs.join("uuid"), ANOTHER).unwrap();
    run.hold_array(&sys);
    run.hold_array(&sys);
    assert!(!run.is_ended && run.place.has_check());
    fs::remove_file(knobs.join("uuid")).unwrap();
    while !run.is_ended {
        run.hold_array(&sys);
        std::thread::sleep(A_WHILE);
    }
    assert_eq!(fs::read_to_string(knobs.join("sync_action")).unwrap(), "idle");
    assert!(!run.place.has_check());
}

#[test]
fn a_failed_check_that_could_not_be_ended_is_told_and_ended_by_another_attempt() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let mut run = run(root.path(), Kind::MdCheck, &node);
    run.place.begin_check().unwrap();
    (run.state, run.message) = (BackgroundState::Failed, "a disk failed".to_owned());
    run.cancelling = Some(std::thread::spawn(|| Err(WorkError::Refused("the kernel is busy".to_owned()))));
    while run.is_cancelling() {
        std::thread::sleep(A_WHILE);
    }
    run.look();
    let what = "what the array does for it could not be ended and goes on, trying again: the kernel is busy";
    assert_eq!(run.said(), format!("a disk failed; {what}"));
    while !run.is_ended {
        run.hold_array(&sys);
        std::thread::sleep(A_WHILE);
    }
    assert_eq!(fs::read_to_string(knobs.join("sync_action")).unwrap(), "idle");
    assert_eq!(run.said(), "a disk failed");
}

#[test]
fn removing_a_check_goes_on_until_it_is_ended() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let mut run = run(root.path(), Kind::MdCheck, &node);
    run.place.begin_check().unwrap();
    fs::write(knobs.join("uuid"), ANOTHER).unwrap();
    assert!(!run.remove(&sys) && !run.remove(&sys), "its array is away for a moment");
    fs::remove_file(knobs.join("uuid")).unwrap();
    while !run.remove(&sys) {
        std::thread::sleep(A_WHILE);
    }
    assert_eq!(fs::read_to_string(knobs.join("sync_action")).unwrap(), "idle");
}

#[test]
fn of_an_array_that_was_not_there_at_several_looks_nothing_is_to_be_ended() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, _) = slowable(root.path(), "check\n");
    let mut run = run(root.path(), Kind::MdCheck, &node);
    run.place.begin_check().unwrap();
    fs::remove_file(&node).unwrap();
    run.ending.failed = END_ATTEMPTS - 1;
    assert!(run.remove(&sys));
}

#[test]
fn an_array_that_took_the_number_of_another_is_not_slowed_for_that() {
    for (is_another, is_absent) in [(false, false), (true, false), (false, true)] {
        let root = tempfile::tempdir().unwrap();
        let (sys, node, knobs) = slowable(root.path(), "resync\n");
        let mut run = run(root.path(), Kind::MdResync, &node);
        run.worker_died();
        run.is_absent = is_absent;
        if is_another {
            fs::write(knobs.join("uuid"), ANOTHER).unwrap();
        }
        run.hold_array(&sys);
        let is_slow = !is_another && !is_absent;
        assert_eq!((speeds(&knobs) == ["1", "1"], run.is_slowed()), (is_slow, is_slow));
    }
}

#[test]
fn an_array_that_was_slowed_by_half_is_slowed_at_the_next_look() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "resync\n");
    let mut run = run(root.path(), Kind::MdResync, &node);
    run.worker_died();
    let maximum = knobs.join("sync_speed_max");
    fs::remove_file(&maximum).unwrap();
    // Not even root may write there.
    symlink("/proc/sys/kernel/ostype", &maximum).unwrap();
    run.hold_array(&sys);
    assert_eq!((speeds(&knobs)[0].as_str(), run.is_slowed()), ("1", true));
    fs::remove_file(&maximum).unwrap();
    fs::write(&maximum, "5000\n").unwrap();
    run.hold_array(&sys);
    assert_eq!(speeds(&knobs), ["1", "1"]);
}
