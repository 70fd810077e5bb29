//! Work whose disk is not mounted: it waits, and nothing is done in the directory on which it will be.

use super::{add, change, filled, queue, request, tree, until_absent, until_state};
use minerva_api::v1;
use std::fs;
use std::process::Command;

#[test]
fn work_whose_disk_is_not_mounted_waits_with_a_notice_and_is_done_once_it_is() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let (tree, here) = (tree(&filled.mounted, 100), filled.mounted.join("here"));
    let command = ["sh", "-c", "echo ran > here"].map(str::to_owned).to_vec();
    filled.bed.start_reader_without_pauses("heavy");
    let mut daemon = filled.bed.start();
    daemon.pass_slices(3);
    add(&daemon, v1::AddBackgroundRequest { command, ..request("copy", "command", &filled.mounted) }).expect("taken");
    for (name, kind, path) in [("old", "delete", &tree), ("trim", "fstrim", &filled.mounted), ("no", "delete", &tree)] {
        add(&daemon, request(name, kind, path)).expect("taken");
    }
    daemon.signal("-TERM");
    daemon.child.wait().expect("an end");
    filled.bed.stop_readers();
    let unmounted = Command::new("umount").arg(&filled.mounted).status().expect("umount");
    assert!(unmounted.success());
    let daemon = filled.bed.start();
    for name in ["copy", "old", "trim", "no"] {
        until_absent(&daemon, name);
    }
    let left = filled.bed.directory.path().join("state/background/b4");
    change(&daemon, "no", v1::BackgroundChange::Remove);
    daemon.until("what it had is gone", || !left.exists() && queue(&daemon, "no").name.is_empty());
    daemon.pass_slices(20);
    assert_eq!(fs::read_dir(&filled.mounted).expect("a directory").count(), 0, "nothing ran in the empty directory");
    let node = format!("/dev/{}", filled.bed.device);
    assert!(Command::new("mount").arg(&node).arg(&filled.mounted).status().expect("mount").success());
    for name in ["copy", "old", "trim"] {
        until_state(&daemon, name, "done");
    }
    assert!(!tree.exists());
    assert_eq!(fs::read_to_string(here).expect("it ran"), "ran\n");
}
