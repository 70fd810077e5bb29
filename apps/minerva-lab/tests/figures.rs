//! The figures that run the daemon, small: kills under load, and many tenants.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

mod ready;

use minerva_lab::workload::blkio_version;
use minerva_model::CgroupVersion;
use ready::{LAB, is_ready, lines};
use std::process::Command;

/// Runs the figure with `--json`; its lines, or nothing with the reason printed.
fn figure(arguments: &[&str]) -> Option<Vec<serde_json::Value>> {
    if !is_ready(&["minervad", "minerva-ctl"]) {
        return None;
    }
    let output = Command::new(LAB).arg("figure").args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(lines(output.stdout))
}

#[test]
fn ten_kills_under_load_are_restored_and_lose_no_row() {
    // Short windows on a busy machine tell a weight that stayed (three times the part, as the run itself shows) from none, no more.
    let kills = ["kill-restore", "--kills", "10", "--effect-checks", "2"];
    let effect = ["--effect-seconds", "6", "--effect-error-percent", "40"];
    let Some(lines) = figure(&[&kills[..], &effect[..]].concat()) else { return };
    assert_eq!((&lines[0]["value"], &lines[0]["met"]), (&10.0.into(), &false.into()), "as few meet no goal: {lines:?}");
    let detail = lines[0]["detail"].as_str().unwrap();
    let number = |before: &str, after: &str| {
        let text = detail.split_once(before).and_then(|(_, rest)| rest.split_once(after)).map(|(text, _)| text);
        text.and_then(|text| text.rsplit(' ').find(|word| !word.is_empty())?.parse::<f64>().ok())
    };
    assert!(number(" s: ", " kills met held knobs") >= Some(2.0), "{detail}");
    assert!(number("at the last ", " rows were acknowledged") > Some(0.0), "{detail}");
    // A referee who sees an effect where there is none, or none where there is one, has shown nothing.
    assert!(number("after ", " restores tenants") >= Some(1.0), "{detail}");
    assert!(number("before it: ", " % off their mean").is_some_and(|noise| noise <= 40.0), "{detail}");
    assert!(number("left on purpose: ", " %") > Some(40.0), "{detail}");
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    // Whether a slice was unchanged is the tenants' doing, and takes longer on some machines; that it had no write is the daemon's.
    for slices in ["5", "10", "20"] {
        let Some(lines) = figure(&["idle-writes", "--tenants", "30", "--slices", slices]) else { return };
        if !lines[0]["value"].is_null() {
            assert_eq!(lines[0]["value"], 0.0, "{lines:?}");
            return;
        }
    }
    panic!("no slice was unchanged, so nothing was seen");
}

/// So far two equal readers may be apart after an undo, as a part of the faster one's rate, where the test has seconds only.
const UNDONE_APART_MAX: f64 = 0.4;

/// What the two readers got after the undo, in MB/s, by a line's detail.
fn rates_after(detail: &str) -> Option<[f64; 2]> {
    let (_, pair) = detail.strip_suffix(" MB/s after")?.rsplit_once("8:1, ")?;
    let (one, other) = pair.split_once(" and ")?;
    Some([one.parse().ok()?, other.parse().ok()?])
}

#[test]
fn an_undone_weight_has_no_effect_any_more() {
    if blkio_version() != CgroupVersion::V1 {
        println!("skipped: needs a blkio controller of cgroup v1");
        return;
    }
    let further = ["--seconds", "8", "--rounds", "1", "--by", "end,mode,exclusion"];
    let Some(lines) = figure(&[&["undo-bites", "--back-end", "bfq-v1"], &further[..]].concat()) else { return };
    // Goals are for the figure, and so is what each reader had before: other tests slow this machine's disks down for a while.
    // BFQ may hold against a group for seconds what it was served in advance at its small weight (docs/operator.md); a weight
    // that is still in force leaves the two 90 % apart.
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        let detail = line["detail"].as_str().unwrap();
        let [one, other] = rates_after(detail).unwrap_or_else(|| panic!("{detail}"));
        assert!((one - other).abs() < UNDONE_APART_MAX * one.max(other), "{lines:?}");
        // What was never in force shows nothing by being gone.
        let ratio = detail
            .split_once(":1 while steered")
            .and_then(|(before, _)| before.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(ratio >= Some(3.0), "{detail}");
    }
}

/// The harness, small: every arm plays, what is compared is there, and every single run is kept. Goals are for quiet machines.
#[test]
fn minerva_is_set_against_the_kernel() {
    let folder = std::env::temp_dir().join(format!("minerva-test-against-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let runs = folder.join("runs.json");
    let arguments = ["against-kernel", "--scene", "short-2,commit-1", "--arm", "mq-deadline,bfq,minerva"];
    let further = ["--profile", "sata7200-80g", "--rounds", "1", "--scale", "0.35", "--seed", "7"];
    let paths = ["--runs", runs.to_str().unwrap(), "--plots", folder.to_str().unwrap()];
    let Some(lines) = figure(&[&arguments[..], &further[..], &paths[..]].concat()) else { return };
    let has = |part: &str| lines.iter().any(|line| line["detail"].as_str().unwrap().contains(part));
    for part in
        ["short-2, minerva, completion of the short", "commit-1, minerva, done by", "whole disk", "over 1 scenes"]
    {
        assert!(has(part), "{part} is missing in {lines:?}");
    }
    assert!(lines.iter().all(|line| line["value"].as_f64().is_some_and(|value| value > 0.0)), "{lines:?}");
    let kept: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&runs).unwrap()).unwrap();
    // Two kinds of work alone in each scene, and three arms.
    assert_eq!(kept.len(), 2 * (2 + 3));
    assert!(folder.join("against-kernel-short-2-sata7200-80g.svg").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The harness on cgroup v2, small: one round in a guest, under BFQ, and without an elevator through iocost and through caps.
#[test]
fn minerva_is_set_against_the_kernel_in_a_guest_and_against_nobody_without_an_elevator() {
    let arguments = ["against-kernel", "--guest", "--scene", "short-2", "--profile", "slow-ssd"];
    let further = ["--arm", "none,kyber,minerva,minerva-iocost,minerva-max", "--rounds", "1", "--scale", "0.2"];
    let Some(lines) = figure(&[&arguments[..], &further[..], &["--seed", "7"]].concat()) else { return };
    if lines[0]["value"].is_null() {
        println!("skipped: {}", lines[0]["detail"]);
        return;
    }
    for (arm, judgements) in [("minerva", 1), ("minerva-iocost", 2), ("minerva-max", 2)] {
        for what in ["completion of the short", "completion of the heavy", "whole disk"] {
            let part = format!("slow-ssd, short-2, {arm}, {what}");
            let detail = |line: &serde_json::Value| line["detail"].as_str().unwrap().to_owned();
            let found: Vec<_> = lines.iter().filter(|line| detail(line).starts_with(&part)).collect();
            assert_eq!(found.len(), judgements, "{part} in {lines:?}");
            assert!(found.iter().all(|line| line["value"].as_f64().is_some_and(|value| value > 0.0)), "{found:?}");
            // Against the better of the kernel's two arms first, then against nobody.
            let [best, nobody] = [found[0], found[judgements - 1]].map(detail);
            assert!(["baseline none", "baseline kyber"].iter().any(|baseline| best.contains(baseline)), "{best}");
            assert!(judgements == 1 || nobody.contains("baseline none"), "{nobody}");
        }
    }
}

/// The harness, small: a daemon learns, is ended, and what it kept is what the next begins with; what was played is not played again.
#[test]
fn what_forecasts_are_worth_is_measured_and_goes_on_where_it_stopped() {
    let folder = std::env::temp_dir().join(format!("minerva-test-worth-{}", std::process::id()));
    let scene = ["worth", "--scene", "proactive", "--profile", "sata-ssd", "--like", "named", "--arm", "equal,minerva"];
    let size = ["--pairs", "1", "--scale", "0.002", "--seed", "5", "--folder", folder.to_str().unwrap()];
    let Some(lines) = figure(&[&scene[..], &size[..], &["--runs-max", "2"]].concat()) else { return };
    // What was learnt and one run make no pair.
    assert!(!lines.is_empty() && lines.iter().all(|line| line["met"] == false && line["value"].is_null()), "{lines:?}");
    assert!(folder.join("sata-ssd-named-5000/models/sessions.1").exists(), "the model is kept");
    let played = || std::fs::read_to_string(folder.join("runs.jsonl")).unwrap().lines().count();
    assert_eq!(played(), 1);
    for _ in 0..2 {
        let lines = figure(&[&scene[..], &size[..]].concat()).unwrap();
        let has = |part: &str| lines.iter().any(|line| line["detail"].as_str().unwrap().contains(part));
        for measured in ["tenant 1 against equal", "tenant 4 against equal", "whole disk, of what equal weights gave"] {
            assert!(has(&format!("{measured}: median of 1 pairs")), "{measured}: {lines:?}");
        }
        assert!(has("tenant 1 against fennel: not measured"), "{lines:?}");
        assert_eq!(played(), 2);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
