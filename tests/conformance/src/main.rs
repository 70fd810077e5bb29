//! `minerva-conformance`: the simulator against the real kernel.

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, Subcommand};
use minerva_conformance::Arm;
use minerva_conformance::compare::{Pair, Quantity, worst};
use minerva_conformance::draw;
use minerva_conformance::host::Host;
use minerva_conformance::job::{Job, QUICK, jobs, once_held_out};
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::recorded::{Measured, Recorded};
use minerva_conformance::simulated;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

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
    /// Only jobs that nobody has seen, drawn anew by each run; without this they come behind the suite.
    #[arg(long, conflicts_with = "quick")]
    held_out: bool,
    /// The held-out jobs of an earlier run: the seed that it printed.
    #[arg(long, conflicts_with = "quick")]
    seed: Option<u64>,
    /// How many held-out jobs to draw.
    #[arg(long, value_name = "COUNT", default_value_t = draw::COUNT)]
    draw: usize,
    /// The jobs that were held out until their results were looked at, in place of all others.
    #[arg(long, conflicts_with_all = ["quick", "held_out", "seed"])]
    once_held_out: bool,
    /// Only this job, as reports have it: `sata-ssd bfq: randread 4k x1 w800 | seqwrite 64k x2 w100`.
    #[arg(long, value_name = "JOB", conflicts_with_all = ["quick", "held_out", "seed", "once_held_out"])]
    job: Option<Job>,
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

/// Jobs that are judged together.
struct Set {
    name: String,
    jobs: Vec<Job>,
}

/// The jobs that were asked for. What is drawn is told, so that it can be drawn again.
fn chosen(options: &SimAgrees) -> anyhow::Result<Vec<Set>> {
    let set = |name: &str, jobs| Set { name: name.to_owned(), jobs };
    let mut sets = match &options.job {
        Some(job) => vec![set("one job", vec![job.clone()])],
        None if options.once_held_out => vec![set("once held out", once_held_out())],
        None if options.quick => vec![set("quick suite", jobs().into_iter().take(QUICK).collect())],
        None => {
            let mut sets = Vec::new();
            if !options.held_out {
                sets.push(set("suite", jobs()));
            }
            sets.extend(held_out(options)?);
            sets
        }
    };
    for set in &mut sets {
        set.jobs.retain(|job| options.only.as_ref().is_none_or(|part| job.to_string().contains(part)));
        if let Some((nth, count)) = options.part {
            let each = set.jobs.len().div_ceil(count);
            set.jobs = set.jobs.drain(..).skip((nth - 1) * each).take(each).collect();
        }
    }
    sets.retain(|set| !set.jobs.is_empty());
    ensure!(!sets.is_empty(), "no job is left to compare");
    Ok(sets)
}

/// Jobs that nobody has seen. A record has those of the run that made it, so its seed has to be given.
fn held_out(options: &SimAgrees) -> anyhow::Result<Option<Set>> {
    let seed = match (options.seed, &options.recorded) {
        (Some(seed), _) => seed,
        (None, Some(_)) if options.held_out => bail!("give the `--seed` that was printed when this was recorded"),
        (None, Some(_)) => return Ok(None),
        (None, None) => UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs(),
    };
    let jobs = draw::draw(seed, options.draw);
    eprintln!("{} held-out jobs, seed {seed}; `--seed {seed}` draws the same again", jobs.len());
    Ok(Some(Set { name: format!("held out, seed {seed}"), jobs }))
}

fn main() -> anyhow::Result<()> {
    let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } = Arguments::parse();
    let sets = chosen(&options)?;
    let recorded = match &options.recorded {
        Some(path) => Recorded::read(path)?,
        None => measure(&sets.iter().flat_map(|set| set.jobs.clone()).collect::<Vec<Job>>(), &options)?,
    };
    let mut met = true;
    for Set { name, jobs } in sets {
        let mut pairs = Vec::new();
        for (index, job) in jobs.into_iter().enumerate() {
            let Measured { host, outcome, windows, seconds } = recorded.get(&job)?;
            let simulated = simulated::run(&job, host, *seconds, WINDOWS, 1)?;
            let pair = Pair { job, simulated, real: Arm { whole: outcome.clone(), windows: windows.clone() } };
            eprintln!("{name} {:>2} {} ({})", index + 1, pair.line(), describe(host));
            pairs.push(pair);
        }
        for quantity in Quantity::ALL {
            met &= print(&name, &pairs, quantity, options.json);
        }
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

fn print(set: &str, pairs: &[Pair], quantity: Quantity, json: bool) -> bool {
    let (value, most) = (worst(pairs, quantity), quantity.error_max());
    let met = !pairs.is_empty() && value <= most;
    let within = pairs.iter().filter(|pair| pair.error(quantity) <= most).count();
    let chance = pairs.iter().filter(|pair| pair.error(quantity) > most && pair.may_be_chance(quantity)).count();
    let summary = format!(
        "{set}: {}: {within} of {} pairs within {:.0} %, {chance} more as near as the simulator's own windows of that length",
        quantity.as_str(),
        pairs.len(),
        most * 100.0
    );
    if json {
        let apart = pairs.iter().filter(|pair| pair.error(quantity) > most);
        let detail: String = apart.map(|pair| format!("; {}: {}", pair.job, pair.apart(quantity))).collect();
        let line = serde_json::json!({
            "id": "sim-agrees", "value": (value * 1000.0).round() / 1000.0,
            "unit": format!("worst relative error, {}, {set}", quantity.as_str()), "goal": format!("at most {most}"),
            "met": met, "detail": format!("{summary}{detail}"),
        });
        println!("{line}");
    } else {
        println!("{} {summary}, worst {:.0} %", if met { "met   " } else { "MISSED" }, value * 100.0);
    }
    met
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Command, Figure, chosen};
    use clap::Parser as _;
    use minerva_conformance::job::{Job, QUICK, jobs, once_held_out};

    /// Name and jobs of each set.
    fn sets(arguments: &str) -> anyhow::Result<Vec<(String, Vec<Job>)>> {
        let words = ["minerva-conformance", "figure", "sim-agrees"].into_iter().chain(arguments.split_whitespace());
        let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } =
            Arguments::try_parse_from(words)?;
        Ok(chosen(&options)?.into_iter().map(|set| (set.name, set.jobs)).collect())
    }

    #[test]
    fn every_run_draws_held_out_jobs_behind_the_suite_and_a_seed_repeats_them() {
        let drawn = sets("--draw 5").unwrap();
        assert_eq!((drawn.len(), &drawn[0].1, drawn[1].1.len()), (2, &jobs(), 5));
        let seed = drawn[1].0.strip_prefix("held out, seed ").expect("the seed is told");
        assert_eq!(sets(&format!("--draw 5 --held-out --seed {seed}")).unwrap(), drawn[1..]);
        assert_ne!(sets("--draw 5 --held-out --seed 1").unwrap()[0].1, drawn[1].1);
    }

    #[test]
    fn what_was_asked_for_is_compared_and_nothing_else() {
        let one = |arguments: &str| {
            let mut sets = sets(arguments).unwrap();
            assert_eq!(sets.len(), 1, "{arguments}");
            sets.remove(0).1
        };
        assert_eq!(one("--quick"), jobs()[..QUICK]);
        assert_eq!(one("--once-held-out"), once_held_out());
        // A record says nothing of jobs drawn by another seed.
        assert_eq!(one("--recorded x"), jobs());
        assert_eq!(sets("--recorded x --seed 3").unwrap().len(), 2);
        assert_eq!(one("--held-out --seed 3 --part 2/7"), one("--held-out --seed 3")[2..4]);
        for refused in ["--recorded x --held-out", "--only tape", "--job x", "--quick --seed 1"] {
            assert!(sets(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn one_job_is_compared_by_its_description() {
        let job = &once_held_out()[2];
        let words = ["minerva-conformance", "figure", "sim-agrees", "--job", &job.to_string()].map(str::to_owned);
        let Arguments { command: Command::Figure { figure: Figure::SimAgrees(options) } } =
            Arguments::try_parse_from(words).unwrap();
        assert_eq!(chosen(&options).unwrap()[0].jobs, std::slice::from_ref(job));
    }
}
