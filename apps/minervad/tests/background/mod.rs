//! Background work on a real disk: it runs while others pause, stops when they come back, and outlives the daemon.

mod absent;
mod btrfs;
mod owed;
mod processors;
mod takes;
mod trouble;

use crate::bed::{Bed, Daemon};
use minerva_api::v1;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A bed whose disk holds a file system; unmounted when it is dropped.
struct Filled {
    mounted: PathBuf,
    bed: Bed,
}

impl Filled {
    /// The group of a piece of work below the root of a hierarchy.
    fn group_in(&self, root: &Path, number: u32) -> PathBuf {
        root.join(format!("{}-background/background-b{number}", self.bed.name))
    }

    /// In the hierarchy of the disk controller.
    fn group(&self, number: u32) -> PathBuf {
        self.group_in(self.bed.root(), number)
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        // Lazily: a worker that a failed test left may still look into it.
        let _ = Command::new("umount").arg("-l").arg(&self.mounted).output();
    }
}

/// With a file system made by a program, or nothing with the reason printed.
fn filled(make: &[&str]) -> Option<Filled> {
    filled_bed(Bed::new()?, make)
}

fn filled_bed(bed: Bed, make: &[&str]) -> Option<Filled> {
    let node = format!("/dev/{}", bed.device);
    let made = Command::new(make[0]).args(&make[1..]).arg(&node).output();
    if !made.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: needs {}", make[0]);
        return None;
    }
    let mounted = bed.directory.path().join("mounted");
    fs::create_dir(&mounted).expect("a directory");
    let mount = Command::new("mount").arg(&node).arg(&mounted).output().expect("mount");
    assert!(mount.status.success(), "{}", String::from_utf8_lossy(&mount.stderr));
    bed.write_config("mode = \"shadow\"");
    Some(Filled { mounted, bed })
}

fn request(name: &str, kind: &str, path: &Path) -> v1::AddBackgroundRequest {
    v1::AddBackgroundRequest {
        name: name.to_owned(),
        kind: kind.to_owned(),
        path: path.to_str().expect("a plain path").to_owned(),
        sla_ns: Some(7 * 86_400 * 1_000_000_000),
        ..v1::AddBackgroundRequest::default()
    }
}

fn add(daemon: &Daemon, request: v1::AddBackgroundRequest) -> Result<v1::BackgroundQueue, String> {
    let answer = daemon.ask(async |mut client| client.add_background(request).await).expect("a daemon");
    answer.map(|answer| answer.into_inner().queue.unwrap_or_default()).map_err(|status| status.message().to_owned())
}

fn change(daemon: &Daemon, name: &str, change: v1::BackgroundChange) {
    let request = v1::ChangeBackgroundRequest { name: name.to_owned(), change: change.into() };
    daemon.ask(async |mut client| client.change_background(request).await).expect("a daemon").expect("no refusal");
}

pub(crate) fn queues(daemon: &Daemon) -> Vec<v1::BackgroundQueue> {
    let answer = daemon.ask(async |mut client| client.background(v1::BackgroundRequest::default()).await.ok());
    answer.flatten().map(|answer| answer.into_inner().queues).unwrap_or_default()
}

fn queue(daemon: &Daemon, name: &str) -> v1::BackgroundQueue {
    queues(daemon).into_iter().find(|queue| queue.name == name).unwrap_or_default()
}

fn until_state(daemon: &Daemon, name: &str, state: &str) {
    daemon.until(&format!("{name} is {state}"), || queue(daemon, name).state == state);
}

/// It waits because what it is for is not there, and says so.
fn until_absent(daemon: &Daemon, name: &str) {
    let waits = |queue: &v1::BackgroundQueue| queue.state == "waiting" && queue.reason.contains("nothing is done");
    daemon.until(&format!("{name} waits and says why"), || waits(&queue(daemon, name)));
}

fn tree(below: &Path, files: u32) -> PathBuf {
    let tree = below.join("tree");
    for directory in 0..files.div_ceil(100) {
        fs::create_dir_all(tree.join(directory.to_string())).expect("a directory");
    }
    for file in 0..files {
        fs::write(tree.join((file / 100).to_string()).join(file.to_string()), [1; 4096]).expect("a file");
    }
    tree
}

#[test]
fn a_delete_waits_while_others_read_runs_when_they_pause_and_says_how_far_it_is() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F", "-N", "8192"]) else { return };
    let (tree, spared) = (tree(&filled.mounted, 3000), filled.mounted.join("spared"));
    fs::write(&spared, "kept").expect("a file");
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    add(&daemon, request("old", "delete", &tree)).expect("taken");
    daemon.pass_slices(30);
    assert!(tree.join("29/2999").exists(), "others read all the time: {:?}", queue(&daemon, "old"));
    assert_ne!(queue(&daemon, "old").state, "done");
    filled.bed.stop_readers();
    until_state(&daemon, "old", "done");
    let done = queue(&daemon, "old");
    assert!(!tree.exists() && spared.exists());
    assert_eq!((done.done_items, done.message.as_str()), (3031.0, "3031 entries deleted"));
    assert!(done.ran_seconds > 0.0 && done.measured_seconds >= 0.0, "{done:?}");
    change(&daemon, "old", v1::BackgroundChange::Remove);
    assert_eq!(queues(&daemon), []);
    daemon.until("its group is gone", || !filled.group(1).exists());
}

#[test]
fn a_command_goes_on_after_a_kill_of_the_daemon_and_is_not_begun_twice() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let (begun, ended) = (filled.mounted.join("begun"), filled.mounted.join("ended"));
    // Steps, so that a stopped one can be told from one that goes on.
    let script = format!(
        "echo x >> {}; for step in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; done; echo y >> {}",
        begun.display(),
        ended.display()
    );
    let mut daemon = filled.bed.start();
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    add(&daemon, v1::AddBackgroundRequest { command, ..request("steps", "command", &filled.mounted) }).expect("taken");
    daemon.until("it has begun", || begun.exists());
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    let daemon = filled.bed.start();
    until_state(&daemon, "steps", "done");
    assert_eq!(fs::read_to_string(&begun).expect("a file"), "x\n", "begun once: {}", daemon.log());
    assert_eq!(fs::read_to_string(&ended).expect("a file"), "y\n");
}

#[test]
fn what_the_operator_pauses_rests_and_a_clean_stop_leaves_it_to_the_next_daemon() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let count = filled.mounted.join("count");
    let script = format!("while sleep 0.1; do echo x >> {}; done", count.display());
    let lines = || fs::read_to_string(&count).map_or(0, |text| text.lines().count());
    let mut daemon = filled.bed.start();
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    add(&daemon, v1::AddBackgroundRequest { command, ..request("endless", "command", &filled.mounted) })
        .expect("taken");
    daemon.until("it runs", || lines() > 3);
    change(&daemon, "endless", v1::BackgroundChange::Pause);
    daemon.pass_slices(5);
    let paused = lines();
    daemon.pass_slices(10);
    assert!(lines() <= paused, "it rests");
    assert_eq!(queue(&daemon, "endless").state, "paused");
    change(&daemon, "endless", v1::BackgroundChange::Resume);
    daemon.until("it goes on", || lines() > paused + 3);
    daemon.signal("-TERM");
    daemon.child.wait().expect("an end");
    let stopped = lines();
    std::thread::sleep(std::time::Duration::from_millis(800));
    assert_eq!(lines(), stopped, "nobody looks for others now");
    let daemon = filled.bed.start();
    daemon.until("it goes on", || lines() > stopped + 3);
    change(&daemon, "endless", v1::BackgroundChange::Remove);
    daemon.until("it has ended", || {
        let before = lines();
        std::thread::sleep(std::time::Duration::from_millis(300));
        lines() == before
    });
}

#[test]
fn a_btrfs_is_scrubbed_and_another_file_system_is_refused_with_the_reason() {
    let Some(filled) = filled(&["mkfs.btrfs", "-q", "-f", "--mixed"]) else { return };
    for file in 0..8 {
        fs::write(filled.mounted.join(file.to_string()), vec![file; 2 << 20]).expect("a file");
    }
    assert!(Command::new("sync").arg("-f").arg(&filled.mounted).status().expect("sync").success());
    let daemon = filled.bed.start();
    let refused = add(&daemon, request("no", "btrfs-scrub", filled.bed.directory.path())).expect_err("a refusal");
    assert!(refused.contains("is not on a btrfs"), "{refused}");
    add(&daemon, request("scrub", "btrfs-scrub", &filled.mounted)).expect("taken");
    until_state(&daemon, "scrub", "done");
    let done = queue(&daemon, "scrub");
    assert_eq!(done.message, "0 errors, 0 of them could not be corrected");
    assert!(done.done_items >= f64::from(16 << 20), "{done:?}");
}

#[test]
fn a_file_system_is_trimmed_and_md_is_refused_where_there_is_none() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let daemon = filled.bed.start();
    let node = PathBuf::from("/dev").join(&filled.bed.device);
    for kind in ["md-check", "md-resync"] {
        let refused = add(&daemon, request("no", kind, &node)).expect_err("a refusal");
        assert!(refused.ends_with("is no md array"), "{refused}");
    }
    for kind in ["btrfs-balance", "btrfs-defragment", "btrfs-snapshot-delete"] {
        let refused = add(&daemon, request("no", kind, &filled.mounted)).expect_err("a refusal");
        assert!(refused.contains("is not on a btrfs"), "{refused}");
    }
    add(&daemon, request("trim", "fstrim", &filled.mounted)).expect("taken");
    until_state(&daemon, "trim", "done");
    let message = queue(&daemon, "trim").message;
    assert!(message.ends_with("bytes were told to be unused") && !message.starts_with("0 "), "{message}");
}

#[test]
fn bad_requests_are_refused_with_the_reason_and_nothing_is_kept() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let daemon = filled.bed.start();
    let absent = filled.mounted.join("absent");
    let link = filled.mounted.join("link");
    std::os::unix::fs::symlink("/etc", &link).expect("a link");
    let table: [(v1::AddBackgroundRequest, &str); 9] = [
        (request("a b", "delete", &filled.mounted), "is no name"),
        (request("a", "resync", &filled.mounted), "is no kind"),
        (request("a", "delete", &filled.mounted), "is a mount point"),
        (request("a", "delete", &absent), "failed to look at"),
        (request("a", "command", &filled.mounted), "a command is needed"),
        (
            v1::AddBackgroundRequest { sla_ns: Some(999_999), ..request("a", "fstrim", &filled.mounted) },
            "the deadline is now",
        ),
        (request("a", "btrfs-scrub", &link), "failed to open"),
        (
            v1::AddBackgroundRequest { used_percent_max: Some(20), ..request("a", "fstrim", &filled.mounted) },
            "has no chunks",
        ),
        (
            v1::AddBackgroundRequest { command: vec!["ls".to_owned()], ..request("a", "delete", &filled.mounted) },
            "takes no command",
        ),
    ];
    for (request, why) in table {
        let refused = add(&daemon, request).expect_err("a refusal");
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(queues(&daemon), []);
}

/// What a test mounted, unmounted at its end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_directory_that_was_replaced_since_is_not_deleted() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let (tree, spared) = (tree(&filled.mounted, 100), filled.mounted.join("spared"));
    fs::create_dir(&spared).expect("a directory");
    fs::write(spared.join("kept"), "mine").expect("a file");
    let replaced = ["by-directory", "by-link", "by-mount"].map(|name| filled.mounted.join(name));
    fs::rename(tree, &replaced[0]).expect("moved");
    replaced[1..].iter().for_each(|directory| fs::create_dir(directory).expect("a directory"));
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    daemon.pass_slices(3);
    for (path, name) in replaced.iter().zip(["directory", "link", "mount"]) {
        add(&daemon, request(name, "delete", path)).expect("taken");
    }
    let [by_directory, by_link, by_mount] = &replaced;
    let away = filled.mounted.join("away");
    fs::rename(by_directory, &away).expect("moved");
    fs::create_dir(by_directory).expect("a directory");
    fs::write(by_directory.join("new"), "mine").expect("a file");
    fs::remove_dir(by_link).expect("removed");
    std::os::unix::fs::symlink(&spared, by_link).expect("a link");
    let bound = Command::new("mount").arg("--bind").arg(&spared).arg(by_mount).status().expect("mount");
    let _unmounted_at_the_end = Mounted(by_mount.clone());
    assert!(bound.success());
    filled.bed.stop_readers();
    for name in ["directory", "link", "mount"] {
        until_absent(&daemon, name);
    }
    assert!(by_directory.join("new").exists() && away.join("0/99").exists());
    assert!(by_link.is_symlink() && by_mount.join("kept").exists() && spared.join("kept").exists());
}
