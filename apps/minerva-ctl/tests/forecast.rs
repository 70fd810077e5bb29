//! `minerva-ctl forecast evaluate` on files of every kind, whole and broken.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod tables;

use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSample, Event, IoCounters, Nanos, Origin, Sample,
    Tenant, TenantId, TenantIo, TenantKind, Terms, WaitCounters,
};
use minerva_store::Recorder;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

fn evaluate(file: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.args(["forecast", "evaluate"]).arg(file).args(options);
    command.output().unwrap()
}

/// The exit status of a run on a table, what it printed, and what it said beside.
fn judged(name: &str, table: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    std::fs::write(&file, table).unwrap();
    let output = evaluate(&file, options);
    let [shown, told] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), shown, told)
}

/// The scores of a run, one object a model and horizon.
fn scores(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn find<'a>(scores: &'a [Value], horizon: &str, model: &str) -> &'a Value {
    scores.iter().find(|score| score["horizon"] == horizon && score["model"] == model).unwrap()
}

/// Twelve seconds: six of reading, six of computing.
fn cycle(second: u64) -> f64 {
    if second % 12 < 6 { 50e6 + (second * 7919 % 1000) as f64 * 1e3 } else { 0.0 }
}

#[test]
fn every_model_is_judged_on_a_table_and_a_cycle_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cycle.csv");
    let mut text = "time,rate,name\n".to_owned();
    (0..900).for_each(|second| writeln!(text, "{},{},a", 1_700_000_000 + second, cycle(second)).unwrap());
    std::fs::write(&file, text).unwrap();
    let report = directory.path().join("report.html");
    let output = evaluate(&file, &["--json", "--report", report.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scores = scores(&output);
    let models: Vec<&str> = scores
        .iter()
        .filter(|score| score["horizon"] == "next step")
        .map(|score| score["model"].as_str().unwrap())
        .collect();
    assert_eq!(models.len(), 10, "{models:?}");
    // A line through past values cannot follow a cycle of pauses, and is judged all the same.
    let ridge = find(&scores, "next step", "ridge");
    assert!(ridge["mase"].is_f64(), "{ridge}");
    let trees = find(&scores, "next 15 steps", "boosted trees");
    assert!(trees["mase"].as_f64().unwrap() < 1.0, "{trees}");
    let burg = find(&scores, "next 15 steps", "autoregression, Burg");
    assert!(burg["mase"].as_f64().unwrap() < 0.5, "{burg}");
    assert!(burg["busy_hit_rate_percent"].as_f64().unwrap() > 90.0, "{burg}");
    assert!(burg["brier_score"].as_f64().unwrap() < 0.1 && burg["microseconds_per_forecast"].as_f64().unwrap() > 0.0);
    for measure in ["mae", "rmse", "smape_percent", "mpe_percent"] {
        assert!(burg[measure].is_f64(), "{measure}: {burg}");
    }
    let page = std::fs::read_to_string(report).unwrap();
    for part in ["autocorrelation", "partial autocorrelation", "trend, period 12 steps", "season", "residual", "MASE"] {
        assert!(page.contains(part), "the report lacks {part}");
    }
    let people = evaluate(&file, &[]);
    assert!(String::from_utf8_lossy(&people.stdout).contains("rate: 900 steps of 1.00 s"));
}

#[test]
fn days_are_judged_from_midnight_to_midnight() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("days.tsv");
    let mut text = "timestamp\tvm\tload\n".to_owned();
    for vm in ["a", "b"] {
        for bin in 0..21 * 144_u64 {
            let (day, slot) = (bin / 144, (bin % 144) as f64);
            let level = if day % 7 < 5 { 1000.0 } else { 100.0 };
            let value = level * (2.0 + (slot / 23.0).sin());
            // A Monday.
            writeln!(text, "{}\t{vm}\t{value}", 1_704_067_200 + bin * 600).unwrap();
        }
    }
    std::fs::write(&file, text).unwrap();
    let output = evaluate(&file, &["--json", "--by", "vm"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scores = scores(&output);
    let of_a: Vec<Value> = scores.into_iter().filter(|score| score["series"] == "a, load").collect();
    let (ago, clusters) = (find(&of_a, "day", "a day ago"), find(&of_a, "day", "day clusters"));
    assert!(clusters["mae"].as_f64() < ago["mae"].as_f64(), "{clusters} {ago}");
    // What is kept of a week is rounded to single precision.
    assert!(find(&of_a, "day", "a week ago")["mae"].as_f64() < Some(1e-3));
    assert!(find(&of_a, "week", "ensemble by skill")["forecasts"].as_u64().unwrap() > 1000);
}

#[test]
fn a_constant_is_forecast_and_one_point_honestly_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str, rows: usize| {
        let file = directory.path().join(name);
        std::fs::write(&file, "load\n".to_owned() + &"7\n".repeat(rows)).unwrap();
        evaluate(&file, &["--json"])
    };
    let constant = of("constant.csv", 300);
    assert!(constant.status.success());
    let scores_of = scores(&constant);
    assert_eq!(find(&scores_of, "next step", "mean of 16")["mae"].as_f64(), Some(0.0));
    assert!(find(&scores_of, "next step", "last value")["mase"].is_null(), "nothing is a unit of no error");
    let one = of("one.csv", 1);
    assert_eq!(one.status.code(), Some(1));
    let scores = scores(&one);
    assert!(scores.iter().all(|score| score["forecasts"] == 0 && score["why"].as_str().unwrap().starts_with("none: ")));
    for (name, text, why) in [
        ("empty.csv", "", "empty.csv: it is empty; the first line names the columns"),
        ("heads.csv", "time,rate\n", "heads.csv: it names the columns time, rate and has no rows"),
        ("orders.csv", "a,\u{1b}[2Jb\nx,y\n", "no column holds numbers besides the time; there are a, \u{fffd}[2Jb"),
        ("words.csv", "a,b\nx,y\n", "words.csv: no column holds numbers besides the time; there are a, b"),
        ("other.dat", "x", "it is no recording, and its name does not end in .csv, .tsv or .parquet"),
        ("broken.parquet", "PAR1 and no more PAR1", "failed to read"),
    ] {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        let output = evaluate(&file, &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(why) && !told.contains("panicked"), "{name}: {told}");
    }
}

#[test]
fn whoever_reads_findings_no_further_ends_it_as_a_signal_does() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("findings.csv");
    // More than a pipe holds.
    let columns: Vec<String> = (0..2_000).map(|column| format!("a_column_with_a_long_name_{column}")).collect();
    let row = |cell: &str| format!("{}\n", vec![cell; columns.len()].join(","));
    std::fs::write(&file, format!("{}\n{}{}{}", columns.join(","), row("1"), row("1"), row("x"))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    let mut child =
        command.args(["forecast", "evaluate"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

#[test]
fn what_never_ends_is_not_read_and_what_no_model_takes_is_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let device = directory.path().join("zero.csv");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    let output = evaluate(&device, &[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("zero.csv: it is a device and no file"), "{told}");
    let large = directory.path().join("large.csv");
    std::fs::write(&large, "load\n".to_owned() + &"7\n".repeat(100) + "1e300\n" + &"7\n".repeat(100)).unwrap();
    let output = evaluate(&large, &["--json"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "large.csv:102: load: above 1e18, which no model takes; taken as a gap";
    assert!(output.status.code() == Some(1) && told.contains(expected), "{told}");
    assert_eq!(find(&scores(&output), "next step", "mean of 16")["mae"].as_f64(), Some(0.0));
    let output = evaluate(&large, &["--step", "0s"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("--step 0s is no step"), "{told}");
}

/// Sessions of a hundred or a thousand megabytes in turns, with a pause after each that ends it.
#[test]
fn sessions_are_told_in_their_first_step() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sessions.csv");
    let mut text = "time,rate\n".to_owned();
    for second in 0..3_000_u64 {
        let (session, at) = (second / 30, second % 30);
        let size = if session % 2 == 0 { 100e6 } else { 1e9 };
        writeln!(text, "{},{}", 1_700_000_000 + second, if at < 10 { size / 10.0 } else { 0.0 }).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let output = evaluate(&file, &["--json"]);
    let scores = scores(&output);
    let model = find(&scores, "session", "model of sessions");
    assert!(model["forecasts"].as_u64().unwrap() > 80, "{model}");
    assert!(model["mase"].as_f64().unwrap() < 0.5, "the first step tells which it is: {model}");
    let few = evaluate_cycle(&directory);
    assert!(few.iter().any(|score| score["horizon"] == "session" && score["forecasts"] == 0), "{few:?}");
}

/// Of a cycle without pauses.
fn evaluate_cycle(directory: &tempfile::TempDir) -> Vec<Value> {
    let file = directory.path().join("cycle.csv");
    let mut text = "time,rate\n".to_owned();
    (0..200).for_each(|second| writeln!(text, "{},{}", 1_700_000_000 + second, cycle(second)).unwrap());
    std::fs::write(&file, text).unwrap();
    scores(&evaluate(&file, &["--json"]))
}

/// A disk, a tenant that reads on it in cycles, and what a daemon is told of both, second by second.
fn told() -> Vec<(u64, Event)> {
    let device = DeviceId { major: 8, minor: 0 };
    let facts = DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: Some("bfq".to_owned()),
        elevators_available: vec!["bfq".to_owned()],
        bfq_low_latency: Some(false),
        bfq_strict_guarantees: None,
        iocost_available: false,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: false,
        multi_queue: true,
        rotational: true,
        stacked_on: Vec::new(),
        size_bytes: 1 << 40,
        back_end_forced: None,
    };
    let tenant = Tenant {
        id: TenantId(1),
        name: "vm1".to_owned(),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: "vm1".to_owned(), inode: 1 },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    };
    let mut events = vec![
        (0, Event::Configured(Box::default())),
        (0, Event::DeviceSeen(Device { id: device, name: "sda".to_owned(), facts })),
        (0, Event::TenantSeen { tenant, history: Vec::new() }),
    ];
    let mut counters = IoCounters::default();
    for second in 1..300 {
        counters.read_bytes += cycle(second) as u64;
        counters.read_ops += 1;
        let (wait, io) =
            (WaitCounters::default(), TenantIo { tenant: TenantId(1), device, counters, wait: None, served_ns: None });
        let disk = DeviceSample { device, counters, wait, busy_ns: 0, in_flight: 0, flushes: 0 };
        let sample = Sample { devices: vec![disk], io: vec![io], ..Sample::default() };
        events.push((second, Event::Sampled(Box::new(sample))));
    }
    events
}

/// From the beginning, or from the engine's state after the tenant and the disk were named.
#[test]
fn a_recording_has_a_series_for_what_each_tenant_reads_and_writes() {
    for begins_with_snapshot in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tape");
        let (mut engine, mut events) = (Engine::new(), told());
        let recorded = events.split_off(if begins_with_snapshot { 5 } else { 0 });
        for (second, event) in events {
            engine.handle(Nanos::from_secs(second), event);
            while engine.poll_effect().is_some() {}
        }
        let snapshot = if begins_with_snapshot { engine.snapshot() } else { Vec::new() };
        let mut recorder = Recorder::from_snapshot(std::fs::File::create(&file).unwrap(), &snapshot).unwrap();
        recorded.iter().for_each(|(second, event)| recorder.event(Nanos::from_secs(*second), event).unwrap());
        recorder.finish().unwrap();
        let output = evaluate(&file, &["--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let scores = scores(&output);
        assert!(scores.iter().all(|score| score["series"] == "vm1 reads on sda"), "{scores:?}");
        assert!(find(&scores, "next step", "last value")["mae"].as_f64().unwrap() > 1e6);
    }
}
