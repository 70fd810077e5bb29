//! Background work is confined to some of the processors, in groups of its own, and what those held comes back.

use super::{add, change, filled, queue, request, until_state};
use crate::bed::until;
use minerva_api::v1;
use std::fs;
use std::path::PathBuf;

const V1: &str = "/sys/fs/cgroup/cpuset";

fn held(group: &std::path::Path) -> String {
    fs::read_to_string(group.join("cpuset.cpus")).unwrap_or_default().trim().to_owned()
}

/// What the processes of a group may run on, by their own word.
fn allowed(group: &std::path::Path) -> Vec<String> {
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let of = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(line.trim().to_owned())
    };
    processes.lines().filter_map(of).collect()
}

#[test]
fn background_work_is_confined_to_some_processors_and_is_free_again_after_its_daemon() {
    let Some(filled) = filled(&["mkfs.ext4", "-q", "-F"]) else { return };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let controllers = fs::read_to_string(filled.bed.root().join("cgroup.controllers")).unwrap_or_default();
    let root = if PathBuf::from(V1).join("cpuset.cpus").exists() {
        PathBuf::from(V1)
    } else if controllers.split_whitespace().any(|controller| controller == "cpuset") {
        filled.bed.root().to_owned()
    } else {
        return println!("skipped: needs the cpuset controller");
    };
    if processors < 2 {
        return println!("skipped: needs two processors");
    }
    let group = filled.group_in(&root, 1);
    let script = "while sleep 0.1; do :; done".to_owned();
    let command = vec!["sh".to_owned(), "-c".to_owned(), script];
    let mut daemon = filled.bed.start();
    add(&daemon, v1::AddBackgroundRequest { command, ..request("steps", "command", &filled.mounted) }).expect("taken");
    daemon.until("it is confined", || {
        let shown = queue(&daemon, "steps").processors;
        !shown.is_empty() && shown == held(&group) && shown.split(',').count() < processors
    });
    daemon.until("its processes are", || {
        let (held, of) = (held(&group), allowed(&group));
        of.len() > 1 && of.iter().all(|list| *list == held)
    });
    let shown = queue(&daemon, "steps");
    assert!(shown.others_processors.is_some(), "{shown:?}");
    // Whether there is room for more than one is up to whoever else is on this machine; never for all.
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
    let is_free = || {
        let list = held(&group);
        list.is_empty() || list == format!("0-{}", processors - 1)
    };
    until("the guard lets it use all", is_free);
    let mut daemon = filled.bed.start();
    daemon.until("the next daemon confines it", || !is_free());
    daemon.signal("-TERM");
    daemon.child.wait().expect("an end");
    assert!(is_free(), "{}", held(&group));
    let daemon = filled.bed.start();
    until_state(&daemon, "steps", "running");
    change(&daemon, "steps", v1::BackgroundChange::Remove);
    daemon.until("its group is gone", || !group.exists());
}
