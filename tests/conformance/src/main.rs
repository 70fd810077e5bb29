//! `minerva-conformance`: the simulator against the real kernel.

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use minerva_conformance::Arm;
use minerva_conformance::compare::{Pair, Quantity, worst};
use minerva_conformance::host::Host;
use minerva_conformance::job::{Job, QUICK, held_out, jobs};
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::recorded::{Measured, Recorded};
use minerva_conformance::simulated;
use std::path::PathBuf;

/// Runs the same jobs on the simulator and on the real kernel over an emulated disk.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures a figure.
    Figure {
        #[command(subcommand)]
        figure: Figure,
    },
}

#[derive(Subcommand)]
enum Figure {
    /// How far the simulator is from the kernel: throughput, shares, 99th percentile.
    SimAgrees(SimAgrees),
}

#[derive(clap::Args)]
struct SimAgrees {
    /// JSON lines: id, value, unit, goal, met, detail.
    #[arg(long)]
    json: bool,
    /// Only the first few jobs, and briefly.
    #[arg(long)]
    quick: bool,
    /// The jobs that were held out while the models were made, in place of the suite.
    #[arg(long, conflicts_with = "quick")]
    held_out: bool,
    /// Only jobs whose description contains this.
    #[arg(long)]
    only: Option<String>,
    /// Only a part of the jobs: `2/7` for the second of seven.
    #[arg(long, value_name = "NTH/COUNT", value_parser = parse_part)]
    part: Option<(usize, usize)>,
    /// Seconds of each real job.
    #[arg(long)]
    seconds: Option<u64>,
    /// Keep the real arm in this file, beside the other jobs that are in it.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the real arm from a file that `--record` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    recorded: Option<PathBuf>,
}

/// Seconds of each real job. A disk that seeks serves a hundred requests a second: in a third of this time the 99th percentile
/// of one tenant of four is its third longest request, and two recordings of it were up to 68 % apart.
const SECONDS: u64 = 30;
/// Virtual time is cheap: the simulated arm measures this many times as long, in as many windows.
const WINDOWS: u64 = 20;

fn parse_part(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(nth, count)| Some((nth.parse().ok()?, count.parse().ok()?)));
    parsed.filter(|(nth, count)| (1..=*count).contains(nth)).ok_or_else(|| "write it like 2/7".to_owned())
}

/// The jobs that were asked for.
fn chosen(options: &SimAgrees) -> Vec<Job> {
    let mut jobs = if options.held_out { held_out() } else { jobs() };
    jobs.truncate(if options.quick { QUICK } else { jobs.len() });
    jobs.retain(|job| options.only.as_ref().is_none_or(|part| job.to_string().contains(part)));
    if let Some((nth, count)) = options.part {
        let each = jobs.len().div_ceil(count);
        jobs = jobs.into_iter().skip((nth - 1) * each).take(each).collect();
    }
    jobs
}

fn main() -> anyhow::Result<()> {
    let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } = Arguments::parse();
    let jobs = chosen(&options);
    let recorded = match &options.recorded {
        Some(path) => Recorded::read(path)?,
        None => measure(&jobs, &options)?,
    };
    let mut pairs = Vec::new();
    for (index, job) in jobs.into_iter().enumerate() {
        let Measured { host, outcome, windows, seconds } = recorded.get(&job)?;
        let simulated = simulated::run(&job, host, *seconds, WINDOWS, 1)?;
        let pair = Pair { job, simulated, real: Arm { whole: outcome.clone(), windows: windows.clone() } };
        eprintln!("{:>2} {} ({})", index + 1, pair.line(), describe(host));
        pairs.push(pair);
    }
    let mut met = true;
    for quantity in Quantity::ALL {
        met &= print(&pairs, quantity, options.json);
    }
    std::process::exit(i32::from(!met));
}

/// The real arm.
fn measure(jobs: &[Job], options: &SimAgrees) -> anyhow::Result<Recorded> {
    check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-agree")?;
    let seconds = options.seconds.unwrap_or(if options.quick { 4 } else { SECONDS });
    let run = Run { prefix: format!("minerva-lab-agree-{}", std::process::id()), seconds };
    let measure_host = || run.host().context("measure what this host adds to a request");
    let mut recorded = match options.record.as_ref().filter(|path| path.exists()) {
        Some(path) => Recorded::read(path)?,
        None => Recorded::default(),
    };
    // A shared machine changes from minute to minute, so its part is measured before and behind each job.
    let mut before = measure_host()?;
    for (index, job) in jobs.iter().enumerate() {
        eprintln!("{:>2}/{} {job}", index + 1, jobs.len());
        let Arm { whole, windows } = run.job(job).with_context(|| format!("run {job}"))?;
        let behind = measure_host()?;
        recorded.add(job, Measured { host: before.between(&behind), outcome: whole, windows, seconds });
        before = behind;
        if let Some(path) = &options.record {
            recorded.write(path)?;
        }
    }
    Ok(recorded)
}

fn describe(host: &Host) -> String {
    format!(
        "the host added {:.0} us and {:.0} us a MiB one request at a time, and {:.0} us more on average",
        host.station_ns / 1e3,
        host.station_ns_per_byte * 1048.576,
        host.delay_mean().0 as f64 / 1e3
    )
}

fn print(pairs: &[Pair], quantity: Quantity, json: bool) -> bool {
    let (value, most) = (worst(pairs, quantity), quantity.error_max());
    let met = !pairs.is_empty() && value <= most;
    let within = pairs.iter().filter(|pair| pair.error(quantity) <= most).count();
    let chance = pairs.iter().filter(|pair| pair.error(quantity) > most && pair.may_be_chance(quantity)).count();
    let summary = format!(
        "{}: {within} of {} pairs within {:.0} %, {chance} more as near as the simulator's own windows of that length",
        quantity.as_str(),
        pairs.len(),
        most * 100.0
    );
    if json {
        let apart = pairs.iter().filter(|pair| pair.error(quantity) > most);
        let detail: String = apart.map(|pair| format!("; {}: {}", pair.job, pair.apart(quantity))).collect();
        let line = serde_json::json!({
            "id": "sim-agrees", "value": (value * 1000.0).round() / 1000.0,
            "unit": format!("worst relative error, {}", quantity.as_str()), "goal": format!("at most {most}"),
            "met": met, "detail": format!("{summary}{detail}"),
        });
        println!("{line}");
    } else {
        println!("{} {summary}, worst {:.0} %", if met { "met   " } else { "MISSED" }, value * 100.0);
    }
    met
}
