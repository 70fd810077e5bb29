//! `minerva-sim figure ID`: each prints one line a condition, with `--json` in the form of docs/figures.md.

use crate::cli::{FigureArguments, FigureId};
use crate::experiment::{disk_time, elsewhere, htbs, queueing, speed, tag};
use crate::output::Line;
use crate::scheduler::Name;
use crate::threads::threads;
use crate::{drives, figure_background, progress, trace_memory};
use anyhow::Context as _;
use minerva_blocksched::{Feasibility, HtbsOptions};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_world::{World, sweep};

/// Seconds that one run of the experiments of Rocha and Bona 2012 lasts.
const HTBS_SECONDS: usize = 30;
/// In so many of the cases where HTBS was not tuned the admission test is to say kept or likely: one that doubts all says nothing.
const ADMITTED_MIN: usize = 20;
/// Seeds of the Tag experiment.
const TAG_SEEDS: u64 = 100;
const TAG_RUN: Nanos = Nanos::from_secs(10);

pub(crate) fn run(arguments: &FigureArguments) -> anyhow::Result<()> {
    let lines = match arguments.id {
        FigureId::HtbsContracts => htbs_contracts(&built_in("sata7200-80g")?),
        FigureId::HtbsThroughput => htbs_throughput(&built_in("sata7200-80g")?),
        FigureId::HtbsElsewhere => htbs_elsewhere(&[built_in("sata7200-80g")?, built_in("sas10k-300g")?]),
        FigureId::TagInversions => tag_inversions(&built_in("sata-ssd")?),
        FigureId::Queueing => queueing_means(),
        FigureId::Background => figure_background::figure(threads()),
        FigureId::Mapreduce => crate::reproduce::mapreduce::figure(),
        FigureId::SimSpeed => sim_speed(&built_in("sata7200-80g")?),
        FigureId::DiskTime => {
            disk_time::figure(&[built_in("sata7200-80g")?, built_in("sas10k-300g")?, built_in("sata-ssd")?])
        }
        FigureId::DiskModel => drives::figure(&arguments.disks)?,
        FigureId::TraceMemory => trace_memory::figure(&built_in("sata-ssd")?)?,
    };
    lines.iter().for_each(|line| line.print(arguments.json));
    Ok(())
}

pub(crate) fn built_in(name: &str) -> anyhow::Result<Profile> {
    minerva_sim_device::profile(name).with_context(|| format!("there is no built-in disk profile `{name}`"))
}

fn htbs_contracts(profile: &Profile) -> Vec<Line> {
    let mut lines = Vec::new();
    for block_bytes in [16_384, 65_536, 131_072, 262_144] {
        let clients = htbs::four_jobs(profile, block_bytes, Nanos::from_millis(200), HTBS_SECONDS);
        let missed = |name| {
            let outcome = htbs::outcome(profile, name, &clients, 1, HTBS_SECONDS);
            (outcome.missed(), outcome.jobs_missed())
        };
        let ((ours, _), (original, _), (pclock, pclock_jobs)) =
            (missed(Name::Htbs), missed(Name::HtbsOriginal), missed(Name::Pclock));
        lines.push(Line {
            id: "htbs-contracts",
            value: ours as f64,
            unit: "seconds missed",
            goal: "0, and pClock misses".to_owned(),
            met: ours == 0 && pclock > 0,
            detail: format!(
                "four synchronous readers, {} KiB, of 4 x {} seconds; pClock misses {pclock} in {pclock_jobs} jobs, the original HTBS {original}",
                block_bytes / 1024,
                HTBS_SECONDS - 1,
            ),
        });
    }
    let clients = htbs::mixed_tenants(profile, 60);
    let ours = htbs::with_options(profile, HtbsOptions::default(), &clients, 1, 60);
    let original = htbs::with_options(profile, HtbsOptions::original(), &clients, 1, 60);
    lines.push(Line {
        id: "htbs-contracts",
        value: ours.missed() as f64,
        unit: "seconds missed",
        goal: "0, and the original misses".to_owned(),
        met: ours.missed() == 0 && original.missed() > 0,
        detail: format!(
            "mixed tenants: steady, turning sequential, long idle, random; the original misses {} in {} of 4 tenants",
            original.missed(),
            original.jobs_missed()
        ),
    });
    lines
}

/// Promises are for sets that fit; where the admission test doubts, a miss is no fault.
fn htbs_elsewhere(profiles: &[Profile]) -> Vec<Line> {
    let seconds = HTBS_SECONDS;
    let judged = sweep(threads(), &elsewhere::cases(profiles, seconds), |case| {
        let outcome = |name| htbs::outcome(&case.profile, name, &case.clients, 1, seconds);
        let (ours, original, pclock) = (outcome(Name::Htbs), outcome(Name::HtbsOriginal), outcome(Name::Pclock));
        let feasibility = case.feasibility(Name::Htbs, 1).map_or("", Feasibility::as_str);
        let expected = feasibility == Feasibility::Kept.as_str() || feasibility == Feasibility::Likely.as_str();
        let line = Line {
            id: "htbs-elsewhere",
            value: ours.missed() as f64,
            unit: "seconds missed",
            goal: if expected { "0".to_owned() } else { "none: the admission test doubts it".to_owned() },
            met: ours.missed() == 0 || !expected,
            detail: format!(
                "{}; of {} seconds of {} promises the original misses {}, pClock {}; {:.1}, {:.1} and {:.1} MB/s; admission: {feasibility}",
                case.name,
                ours.intervals(),
                case.clients.iter().filter(|client| client.is_promised()).count(),
                original.missed(),
                pclock.missed(),
                ours.bytes_per_second / 1e6,
                original.bytes_per_second / 1e6,
                pclock.bytes_per_second / 1e6,
            ),
        };
        (expected, line)
    });
    let admitted = admitted(&judged.iter().map(|(expected, _)| *expected).collect::<Vec<_>>());
    judged.into_iter().map(|(_, line)| line).chain([admitted]).collect()
}

/// In how many cases the admission test expects that contracts are kept.
fn admitted(expected: &[bool]) -> Line {
    let count = expected.iter().filter(|expected| **expected).count();
    Line {
        id: "htbs-elsewhere",
        value: count as f64,
        unit: "cases that the admission test calls kept or likely",
        goal: format!("at least {ADMITTED_MIN}"),
        met: count >= ADMITTED_MIN,
        detail: format!("of {} cases; in the others a miss is no fault", expected.len()),
    }
}

fn htbs_throughput(profile: &Profile) -> Vec<Line> {
    let measure = |count: &usize| {
        let clients = htbs::equal_readers(profile, *count, HTBS_SECONDS);
        let rate = |name| htbs::outcome(profile, name, &clients, 1, HTBS_SECONDS);
        let (ours, bfq, pclock) = (rate(Name::Htbs), rate(Name::Bfq), rate(Name::Pclock));
        let to_bfq = ours.bytes_per_second / bfq.bytes_per_second;
        let to_pclock = ours.bytes_per_second / pclock.bytes_per_second;
        Line {
            id: "htbs-throughput",
            value: to_bfq,
            unit: "of BFQ's",
            goal: "at least 0.95, 2 times pClock's, no guarantee missed".to_owned(),
            met: to_bfq >= 0.95 && to_pclock >= 2.0 && ours.missed() == 0,
            detail: format!(
                "{count} sequential readers: {:.1} MB/s, BFQ {:.1}, {to_pclock:.1} times pClock's {:.1}; contracts of {:.0} KB/s within {} ms, {} of {} intervals missed",
                ours.bytes_per_second / 1e6,
                bfq.bytes_per_second / 1e6,
                pclock.bytes_per_second / 1e6,
                htbs::READERS_BYTES_PER_SECOND / *count as f64 / 1e3,
                htbs::readers_delay(*count).0 / 1_000_000,
                ours.missed(),
                ours.intervals(),
            ),
        }
    };
    sweep(threads(), &[2, 4, 8, 16], measure)
}

fn tag_inversions(profile: &Profile) -> Vec<Line> {
    let seeds: Vec<u64> = (0..TAG_SEEDS).collect();
    let bar = progress::count("runs", Some(9 * TAG_SEEDS));
    let streams = tag::fig8();
    let measure = |stack: tag::Stack, streams: &[tag::Stream], read_percent: u8| {
        let runs = sweep(threads(), &seeds, |seed| {
            let report = tag::run(profile, stack, streams, read_percent, *seed, TAG_RUN);
            bar.inc(1);
            let inversions = tag::inversions(streams, &report).len();
            (inversions, tag::proportion_error(streams, &report), report.bytes_per_second)
        });
        let count = runs.len() as f64;
        (
            runs.iter().map(|run| run.0).sum::<usize>(),
            runs.iter().map(|run| run.1).fold(0.0, f64::max),
            runs.iter().map(|run| run.2).sum::<f64>() / count,
        )
    };
    let original = measure(tag::Stack::Tagged(tag::tag_options(false, false)), &streams, 100);
    let depth_alone = measure(tag::Stack::Tagged(tag::tag_options(false, true)), &streams, 100);
    let nested = measure(tag::Stack::CfqOverCfq(tag::FIG7_WEIGHTS), &tag::fig7(), 100);
    let beside_noop = tag::READ_PERCENTS.map(|percent| {
        let ours = measure(tag::Stack::Tagged(tag::tag_options(true, true)), &streams, percent);
        (percent, ours, measure(tag::Stack::Passed(Name::Noop), &streams, percent))
    });
    bar.finish_and_clear();
    let mut lines = Vec::new();
    for (percent, ours, noop) in beside_noop {
        lines.extend(tag_beside_noop(percent, ours, noop, original, depth_alone));
    }
    lines.push(tag_line(
        nested.0 as f64,
        "inversions",
        "more than 0: those of Fig. 7 of Bai and Huang",
        nested.0 > 0,
        "CFQ in two guests, priorities 6, 4, 2 in both, over CFQ on the host, 100 runs; the paper saw 2 in one"
            .to_owned(),
    ));
    lines
}

/// Of all runs of a stack: inversions, the largest error of proportion, and bytes a second on average.
type TagRuns = (usize, f64, f64);

/// Our Tag beside noop at `percent` reads. `original` are the paper's settings, `depth_alone` those without a plug.
fn tag_beside_noop(percent: u8, ours: TagRuns, noop: TagRuns, original: TagRuns, depth_alone: TagRuns) -> [Line; 3] {
    let what = format!("{percent} % reads, 100 runs");
    [
        tag_line(
            ours.0 as f64,
            "inversions",
            "0 in 100 seeds",
            ours.0 == 0,
            format!(
                "{what}; noop {} of 100 x 12 pairs; reads without plug and depth (the paper's) {}",
                noop.0, original.0
            ),
        ),
        tag_line(
            100.0 * ours.1,
            "%",
            "at most 5 % from proportional",
            ours.1 <= 0.05,
            format!(
                "{what}: the worst process of all; reads with the bounded depth but no plug {:.1} %",
                100.0 * depth_alone.1
            ),
        ),
        tag_line(
            ours.2 / noop.2,
            "of noop's",
            "at least 0.98",
            ours.2 / noop.2 >= 0.98,
            format!("{what}: {:.1} of {:.1} MB/s", ours.2 / 1e6, noop.2 / 1e6),
        ),
    ]
}

fn tag_line(value: f64, unit: &'static str, goal: &str, met: bool, detail: String) -> Line {
    Line { id: "tag-inversions", value, unit, goal: goal.to_owned(), met, detail }
}

fn queueing_means() -> Vec<Line> {
    let queues = queueing::queues();
    let bar = progress::count("queues", Some(queues.len() as u64));
    sweep(threads(), &queues, |queue| {
        let (book_s, simulated_s) = (queue.closed_form_s(), queue.simulated_s(1, 3_000_000));
        bar.inc(1);
        let error = (simulated_s / book_s - 1.0).abs();
        Line {
            id: "queueing",
            value: 100.0 * error,
            unit: "%",
            goal: "at most 1 % from the closed form".to_owned(),
            met: error <= 0.01,
            detail: format!(
                "{} at {:.0} %: {:.4} ms, by formula {:.4} ms, 3,000,000 requests",
                queue.name,
                100.0 * queue.utilisation,
                simulated_s * 1e3,
                book_s * 1e3
            ),
        }
    })
}

/// CPU time of this thread.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn sim_speed(profile: &Profile) -> Vec<Line> {
    let measure = |mut world: World, goal: f64, what: &str| {
        // CPU time: what others do on the machine is none of the simulator's speed.
        let began = thread_seconds();
        world.run(Nanos(u64::MAX));
        let rate = world.requests() as f64 / (thread_seconds() - began) / 1e6;
        Line {
            id: "sim-speed",
            value: rate,
            unit: "million requests a second",
            goal: format!("at least {goal}"),
            met: rate >= goal,
            detail: format!("{what}, {} requests, all metrics on, CPU time of one thread", world.requests()),
        }
    };
    vec![
        measure(speed::fifo(profile, 8_000_000), 5.0, "first come, first served, a sequential reader on the HDD model"),
        measure(speed::fifo_random(profile, 4_000_000), 4.0, "the same at random places"),
        measure(speed::htbs(profile, 1000, 3_000_000), 1.0, "HTBS, 1,000 flows"),
    ]
}

#[cfg(test)]
mod tests {
    use super::admitted;

    #[test]
    fn an_admission_test_that_doubts_all_meets_no_goal() {
        let met = |expected: usize| admitted(&[vec![true; expected], vec![false; 32 - expected]].concat()).met;
        assert_eq!([met(22), met(20), met(19), met(0)], [true, true, false, false]);
    }
}
