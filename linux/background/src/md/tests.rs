//! Arrays whose knobs are plain files.

use super::{Array, BEYOND_END, Speeds, check};
use crate::error::WorkError;
use crate::spec::{Found, Kind};
use crate::worker::Worker;
use std::fs;
use std::path::Path;

fn array(sys: &Path, files: &[(&str, &str)]) -> Result<Array, WorkError> {
    let directory = sys.join("block/md7/md");
    fs::create_dir_all(&directory).unwrap();
    files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).unwrap());
    fs::write(sys.join("md7"), "").unwrap();
    Array::of(&sys.join("md7"), sys)
}

#[test]
fn what_the_knobs_held_is_put_back_in_the_kernels_own_words() {
    let sys = tempfile::tempdir().unwrap();
    let files =
        [("sync_action", "idle\n"), ("sync_speed_min", "1000 (system)\n"), ("sync_speed_max", "5000 (local)\n")];
    let array = array(sys.path(), &files).unwrap();
    let speeds = array.speeds().unwrap();
    assert_eq!(speeds, Speeds { minimum: "system".to_owned(), maximum: "5000".to_owned() });
    let knobs = || {
        ["sync_speed_min", "sync_speed_max"]
            .map(|file| fs::read_to_string(sys.path().join("block/md7/md").join(file)).unwrap())
    };
    array.stop().unwrap();
    assert_eq!(knobs(), ["1", "1"]);
    array.put_back(&speeds).unwrap();
    assert_eq!(knobs(), ["system", "5000"]);
}

/// A worker of a check of the array `md7`, which is 1 MiB large.
fn checker(sys: &Path, action: &str, mismatches: &str) -> Worker {
    let files = [
        ("sync_action", action),
        ("sync_completed", "1024 / 2048\n"),
        ("chunk_size", "65536\n"),
        ("mismatch_cnt", mismatches),
        ("uuid", "00000000-0000-0000-0000-00000000002a\n"),
    ];
    array(sys, &files).unwrap();
    let mut worker = Worker::of(sys.parent().unwrap(), Kind::MdCheck, &sys.join("md7"));
    worker.spec_mut().position = (1 << 19) + 5000;
    worker.spec_mut().found = Found { errors: 8, under_way: 2, ..Found::default() };
    worker
}

/// As the kernel ends one that came to its end, or that was ended.
fn end_check(knobs: &Path, sync_min: Option<&str>, sync_max: &str) {
    if let Some(sync_min) = sync_min {
        fs::write(knobs.join("sync_min"), sync_min).unwrap();
        fs::write(knobs.join("sync_max"), sync_max).unwrap();
    }
    fs::write(knobs.join("sync_action"), "idle\n").unwrap();
}

#[test]
fn a_check_goes_on_where_the_worker_before_was_and_adds_to_what_that_found() {
    for (action, sync_min, found) in [("idle\n", Some("1024"), 10 + 4), ("check\n", None, 8 + 4)] {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let mut worker = checker(&sys, action, "4\n");
        let place = worker.assignment().place.clone();
        let (knobs, progress) = (sys.join("block/md7/md"), root.path().join("run/background/b1/progress"));
        let mut begun_at = None;
        std::thread::scope(|scope| {
            // It ends once it was seen to have begun, as the kernel ends it.
            scope.spawn(|| {
                while !progress.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                let is_ours = place.has_check();
                begun_at = fs::read_to_string(knobs.join("sync_min")).ok();
                end_check(&knobs, is_ours.then_some("0\n"), "max\n");
                assert_eq!(is_ours, sync_min.is_some(), "who removes the queue ends what it began only");
            });
            check(&mut worker, &sys).unwrap();
        });
        assert!(!place.has_check());
        // A multiple of what the array is divided into; a check that runs is where it is.
        assert_eq!(begun_at.as_deref(), sync_min);
        assert_eq!(worker.message(), format!("{found} sectors differ between copies"));
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!((progress.found.errors + progress.found.under_way, progress.found.under_way), (found, 4));
    }
}

#[test]
fn a_check_that_was_ended_has_failed_where_it_was_and_is_not_done() {
    let beyond = format!("{BEYOND_END}\n");
    // Sectors up to which it came. In the first sixteenth the kernel has not noted any yet.
    for (sync_min, at) in [("1536\n", 1536 * 512), ("0\n", 0)] {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let mut worker = checker(&sys, "idle\n", "4\n");
        let (knobs, progress) = (sys.join("block/md7/md"), root.path().join("run/background/b1/progress"));
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !progress.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                end_check(&knobs, Some(sync_min), &beyond);
            });
            check(&mut worker, &sys)
        });
        let why = outcome.unwrap_err().in_full();
        let where_it_was = format!("ended before its end, at byte {at} of 1048576 of each disk");
        assert!(why.contains(&where_it_was) && why.contains("So far 14 sectors differ"), "{why}");
        assert!(why.contains("background resume test goes on"), "{why}");
        let progress = worker.assignment().place.progress().unwrap();
        assert_eq!((progress.position, progress.done, progress.total), (at, at as f64, Some(1_048_576.0)));
        assert_eq!(fs::read_to_string(knobs.join("sync_max")).unwrap(), "max");
    }
}

#[test]
fn a_check_is_ended_also_where_a_recovery_begins_at_once() {
    let sys = tempfile::tempdir().unwrap();
    let array = array(sys.path(), &[("sync_action", "check\n")]).unwrap();
    let knobs = sys.path().join("block/md7/md");
    // What cannot be written, as where the kernel is busy.
    fs::create_dir(knobs.join("sync_min")).unwrap();
    array.end().unwrap();
    assert_eq!(fs::read_to_string(knobs.join("sync_action")).unwrap(), "idle");
}

#[test]
fn another_array_of_the_same_number_is_not_checked() {
    let root = tempfile::tempdir().unwrap();
    let sys = root.path().join("sys");
    let mut worker = checker(&sys, "idle\n", "0\n");
    fs::write(sys.join("block/md7/md/uuid"), "00000000-0000-0000-0000-00000000002b\n").unwrap();
    assert!(matches!(check(&mut worker, &sys), Err(WorkError::Absent(_))));
    assert!(!sys.join("block/md7/md/sync_min").exists());
    // Earlier versions knew it by its node, which is made anew at each boot.
    worker.spec_mut().identity.lasting = None;
    worker.spec().look(&sys).unwrap();
}

#[test]
fn what_is_no_array_or_has_no_copies_is_refused_with_the_reason() {
    let sys = tempfile::tempdir().unwrap();
    fs::write(sys.path().join("sda"), "").unwrap();
    let error = Array::of(&sys.path().join("sda"), sys.path()).unwrap_err().to_string();
    assert!(error.ends_with("sda is no md array"), "{error}");
    let idle = array(sys.path(), &[("sync_action", "idle\n")]).unwrap();
    let error = idle.check_resync().unwrap_err().to_string();
    assert!(error.contains("the array is idle"), "{error}");
    array(sys.path(), &[("sync_action", "recover\n")]).unwrap().check_resync().unwrap();
    let error = array(sys.path(), &[("sync_action", "\n")]).unwrap_err().to_string();
    assert!(error.contains("no redundancy"), "{error}");
}
