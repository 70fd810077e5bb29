//! The same of real processes in groups of this kernel, in whichever hierarchies there are.

use super::{Activity, GroupPaths};
use crate::groups::mounted;
use minerva_model::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A group of its own with one command in it; both go with it.
struct Group {
    path: PathBuf,
    command: Child,
}

impl Group {
    fn new(root: &Path, script: &str) -> Option<Self> {
        static GROUPS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = GROUPS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = root.join(format!("minerva-test-activity-{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let entered = format!("echo $$ > {}/cgroup.procs && exec sh -c '{script}'", path.display());
        let command = Command::new("sh").args(["-c", &entered]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Some(Self { path, command: command.unwrap() })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
        let begun = Instant::now();
        // What it started ends within a moment.
        while fs::remove_dir(&self.path).is_err() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_command_that_polls_is_told_from_one_that_works_in_either_hierarchy() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let roots = [mounted(&mounts, "cgroup", "freezer"), mounted(&mounts, "cgroup2", "")];
    let mut groups = Vec::new();
    for root in roots.iter().flatten() {
        let polls = Group::new(root, "while ! test -e /minerva-test-never; do sleep 0.2; done");
        let works = Group::new(root, "while :; do :; done");
        groups.extend(polls.zip(works));
    }
    if groups.is_empty() {
        println!("skipped: needs root and a hierarchy of groups that can freeze");
        return;
    }
    let mut seen: Vec<_> = groups.iter().map(|_| [(Activity::default(), 0), (Activity::default(), 0)]).collect();
    // Two windows and more.
    for second in 0..23 {
        for ((polls, works), seen) in groups.iter().zip(&mut seen) {
            for (group, (activity, does)) in [polls, works].into_iter().zip(seen) {
                let paths = GroupPaths { freezer: &group.path, io: &group.path };
                let look = activity.look(paths, Path::new("/proc"), (Nanos::ZERO, Nanos::from_secs(second)));
                *does += u32::from(look.unwrap());
            }
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    for ((polls, _), [(_, polled), (_, worked)]) in groups.iter().zip(&seen) {
        // The first look tells nothing.
        assert_eq!(*polled, 1, "{}", polls.path.display());
        assert!(*worked > 4, "{worked} of 23, {}", polls.path.display());
    }
}
