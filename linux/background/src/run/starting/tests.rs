//! Services by a script in place of systemd-run.

use super::{RETRIES, WorkerProgram, end_of_group, write_end_of_group};
use crate::directories::{Progress, replace};
use crate::duty::Chance;
use crate::run::tests::{slowable, speeds};
use crate::run::{Before, Run};
use crate::spec::Kind;
use crate::worker::{Assignment, Worker};
use minerva_model::{BackgroundPace, BackgroundState, DeviceId, Nanos};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A queue, and what starts its workers: a script in place of systemd-run.
fn startable(root: &Path, script: &str) -> (Run, WorkerProgram) {
    let starter = root.join("systemd-run");
    fs::write(&starter, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755)).unwrap();
    let worker = WorkerProgram {
        program: "/usr/bin/minervad".into(),
        name: "minervad".into(),
        arguments: vec!["background".into()],
        service_starter: Some(starter.into()),
    };
    let Assignment { spec, place } = Worker::of(root, Kind::Delete, root).assignment().clone();
    let mut run = Run::new(spec, DeviceId { major: 8, minor: 0 }, place, Nanos::ZERO, Before::default());
    run.duty.pace = BackgroundPace::Gaps;
    fs::create_dir_all(&run.place.groups.freezer).unwrap();
    (run, worker)
}

/// In a gap at a second; until the starter has ended, if it was begun.
fn attempt((run, worker): &mut (Run, WorkerProgram), second: u64) {
    run.turn(Nanos::from_secs(second), Chance::Gap, (worker, None), Path::new("/sys"));
    while run.child.is_some() {
        run.look();
        std::thread::sleep(Duration::from_millis(5));
    }
    run.look();
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_service_is_asked_for_with_the_worker_and_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let said = root.path().join("said");
    let mut both = startable(root.path(), &format!("printf '%s\\n' \"$@\" > {}", said.display()));
    attempt(&mut both, 0);
    let (run, lines) = (&both.0, lines(&said));
    let at = lines.iter().position(|line| *line == "--").unwrap();
    let runtime = run.place.runtime.display().to_string();
    assert_eq!(lines[at + 1..], ["/usr/bin/minervad", "background", runtime.as_str()]);
    assert!(lines[..at].contains(&"--service-type=notify".to_owned()), "{lines:?}");
    let ends = lines.iter().find(|line| line.starts_with("--property=ExecStopPost=")).unwrap();
    assert!(ends.ends_with(&format!("=-/bin/sh {}", end_of_group(&run.place).display())), "{ends}");
    assert!(end_of_group(&run.place).is_file());
    assert_eq!(run.state, BackgroundState::Waiting, "{}", run.message);
}

#[test]
fn what_no_service_can_be_made_of_fails_with_the_reason_and_is_not_tried_for_ever() {
    let root = tempfile::tempdir().unwrap();
    let count = root.path().join("count");
    let script = format!("echo x >> {}; echo 'Failed to connect to bus' >&2; exit 1", count.display());
    let mut both = startable(root.path(), &script);
    for second in 0..200 {
        attempt(&mut both, second);
        let is_last = second >= 1 + 4 + 16 + 64;
        let state = if is_last { BackgroundState::Failed } else { BackgroundState::Waiting };
        assert_eq!(both.0.state, state, "{second}: {}", both.0.message);
        let end = if is_last { "Failed to connect to bus" } else { "Failed to connect to bus; trying again" };
        assert!(both.0.message.ends_with(&format!("exit status: 1): {end}")), "{}", both.0.message);
    }
    assert_eq!(lines(&count).len(), 1 + RETRIES as usize);
    both.0.begin_again();
    attempt(&mut both, 200);
    assert_eq!((lines(&count).len(), both.0.state), (2 + RETRIES as usize, BackgroundState::Waiting));
}

#[test]
fn of_a_worker_that_ended_at_once_it_says_what_that_said_last_or_where_more_may_be() {
    let root = tempfile::tempdir().unwrap();
    let errors = root.path().join("state/background/b1/errors");
    fs::create_dir_all(errors.parent().unwrap()).unwrap();
    fs::write(&errors, "of the worker before\n").unwrap();
    let mut both = startable(root.path(), "exit 1");
    attempt(&mut both, 0);
    let more = "exit status: 1): `journalctl -u minerva-background-b1.service` may say more; trying again";
    assert!(both.0.message.ends_with(more), "{}", both.0.message);
    let mut both = startable(root.path(), &format!("echo 'no space left' >> {}; exit 1", errors.display()));
    attempt(&mut both, 0);
    assert!(both.0.message.ends_with("exit status: 1): no space left; trying again"), "{}", both.0.message);
}

#[test]
fn a_service_that_is_refused_once_is_asked_for_again_and_works() {
    let root = tempfile::tempdir().unwrap();
    let count = root.path().join("count");
    let script = format!("echo x >> {0}; [ $(wc -l < {0}) = 2 ]", count.display());
    let mut both = startable(root.path(), &script);
    attempt(&mut both, 0);
    attempt(&mut both, 0);
    assert_eq!(lines(&count).len(), 1, "not at once");
    assert!(!both.0.message.is_empty());
    // The worker that the second attempt starts.
    let seen = count.clone();
    let worker = thread_with_lock(&both.0, move || lines(&seen).len() == 2);
    attempt(&mut both, 1);
    let _lock = worker.join().unwrap();
    both.0.look();
    assert_eq!((both.0.message.as_str(), both.0.is_alive), ("", true));
    attempt(&mut both, 2);
    assert_eq!((lines(&count).len(), both.0.state), (2, BackgroundState::Running));
}

#[test]
fn another_worker_is_begun_a_while_after_one_that_died_and_none_after_some_that_did_nothing() {
    // What a balance does is counted from 0 by each worker.
    let said = [
        (false, "true"),
        (true, r#"echo "{\"done\":$(wc -l < $count)}" > "$2/progress""#),
        (true, r#"echo "{\"done\":5,\"position\":$((900 - $(wc -l < $count)))}" > "$2/progress""#),
    ];
    for (gets_on, say) in said {
        let root = tempfile::tempdir().unwrap();
        let count = root.path().join("count");
        let script = format!("count={}; echo x >> $count; {say}; echo 'out of memory' >&2; exit 1", count.display());
        let (run, worker) = startable(root.path(), &script);
        let program = worker.service_starter.unwrap();
        let mut both = (run, WorkerProgram { program, service_starter: None, ..worker });
        for second in 0..200 {
            attempt(&mut both, second);
            attempt(&mut both, second);
            let is_last = !gets_on && second >= 1 + 4 + 16 + 64;
            let state = if is_last { BackgroundState::Failed } else { BackgroundState::Waiting };
            assert_eq!(both.0.state, state, "{second}: {}", both.0.message);
            let why = "its worker ended without saying how (out of memory)";
            let what = if is_last { ", 5 times without getting on" } else { "; another one is begun in a while" };
            assert!(both.0.message.starts_with(&format!("{why}{what}")), "{}", both.0.message);
        }
        assert_eq!(lines(&count).len(), if gets_on { 200 } else { 1 + RETRIES as usize });
    }
}

/// A check of an array whose workers die.
#[test]
fn a_check_whose_worker_died_is_slow_until_there_is_another_and_ended_if_there_is_none() {
    let root = tempfile::tempdir().unwrap();
    let (sys, node, knobs) = slowable(root.path(), "check\n");
    let Assignment { spec, place } = Worker::of(root.path(), Kind::MdCheck, &node).assignment().clone();
    let mut run = Run::new(spec, DeviceId { major: 9, minor: 7 }, place, Nanos::ZERO, Before::default());
    run.duty.pace = BackgroundPace::Gaps;
    run.place.begin_check().unwrap();
    let nothing =
        WorkerProgram { program: "true".into(), name: "true".into(), arguments: Vec::new(), service_starter: None };
    let mut second = 0;
    while run.state != BackgroundState::Failed {
        run.turn(Nanos::from_secs(second), Chance::Gap, (&nothing, None), &sys);
        while run.child.is_some() {
            run.look();
            std::thread::sleep(Duration::from_millis(1));
        }
        // Still in a gap.
        run.turn(Nanos::from_secs(second), Chance::Gap, (&nothing, None), &sys);
        second += 1;
        if run.state != BackgroundState::Failed {
            assert_eq!(speeds(&knobs), ["1", "1"]);
        }
    }
    assert_eq!(second, 1 + 1 + 4 + 16 + 64);
    while run.is_cancelling() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fs::read_to_string(knobs.join("sync_action")).unwrap(), "idle");
    assert_eq!(speeds(&knobs), ["1000", "5000"]);
    run.look();
    assert!(run.message.contains("5 times without getting on"), "{}", run.message);
}

#[test]
fn of_a_worker_after_one_that_died_it_is_said_that_it_is_there() {
    let root = tempfile::tempdir().unwrap();
    let mut both = startable(root.path(), "true");
    both.0.is_alive = true;
    both.0.look();
    assert_eq!(
        both.0.message,
        "its worker ended without saying how (killed, it seems); another one is begun in a while"
    );
    let lock = both.0.place.lock().unwrap().unwrap();
    both.0.look();
    assert_eq!(both.0.message, "its worker ended without saying how (killed, it seems); another one was begun");
    replace(&both.0.place.runtime.join("progress"), &Progress { done: 1.0, ..Progress::default() }, false).unwrap();
    both.0.look();
    assert_eq!(both.0.message, "");
    drop(lock);
}

/// PID 1 was busy for longer than systemd-run waits, and does it then.
#[test]
fn a_worker_that_comes_after_its_start_was_given_up_works() {
    for failed in [0, RETRIES] {
        let root = tempfile::tempdir().unwrap();
        let mut both = startable(root.path(), "exit 1");
        both.0.attempts.failed = failed;
        attempt(&mut both, 0);
        assert_eq!(both.0.state == BackgroundState::Failed, failed == RETRIES);
        let _lock = both.0.place.lock().unwrap().unwrap();
        both.0.look();
        assert_eq!((both.0.state, both.0.message.as_str()), (BackgroundState::Waiting, ""));
        attempt(&mut both, 1);
        assert_eq!(both.0.state, BackgroundState::Running);
    }
}

fn thread_with_lock(run: &Run, may: impl Fn() -> bool + Send + 'static) -> std::thread::JoinHandle<fs::File> {
    let place = run.place.clone();
    std::thread::spawn(move || {
        loop {
            // Whoever looks whether a worker lives holds the lock for a moment too.
            if may()
                && let Some(lock) = place.lock().unwrap()
            {
                return lock;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

#[test]
fn the_end_of_a_service_ends_what_is_in_its_group() {
    let root = tempfile::tempdir().unwrap();
    let mut place = Worker::of(root.path(), Kind::Delete, root.path()).assignment().place.clone();
    let group = root.path().join("a 'group'");
    place.groups.freezer = group.clone();
    fs::create_dir_all(&place.runtime).unwrap();
    fs::create_dir(&group).unwrap();
    write_end_of_group(&place).unwrap();
    let mut left = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(group.join("cgroup.procs"), format!("{}\n", left.id())).unwrap();
    fs::write(group.join("freezer.state"), "FROZEN").unwrap();
    let end = || Command::new("sh").arg(end_of_group(&place)).status().unwrap();
    assert!(end().success());
    left.wait().unwrap();
    assert_eq!(fs::read_to_string(group.join("freezer.state")).unwrap(), "THAWED\n");
    fs::write(group.join("cgroup.kill"), "").unwrap();
    assert!(end().success());
    assert_eq!(fs::read_to_string(group.join("cgroup.kill")).unwrap(), "1\n");
}

#[test]
fn a_child_says_nothing_to_the_daemons_service_manager() {
    let root = tempfile::tempdir().unwrap();
    let place = Worker::of(root.path(), Kind::Delete, root.path()).assignment().place.clone();
    let worker =
        WorkerProgram { program: "true".into(), name: "minervad".into(), arguments: Vec::new(), service_starter: None };
    let command = worker.command(minerva_model::BackgroundId(1), &place, Path::new("errors"));
    assert!(command.get_envs().any(|variable| variable == (OsStr::new("NOTIFY_SOCKET"), None)));
    assert_eq!(command.get_program(), "true");
}
