//! A queue without a disk of its own.

use super::Run;
use crate::loop_disk::LoopDisk;
use crate::spec::Kind;
use crate::worker::{Assignment, Worker};
use minerva_model::{DeviceId, Nanos};
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(root: &Path, kind: Kind, path: &Path) -> Run {
    let Assignment { spec, place } = Worker::of(root, kind, path).assignment().clone();
    Run::new(spec, DeviceId { major: 8, minor: 0 }, place, Nanos::ZERO, Nanos::ZERO)
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

#[test]
fn the_space_of_an_array_is_not_that_of_the_file_system_with_its_node() {
    let root = tempfile::tempdir().unwrap();
    let knobs = root.path().join("sys/block/md7/md");
    fs::create_dir_all(&knobs).unwrap();
    fs::write(knobs.join("sync_action"), "idle\n").unwrap();
    let node = root.path().join("md7");
    fs::write(&node, "").unwrap();
    let of = |kind| {
        let report = run(root.path(), kind, &node).report();
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
            let report = run.report();
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
