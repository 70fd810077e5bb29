//! Work on a real btrfs: moving chunks together, writing files anew, deleting a snapshot.

use super::{Filled, add, filled_bed, queue, request, until_absent, until_state};
use crate::bed::Bed;
use minerva_api::v1;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MIB: usize = 1 << 20;

/// Large enough for chunks of data and of metadata apart.
fn btrfs() -> Option<Filled> {
    filled_bed(Bed::with_disk(512 << 20)?, &["mkfs.btrfs", "-q", "-f"])
}

/// What a program prints.
fn run(program: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(path).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sync(path: &Path) {
    run("sync", &["-f"], path);
}

fn snapshot(of: &Path, at: &Path) {
    let of = of.to_str().expect("a plain path");
    run("btrfs", &["subvolume", "snapshot", "-r", of], at);
}

/// A subvolume `live` with files `changed` and `same` of 8 MiB, and a snapshot `old` that has the former as it was.
fn with_snapshot(mounted: &Path) {
    let live = mounted.join("live");
    run("btrfs", &["subvolume", "create"], &live);
    for name in ["changed", "same"] {
        fs::write(live.join(name), vec![1; 8 * MIB]).expect("a file");
    }
    sync(mounted);
    snapshot(&live, &mounted.join("old"));
    fs::write(live.join("changed"), vec![2; 8 * MIB]).expect("a file");
    sync(mounted);
}

#[test]
fn a_snapshot_waits_for_a_gap_ties_what_it_alone_has_and_is_deleted_without_the_live_copy() {
    let Some(mut filled) = btrfs() else { return };
    let (live, old) = (filled.mounted.join("live"), filled.mounted.join("old"));
    with_snapshot(&filled.mounted);
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    add(&daemon, request("old", "btrfs-snapshot-delete", &old)).expect("taken");
    daemon.pass_slices(30);
    assert!(old.join("changed").exists() && old.join("same").exists(), "others read all the time");
    filled.bed.stop_readers();
    until_state(&daemon, "old", "done");
    let done = queue(&daemon, "old");
    assert!(!old.exists(), "{done:?}");
    // Two files and the snapshot itself; of the files one is the live copy's too.
    assert_eq!(done.message, format!("3 entries deleted, which alone had {} bytes", 8 * MIB), "{done:?}");
    assert_eq!((done.done_items, done.tied_bytes), (3.0, 0));
    assert_eq!(fs::read(live.join("same")).expect("a file"), vec![1; 8 * MIB]);
    assert_eq!(fs::read(live.join("changed")).expect("a file"), vec![2; 8 * MIB]);
}

#[test]
fn what_is_no_snapshot_holds_others_or_is_mounted_is_refused_and_another_in_its_place_is_spared() {
    let Some(mut filled) = btrfs() else { return };
    let (live, old, inside) = (filled.mounted.join("live"), filled.mounted.join("old"), filled.mounted.join("inside"));
    with_snapshot(&filled.mounted);
    fs::create_dir(live.join("directory")).expect("a directory");
    run("btrfs", &["subvolume", "snapshot", live.to_str().expect("a plain path")], &inside);
    run("btrfs", &["subvolume", "create"], &inside.join("nested"));
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    let refusals = [
        (&filled.mounted, "is no snapshot"),
        (&live, "is no snapshot"),
        (&live.join("directory"), "is no snapshot"),
        (&inside, "holds subvolumes"),
        (&filled.mounted.join("absent"), "failed to open"),
    ];
    for (path, why) in refusals {
        let refused = add(&daemon, request("no", "btrfs-snapshot-delete", path)).expect_err("a refusal");
        assert!(refused.contains(why), "{refused}");
    }
    // Mounted elsewhere it would vanish under whoever uses it there.
    let elsewhere = filled.bed.directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    let node = format!("/dev/{}", filled.bed.device);
    run("mount", &["-o", "subvol=/old", &node], &elsewhere);
    let refused = add(&daemon, request("no", "btrfs-snapshot-delete", &old));
    run("umount", &[], &elsewhere);
    assert!(refused.expect_err("a refusal").contains("is mounted at"));
    add(&daemon, request("old", "btrfs-snapshot-delete", &old)).expect("taken");
    fs::rename(&old, filled.mounted.join("away")).expect("moved");
    snapshot(&live, &old);
    filled.bed.stop_readers();
    until_absent(&daemon, "old");
    assert!(old.join("same").exists() && filled.mounted.join("away/same").exists());
}

/// In how many pieces a file lies.
fn pieces(path: &Path) -> usize {
    let text = run("filefrag", &[], path);
    let count = text.rsplit(": ").next().and_then(|text| text.split(' ').next()).and_then(|text| text.parse().ok());
    count.unwrap_or_else(|| panic!("{text}"))
}

/// Writes every other block and syncs, and then the others.
fn write_in_pieces(path: &Path) {
    let file = File::create(path).expect("a file");
    for block in (0..128).step_by(2).chain((1..128).step_by(2)) {
        file.write_all_at(&[block as u8; 4096], block * 4096).expect("a block");
        file.sync_data().expect("on the disk");
    }
}

#[test]
fn files_in_pieces_are_written_anew_in_gaps_but_not_what_a_snapshot_has_too() {
    let Some(mut filled) = btrfs() else { return };
    let live = filled.mounted.join("live");
    run("btrfs", &["subvolume", "create"], &live);
    write_in_pieces(&live.join("shared"));
    snapshot(&live, &filled.mounted.join("old"));
    write_in_pieces(&live.join("own"));
    let before = ["shared", "own"].map(|name| pieces(&live.join(name)));
    assert!(before.iter().all(|pieces| *pieces > 32), "{before:?}");
    // One alone may wait so long for a processor that it looks like a pause.
    ["heavy", "other", "third"].into_iter().for_each(|reader| filled.bed.start_reader_without_pauses(reader));
    let daemon = filled.bed.start();
    add(&daemon, request("pieces", "btrfs-defragment", &live)).expect("taken");
    daemon.pass_slices(30);
    assert_eq!(pieces(&live.join("own")), before[1], "others read all the time");
    filled.bed.stop_readers();
    until_state(&daemon, "pieces", "done");
    let done = queue(&daemon, "pieces");
    assert!(pieces(&live.join("own")) < before[1] / 8, "{}", pieces(&live.join("own")));
    assert_eq!(pieces(&live.join("shared")), before[0]);
    assert!(done.message.starts_with("2 files gone through; 524288 bytes that snapshots"), "{done:?}");
    assert_eq!((done.done_items, done.total_items), (1_048_576.0, Some(1_048_576.0)));
    let read = fs::read(live.join("own")).expect("a file");
    assert!(read.chunks(4096).zip(0_u8..).all(|(block, number)| block.iter().all(|byte| *byte == number)));
}

/// Bytes that belong to no chunk.
fn unallocated(mounted: &Path) -> u64 {
    let text = run("btrfs", &["filesystem", "usage", "-b"], mounted);
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Device unallocated:"));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn chunks_that_are_little_used_are_moved_together_in_gaps_and_their_space_is_free_for_anything() {
    let Some(mut filled) = btrfs() else { return };
    let mounted = filled.mounted.clone();
    for file in 0..160_u8 {
        fs::write(mounted.join(file.to_string()), vec![file; 2 * MIB]).expect("a file");
    }
    sync(&mounted);
    (0..160_u8).filter(|file| file % 8 > 0).for_each(|file| {
        fs::remove_file(mounted.join(file.to_string())).expect("removed");
    });
    sync(&mounted);
    let before = unallocated(&mounted);
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    let too_much = v1::AddBackgroundRequest { used_percent_max: Some(101), ..request("a", "btrfs-balance", &mounted) };
    assert!(add(&daemon, too_much).expect_err("a refusal").contains("at most 100 percent"));
    add(&daemon, request("chunks", "btrfs-balance", &mounted)).expect("taken");
    daemon.pass_slices(30);
    assert_eq!(unallocated(&mounted), before, "others read all the time");
    filled.bed.stop_readers();
    until_state(&daemon, "chunks", "done");
    let done = queue(&daemon, "chunks");
    let after = unallocated(&mounted);
    assert!(after > before + (64 << 20), "{before} {after} {done:?}");
    assert!(done.message.contains("chunks moved together") && !done.message.starts_with("0 "), "{done:?}");
    assert!(
        (0..160_u8)
            .filter(|file| file % 8 == 0)
            .all(|file| { fs::read(mounted.join(file.to_string())).is_ok_and(|read| read == vec![file; 2 * MIB]) })
    );
}
