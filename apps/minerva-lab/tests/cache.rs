//! The cache's measurements, small, and what an interrupted one leaves behind: nothing. Goals are for quiet machines.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

use minerva_lab::disk::check_machine;
use minerva_lab::workload::blkio_version;
use minerva_model::CgroupVersion;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

const LAB: &str = env!("CARGO_BIN_EXE_minerva-lab");

fn skipped() -> bool {
    if let Err(error) = check_machine() {
        println!("skipped: {error}");
        return true;
    }
    if blkio_version() == CgroupVersion::Absent {
        println!("skipped: needs a blkio or io cgroup controller");
        return true;
    }
    // Other packages' programs are built with the workspace only.
    let is_missing = !Path::new(LAB).with_file_name("minerva-fs").exists();
    if is_missing {
        println!("skipped: needs minerva-fs beside minerva-lab: `cargo build --workspace --bins`");
    }
    is_missing
}

/// Runs the figure with `--json`; its lines.
fn figure(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = Command::new(LAB).arg("figure").args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_burst_goes_by_each_way_and_all_of_it_arrives() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (runs, report) = (folder.path().join("runs.json"), folder.path().join("report.html"));
    let size = ["--megabytes", "8", "--seconds", "5", "--bursts", "1", "--rounds", "1", "--elevator", "bfq"];
    let paths = ["--runs", runs.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let lines = figure(&[&["cache-migration", "--seed", "7"][..], &size, &paths].concat());
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| line["value"].is_number()), "{lines:?}");
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&runs).unwrap()).unwrap();
    let arms = kept[0]["rounds"][0].as_array().unwrap();
    assert_eq!(arms.iter().filter(|arm| arm["burst_s"].is_array()).count(), 3, "all but the neighbours alone");
    for neighbour in arms.iter().flat_map(|arm| arm["busy"].as_array().unwrap()) {
        assert!(neighbour["mb_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{neighbour}");
    }
    assert_eq!(std::fs::read_to_string(&report).unwrap().matches("<svg").count(), 4);
}

#[test]
fn the_pools_are_set_against_what_lies_below() {
    if skipped() {
        return;
    }
    let lines = figure(&["cache-throughput", "--megabytes", "8", "--span-ms", "50", "--rounds", "1"]);
    let stable: Vec<_> = lines.iter().filter(|line| line["detail"].as_str().unwrap().starts_with("stable")).collect();
    assert_eq!((lines.len(), stable.len()), (8, 4), "{lines:?}");
    assert!(stable.iter().all(|line| line["value"].as_f64().is_some_and(|part| part > 0.0)), "{stable:?}");
}

#[test]
fn many_tenants_and_a_hostile_one_are_measured() {
    if skipped() {
        return;
    }
    let size = ["--tenants", "3", "--files", "30", "--idle-seconds", "1", "--seconds", "1", "--rounds", "1"];
    let lines = figure(&[&["cache-tenants"][..], &size].concat());
    assert_eq!(lines.len(), 4 + 5, "{lines:?}");
    for line in &lines[..4] {
        let detail = line["detail"].as_str().unwrap();
        assert!(detail.contains("; 0 of") && !detail.contains("0 of 0 refused"), "nothing is refused: {detail}");
    }
    let holds = lines.iter().find_map(|line| line["detail"].as_str().filter(|detail| detail.contains("holds 100,000")));
    let is_at_work = |detail: &str| detail.contains("held [100000]") || !detail.contains("to the neighbour, 0 of");
    assert!(holds.is_some_and(is_at_work), "it holds all or is refused more before anything is measured: {holds:?}");
    let walk = lines.last().unwrap();
    assert!(walk["value"] == 0.0 && walk["detail"].as_str().unwrap().contains("30 found"), "{walk}");
}

#[test]
fn a_hostile_process_says_when_it_holds_all_its_files_and_at_its_end_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("held");
    let mut command = Command::new(LAB);
    command.args(["hostile", "--act", "opens", "--directory"]).arg(&directory);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut said, mut line) = (BufReader::new(process.stdout.take().unwrap()), String::new());
    said.read_line(&mut line).unwrap();
    let files = std::fs::read_dir(&directory).unwrap().count();
    drop(process.stdin.take());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    process.wait().unwrap();
    let done: serde_json::Value = serde_json::from_str(&rest).unwrap();
    // An eighth of them all, unless this machine lets no process have so many.
    assert!(line == "at work\n" && (files == 12_500 || done["refused"] != 0), "{line}{files} files: {rest}");
    assert_eq!(done["held"], files);
}

/// What it did before the neighbour was measured is no company.
#[test]
fn a_hostile_process_counts_what_it_does_since_it_was_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(LAB);
    command.args(["hostile", "--act", "opens", "--directory"]).arg(folder.path().join("held"));
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut said, mut stdin) = (BufReader::new(process.stdout.take().unwrap()), process.stdin.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    process.wait().unwrap();
    let done: serde_json::Value = serde_json::from_str(&rest).unwrap();
    // It holds thousands by now, and looks at one of them each millisecond, or is refused another.
    assert!(done["held"].as_u64() > Some(0) && done["acts"].as_u64() < done["held"].as_u64(), "{rest}");
}

#[test]
fn an_interrupted_demonstration_of_the_cache_leaves_nothing_behind() {
    if skipped() {
        return;
    }
    let mut command = Command::new(LAB);
    command
        .args(["demo", "cache", "--report", "/dev/null"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut demo = command.spawn().unwrap();
    let (mut said, mut message) = (BufReader::new(demo.stderr.take().unwrap()), String::new());
    // The disks, the pool and its service are there now.
    while !message.contains("round 1") {
        assert_ne!(said.read_line(&mut message).unwrap(), 0, "{message}");
    }
    // As a terminal does, to the whole group of processes.
    assert!(Command::new("kill").args(["-INT", "--", &format!("-{}", demo.id())]).status().unwrap().success());
    said.read_to_string(&mut message).unwrap();
    demo.wait().unwrap();
    assert!(message.contains("interrupted: everything that was set up has been removed"), "{message}");
    let ours = format!("cache-{}", demo.id());
    assert!(!std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&ours));
    let left = std::fs::read_dir("/run/minerva-lab").into_iter().flatten().flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!Path::new(&format!("/sys/fs/cgroup/blkio/minerva-lab-cache-{}-0", demo.id())).exists());
}
