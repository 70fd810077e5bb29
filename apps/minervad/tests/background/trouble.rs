//! Work that vanishes, dies, or must not be stopped: it is told, and other work goes on.

use super::{add, change, filled, queue, request, tree, until_state};
use minerva_api::v1;
use std::fs;
use std::process::Command;

#[test]
fn work_whose_tree_or_process_vanishes_ends_with_a_sentence_and_the_next_goes_on() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let gone = tree(&filled.mounted, 100);
    let (next, begun) = (filled.mounted.join("next"), filled.mounted.join("begun"));
    fs::create_dir(&next).expect("a directory");
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    daemon.pass_slices(3);
    add(&daemon, v1::AddBackgroundRequest { priority: 9, ..request("gone", "delete", &gone) }).expect("taken");
    fs::remove_dir_all(&gone).expect("somebody else removes it");
    let script = format!("echo $$ > {}; while :; do sleep 0.1; done", begun.display());
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    let killed = v1::AddBackgroundRequest { command, priority: 5, ..request("killed", "command", &filled.mounted) };
    add(&daemon, killed).expect("taken");
    add(&daemon, request("last", "delete", &next)).expect("taken");
    filled.bed.stop_readers();
    until_state(&daemon, "gone", "done");
    assert_eq!(queue(&daemon, "gone").message, "it was gone already");
    daemon.until("the command runs", || fs::read_to_string(&begun).is_ok_and(|text| !text.is_empty()));
    // The worker that watches the command, too: all of its group.
    let processes = fs::read_to_string(filled.group(2).join("cgroup.procs")).expect("a group");
    let all: Vec<&str> = processes.lines().collect();
    assert!(Command::new("kill").arg("-KILL").args(&all).status().expect("kill").success());
    until_state(&daemon, "killed", "failed");
    let message = queue(&daemon, "killed").message;
    assert!(message.starts_with("it ended without saying how") && message.contains("resume does"), "{message}");
    until_state(&daemon, "last", "done");
    assert!(!next.exists());
}

#[test]
fn what_a_command_leaves_running_is_ended_with_it() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let left = filled.mounted.join("left");
    let daemon = filled.bed.start();
    daemon.pass_slices(3);
    let script = format!("setsid sleep 1000 > /dev/null 2>&1 & echo $! > {}", left.display());
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    add(&daemon, v1::AddBackgroundRequest { command, ..request("leaves", "command", &filled.mounted) }).expect("taken");
    until_state(&daemon, "leaves", "done");
    let pid = fs::read_to_string(&left).expect("a number");
    let command = format!("/proc/{}/cmdline", pid.trim());
    daemon.until("it is gone", || !fs::read_to_string(&command).is_ok_and(|line| line.contains("sleep")));
    let group = filled.group(1);
    daemon.until("so is its group", || !group.exists());
}

#[test]
fn work_that_must_not_be_stopped_goes_on_beside_others_and_is_removed_all_the_same() {
    let Some(mut filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let count = filled.mounted.join("count");
    let script = format!("while sleep 0.1; do echo x >> {}; done", count.display());
    let lines = || fs::read_to_string(&count).map_or(0, |text| text.lines().count());
    filled.bed.start_reader_without_pauses("heavy");
    let daemon = filled.bed.start();
    daemon.pass_slices(3);
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    let other = v1::AddBackgroundRequest { never_stop: true, ..request("no", "fstrim", &filled.mounted) };
    let refused = add(&daemon, other).expect_err("only commands hold what others wait for");
    assert!(refused.contains("never"), "{refused}");
    let request = v1::AddBackgroundRequest { command, never_stop: true, ..request("lock", "command", &filled.mounted) };
    add(&daemon, request).expect("taken");
    daemon.until("it runs though others read all the time", || lines() > 10);
    change(&daemon, "lock", v1::BackgroundChange::Remove);
    daemon.until("it has ended", || {
        let before = lines();
        std::thread::sleep(std::time::Duration::from_millis(300));
        lines() == before
    });
}
