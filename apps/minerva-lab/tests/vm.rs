//! The figures with real guests, small: that they run, and that what they measure has an effect.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

use minerva_lab::disk::check_machine;
use minerva_lab::workload::blkio_version;
use minerva_model::CgroupVersion;
use std::path::Path;
use std::process::Command;

const LAB: &str = env!("CARGO_BIN_EXE_minerva-lab");

/// Runs the figure with `--json`; its lines, or nothing with the reason printed.
fn figure(arguments: &[&str]) -> Option<Vec<serde_json::Value>> {
    lab(&[&["figure"], arguments].concat())
}

/// The same of any command.
fn lab(arguments: &[&str]) -> Option<Vec<serde_json::Value>> {
    if let Err(error) = check_machine() {
        println!("skipped: {error}");
        return None;
    }
    if blkio_version() == CgroupVersion::Absent {
        println!("skipped: needs a blkio or io cgroup controller");
        return None;
    }
    // Other packages' programs are built with the workspace only.
    if !Path::new(LAB).with_file_name("minerva-blk").exists() {
        println!("skipped: needs minerva-blk beside minerva-lab: `cargo build --workspace --bins`");
        return None;
    }
    let output = Command::new(LAB).args(arguments).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("guests need ") {
        println!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn value(line: &serde_json::Value) -> f64 {
    line["value"].as_f64().unwrap()
}

/// By turns each request costs a seek, and there is not enough for the greatest contract.
#[test]
fn contracts_of_real_guests_are_kept_where_nobody_orders_they_are_not() {
    let mut seen = Vec::new();
    // A machine that is busy with other tests may cost seconds, so one run of three will do, and one second there; that none at all is missed
    // is the figure's to show.
    for seed in ["1", "2", "3"] {
        let arguments = ["vm-contracts", "--arm", "htbs,noop", "--seconds", "6", "--runs", "1", "--seed", seed];
        let Some(lines) = figure(&arguments) else { return };
        if value(&lines[1]) >= 5.0 && value(&lines[0]) <= 1.0 {
            return;
        }
        seen.push(lines);
    }
    panic!("{seen:?}");
}

#[test]
fn priorities_of_programs_in_real_guests_are_obeyed_across_guests() {
    for access in ["read", "write"] {
        let mut seen = Vec::new();
        // As above: one run of three will do.
        let is_obeyed = ["1", "2", "3"].into_iter().find_map(|seed| {
            let short = ["--access", access, "--seconds", "6", "--runs", "1", "--no-kernel", "--seed", seed];
            let lines = figure(&[&["vm-tags"], &short[..]].concat())?;
            let is_obeyed = value(&lines[0]) == 0.0 && value(&lines[1]) > 0.0;
            seen.push(lines);
            is_obeyed.then_some(())
        });
        if seen.is_empty() {
            return;
        }
        assert!(is_obeyed.is_some(), "{seen:?}");
    }
}

/// Both experiments of the papers, small: real guests and the simulator stand beside each other, and the page has the plots.
#[test]
fn the_papers_experiments_are_played_in_guests_and_in_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    for (experiment, arm, plots) in [("htbs", "htbs", 2), ("tag", "tag", 4)] {
        let report = folder.path().join(experiment);
        let short = ["reproduce", experiment, "--arm", arm, "--seconds", "3", "--seed", "1", "--report"];
        let readers: &[&str] = if experiment == "htbs" { &["--readers", "0"] } else { &[] };
        let Some(lines) = lab(&[&short[..], &[report.to_str().unwrap()], readers].concat()) else { return };
        let plays = lines[0]["plays"].as_array().unwrap();
        let has_read = |play: &serde_json::Value| play["mb_per_second"].as_f64() > Some(1.0);
        let of = |by: &str| plays.iter().filter(|play| play["by"] == by && has_read(play)).count();
        assert!(of("guests") > 0 && of("guests") == of("simulator"), "{lines:?}");
        assert_eq!(std::fs::read_to_string(&report).unwrap().matches("<svg").count(), plots);
    }
}
