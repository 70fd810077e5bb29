//! The demonstration on the real kernel, small, and what an interrupted one leaves behind: nothing.

use minerva_lab::disk::status;
use minerva_lab::scene::check_machine;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = env!("CARGO_BIN_EXE_minerva-lab");
/// The least work there is: one block a tenant.
const TINY: &str = "0.000001";

fn skipped() -> bool {
    if let Err(error) = check_machine() {
        println!("skipped: {error}");
        return true;
    }
    false
}

/// Polls until it holds; false when that is in vain.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_scene_is_played_measured_and_reported() {
    if skipped() {
        return;
    }
    let report = std::env::temp_dir().join(format!("minerva-test-report-{}.html", std::process::id()));
    let mut command = Command::new(LAB);
    command.args(["demo", "--json", "--profile", "sata-ssd", "--scale", TINY, "--scene", "together", "--seed", "7"]);
    let output = command.args(["--weights", "1000,1000,100,100", "--report"]).arg(&report).output().unwrap();
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{progress}");
    let page = std::fs::read_to_string(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    assert_eq!(page.matches("<svg").count(), 7, "one of completion, two for each of three runs");
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let steerings: Vec<_> = results["runs"].as_array().unwrap().iter().map(|run| run["steering"].clone()).collect();
    assert_eq!(steerings, ["equal", "kernel", "fixed"]);
    for tenant in results["runs"][0]["tenants"].as_array().unwrap() {
        assert_eq!(tenant["bytes"], 256 << 10);
    }
    assert_eq!(results["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(results["seed"], 7);
    // Drawn with this seed, and shown in an order that stays.
    let played: Vec<&str> = progress.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let mut order: Vec<&str> = played.into_iter().filter(|line| ["equal", "kernel", "fixed"].contains(line)).collect();
    assert_ne!(order, ["equal", "kernel", "fixed"], "{progress}");
    order.sort_unstable();
    assert_eq!(order, ["equal", "fixed", "kernel"], "{progress}");
}

#[test]
fn a_report_that_cannot_be_written_loses_no_table() {
    if skipped() {
        return;
    }
    let mut command = Command::new(LAB);
    command.args(["demo", "--equal-only", "--profile", "sata-ssd", "--scale", TINY, "--scene", "together"]);
    let output = command.args(["--report", "/nonexistent/report.html"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("/nonexistent/report.html"), "{message}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("whole disk: "), "the table");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(LAB);
    command.args(["disk", "profiles"]).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[test]
fn an_interrupted_demonstration_leaves_nothing_behind() {
    if skipped() {
        return;
    }
    let mut command = Command::new(LAB);
    command
        .args(["demo", "--equal-only", "--scale", "1", "--report", "/dev/null"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut demo = command.spawn().unwrap();
    let disk = format!("demo-{}", demo.id());
    let is_busy = until(|| {
        assert!(demo.try_wait().unwrap().is_none(), "the demonstration ended by itself");
        status(&disk).is_ok_and(|status| status.statistics.replies >= 20)
    });
    let pid = demo.id();
    let signal = |signal| Command::new("kill").args([signal, "--", &format!("-{pid}")]).status().unwrap().success();
    // As a terminal does, to the whole group of processes; also to one that does not get on, which else would be left.
    assert!(signal("-INT"));
    let has_ended = until(|| demo.try_wait().unwrap().is_some());
    assert!(has_ended || signal("-KILL"));
    assert!(is_busy, "waited in vain until the disk is busy");
    assert!(has_ended, "waited in vain until the demonstration is over");
    let output = demo.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("interrupted: everything that was set up has been removed"), "{message}");
    assert!(status(&disk).is_err());
    assert!(!std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&disk));
    assert!(!message.contains("failed"), "{message}");
    assert!(!Path::new(&format!("/sys/fs/cgroup/blkio/minerva-lab-demo-{pid}-0")).exists());
    assert!(!Path::new(&format!("/sys/fs/cgroup/minerva-lab-demo-{pid}-0")).exists());
}

#[test]
fn without_root_it_says_so() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root, to give it up");
        return;
    }
    let mut command = Command::new(LAB);
    let Ok(output) = command.args(["disk", "create", "--name", "minerva-test-nobody"]).uid(65534).output() else {
        println!("skipped: needs a build directory that others may read");
        return;
    };
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(message.contains("needs root: run it with sudo"), "{message}");
}

#[test]
fn a_missing_daemon_is_told_before_anything_is_made() {
    if skipped() {
        return;
    }
    let output = Command::new(LAB).args(["demo", "--minervad", "/nonexistent/minervad"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("there is no minervad at /nonexistent/minervad"), "{message}");
}
