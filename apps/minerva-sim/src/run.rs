//! `minerva-sim run` and `minerva-sim compare`.

use crate::cells::{TENANT_HEADS, promise_text, tenant_rows};
use crate::cli::{CompareArguments, RunArguments, Scene};
use crate::given::Given;
use crate::output::{megabytes, print_table};
use crate::scene::{Loaded, Prepared, load};
use crate::scheduler::{Name, is_steered};
use crate::{admit, progress, replay, report};
use anyhow::bail;
use indicatif::ProgressBar;
use minerva_blocksched::Promise;
use minerva_model::Nanos;
use minerva_sim_workload::trace::Replayed;
use minerva_sim_world::{Report, sweep};
use std::sync::{Arc, Mutex};

/// Virtual time between two moves of the progress bar.
const STEP: Nanos = Nanos::SECOND;

pub(crate) fn run(arguments: &RunArguments, given: &Given) -> anyhow::Result<()> {
    let scene = &arguments.scene;
    given.judge_scene(scene, &[arguments.scheduler])?;
    scene.report.as_deref().map_or(Ok(()), report::judge_path)?;
    let loaded = load(scene)?;
    admit::warn(&loaded, arguments.scheduler, scene.htbs, scene.seed);
    warn(&loaded, scene, &[arguments.scheduler]);
    let bar = progress::count("virtual seconds", seconds(&loaded, scene));
    let Simulated { report, replayed } = simulate(&loaded, scene, arguments.scheduler, &bar)?;
    bar.finish_and_clear();
    replayed.as_deref().map_or(Ok(()), replay::judge)?;
    let depth = loaded.depth(scene, arguments.scheduler);
    if scene.json {
        println!("{}", json(&report, &loaded, scene, arguments.scheduler, replayed.as_deref())?);
    } else {
        print_report(&report, &loaded, depth);
    }
    finish(scene, &loaded, &[report], &[depth])
}

pub(crate) fn compare(arguments: &CompareArguments, given: &Given) -> anyhow::Result<()> {
    let scene = &arguments.scene;
    given.judge_scene(scene, &arguments.schedulers)?;
    scene.report.as_deref().map_or(Ok(()), report::judge_path)?;
    let loaded = load(scene)?;
    if arguments.schedulers.len() > 1 && loaded.is_read_once(scene) {
        bail!("{} is not a file, and every scheduler reads the trace again; give a file", scene.job.display());
    }
    warn(&loaded, scene, &arguments.schedulers);
    let threads = if arguments.threads == 0 { crate::threads::threads() } else { arguments.threads };
    let count = arguments.schedulers.len() as u64;
    let bar = progress::count("virtual seconds", seconds(&loaded, scene).map(|seconds| seconds * count));
    let simulated = sweep(threads, &arguments.schedulers, |name| simulate(&loaded, scene, *name, &bar));
    bar.finish_and_clear();
    let simulated: Vec<Simulated> = simulated.into_iter().collect::<anyhow::Result<_>>()?;
    // All of them read the same trace: what is wrong with it is said once.
    simulated.first().and_then(|first| first.replayed.as_deref()).map_or(Ok(()), replay::judge)?;
    if scene.json {
        let each = simulated.iter().zip(&arguments.schedulers);
        let reports =
            each.map(|(Simulated { report, replayed }, name)| json(report, &loaded, scene, *name, replayed.as_deref()));
        println!("{}", serde_json::Value::Array(reports.collect::<anyhow::Result<_>>()?));
    }
    let reports: Vec<Report> = simulated.into_iter().map(|simulated| simulated.report).collect();
    let depths: Vec<u32> = arguments.schedulers.iter().map(|name| loaded.depth(scene, *name)).collect();
    if !scene.json {
        print_comparison(&reports, &loaded, &depths);
    }
    finish(scene, &loaded, &reports, &depths)
}

/// A report with how it came about: its setup, and what became of the trace.
fn json(
    report: &Report,
    loaded: &Loaded,
    scene: &Scene,
    name: Name,
    replayed: Option<&Mutex<Replayed>>,
) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(report)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("setup".to_owned(), loaded.setup_json(scene, name));
        object.extend(replayed.map(|replayed| ("trace".to_owned(), replay::json(replayed))));
    }
    Ok(value)
}

/// Says under which schedulers the engine's weights would do nothing, and which priorities nobody is compared by.
fn warn(loaded: &Loaded, scene: &Scene, names: &[Name]) {
    if names.iter().any(|name| name.keeps(Promise::GroupWeights)) {
        loaded.lone_priorities().iter().for_each(|problem| eprintln!("{problem}"));
    }
    let deaf: Vec<&str> = names.iter().filter(|name| !is_steered(**name)).map(|name| name.as_str()).collect();
    if scene.engine && !deaf.is_empty() {
        eprintln!("--engine steers bfq's weights and changes nothing under {}", deaf.join(", "));
    }
}

/// One run's report, and the account of the trace that it replayed.
struct Simulated {
    report: Report,
    replayed: Option<Arc<Mutex<Replayed>>>,
}

/// Virtual seconds that a run takes at most, if that is known.
fn seconds(loaded: &Loaded, scene: &Scene) -> Option<u64> {
    (!loaded.is_trace() || scene.until.is_some()).then(|| loaded.until(scene).0.div_ceil(STEP.0))
}

fn simulate(loaded: &Loaded, scene: &Scene, name: Name, bar: &ProgressBar) -> anyhow::Result<Simulated> {
    let Prepared { mut world, replayed } = loaded.prepare(scene, name)?;
    let until = loaded.until(scene);
    let mut now = Nanos::ZERO;
    while now < until {
        now = (now + STEP).min(until);
        if world.run(now) {
            break;
        }
        bar.inc(1);
    }
    let mut report = world.report();
    report.scheduler = name.as_str().to_owned();
    // The account of a replay appears when its source goes.
    drop(world);
    Ok(Simulated { report, replayed })
}

/// Says what was cut short, and writes the report with plots, if one is wanted.
fn finish(scene: &Scene, loaded: &Loaded, reports: &[Report], depths: &[u32]) -> anyhow::Result<()> {
    for report in reports {
        let cut = report.processes.iter().filter(|process| process.finished_s.is_none()).count();
        if cut > 0 {
            let (all, seconds) = (report.processes.len(), loaded.until(scene));
            eprintln!(
                "{}: {cut} of {all} processes had not ended after {seconds} and were stopped; --until runs longer",
                report.scheduler
            );
        }
    }
    if let Some(path) = &scene.report {
        report::write(path, &scene.job, loaded.profile(), reports, depths)?;
        eprintln!("report with plots: {}", path.display());
    }
    Ok(())
}

fn print_report(report: &Report, loaded: &Loaded, depth: u32) {
    println!(
        "{} on {}, {depth} at the disk at once: {} MB/s, {} requests in {:.1} s, Jain's index {:.3}",
        report.scheduler,
        loaded.profile().name,
        megabytes(report.bytes_per_second),
        report.requests,
        report.seconds,
        report.jain_index
    );
    let rows: Vec<Vec<String>> = report
        .processes
        .iter()
        .map(|process| {
            let total: u64 = report.tenants.iter().map(|tenant| tenant.bytes).sum();
            let share = if total == 0 { 0.0 } else { 100.0 * process.bytes as f64 / total as f64 };
            vec![
                process.name.clone(),
                process.tenant.clone(),
                megabytes(process.bytes_per_second),
                format!("{share:.1} %"),
                format!("{:.2}", process.latency_p50_ms),
                format!("{:.2}", process.latency_p95_ms),
                format!("{:.2}", process.latency_p99_ms),
                format!("{:.2}", process.latency_max_ms),
                process.finished_s.map_or("-".to_owned(), |second| format!("{second:.1}")),
                promise_text(process.promise),
            ]
        })
        .collect();
    let heads =
        ["process", "tenant", "MB/s", "share", "p50 ms", "p95 ms", "p99 ms", "max ms", "ended s", "guarantee missed"];
    print_table(&heads, &rows);
    println!();
    print_table(&TENANT_HEADS, &tenant_rows(report).collect::<Vec<_>>());
    if !report.weights.is_empty() {
        println!("Minerva set {} weights; the last: ", report.weights.len());
        for tenant in &report.tenants {
            if let Some((at, _, weight)) = report.weights.iter().rfind(|(_, name, _)| *name == tenant.name) {
                println!("  {} {weight} at {at:.0} s", tenant.name);
            }
        }
    }
}

fn print_comparison(reports: &[Report], loaded: &Loaded, depths: &[u32]) {
    println!("{}", loaded.profile().name);
    let names: Vec<&str> = reports
        .first()
        .map_or_else(Vec::new, |report| report.processes.iter().map(|process| process.name.as_str()).collect());
    let mut heads = vec!["scheduler", "depth", "MB/s", "Jain", "p50 ms", "p99 ms", "guarantee s missed"];
    // With many processes the table keeps to the sums.
    let shown = if names.len() <= 8 { names.as_slice() } else { &[] };
    heads.extend(shown);
    let rows: Vec<Vec<String>> = reports
        .iter()
        .zip(depths)
        .map(|(report, depth)| {
            let worst = |of: fn(&minerva_sim_world::ReportedProcess) -> f64| {
                report.processes.iter().map(of).fold(0.0, f64::max)
            };
            let promises = || report.processes.iter().filter_map(|process| process.promise);
            let (seconds, missed) =
                promises().fold((0, 0), |(seconds, missed), p| (seconds + p.seconds, missed + p.seconds_missed));
            let head = [
                report.scheduler.clone(),
                depth.to_string(),
                megabytes(report.bytes_per_second),
                format!("{:.3}", report.jain_index),
                format!("{:.2}", worst(|process| process.latency_p50_ms)),
                format!("{:.2}", worst(|process| process.latency_p99_ms)),
                if promises().next().is_some() { format!("{missed} of {seconds}") } else { "-".to_owned() },
            ];
            let rates = report.processes.iter().take(shown.len()).map(|process| megabytes(process.bytes_per_second));
            head.into_iter().chain(rates).collect()
        })
        .collect();
    print_table(&heads, &rows);
    println!("each percentile is the greatest of any process; the last columns are MB/s by process");
}
