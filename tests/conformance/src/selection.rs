//! Which jobs of the suite and of those that are drawn are compared, and how long each is measured.

use anyhow::{Context as _, bail, ensure};
use minerva_conformance::draw;
use minerva_conformance::job::{Job, QUICK, jobs, once_held_out};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// What jobs, and how they are measured and told.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// JSON lines: id, value, unit, goal, met, detail.
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Keep what real arms did in this file, beside the other jobs that are in it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Take what real arms did from a file that `--record` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) recorded: Option<PathBuf>,
}

/// Seconds of each real job. A disk that seeks serves a hundred requests a second: in a third of this time the 99th percentile
/// of one tenant of four is its third longest request, and two recordings of it were up to 68 % apart.
const SECONDS: u64 = 30;
/// Virtual time is cheap: the simulated arm measures this many times as long, in as many windows.
pub(crate) const WINDOWS: u64 = 20;
/// Seconds of each real job of the quick suite.
const QUICK_SECONDS: u64 = 4;

fn parse_part(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(nth, count)| Some((nth.parse().ok()?, count.parse().ok()?)));
    parsed.filter(|(nth, count)| (1..=*count).contains(nth)).ok_or_else(|| "write it like 2/7".to_owned())
}

/// Jobs that are judged together.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) jobs: Vec<Job>,
}

impl Selection {
    /// Seconds of each real job.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(if self.quick { QUICK_SECONDS } else { SECONDS })
    }
}

/// The jobs that were asked for. What is drawn is told, so that it can be drawn again.
pub(crate) fn chosen(options: &Selection) -> anyhow::Result<Vec<Set>> {
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
fn held_out(options: &Selection) -> anyhow::Result<Option<Set>> {
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
