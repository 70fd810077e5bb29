//! `minerva-lab figure makespan` and `reproduce makespan`: what batch jobs gain by going one before the other.

use super::{Line, drawn_seed, median};
use crate::cli::MakespanArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{MakespanJob, MakespanPlan, MakespanRound, alike_jobs, makespan, mixed_jobs};
use minerva_lab::workload::WorkerProgram;

/// Of what running one after the other, the shortest first, gains in mean completion, in percent.
const GAIN_PERCENT_MIN: f64 = 80.0;
/// By how much the longest may take longer, in percent.
const LONGEST_PERCENT_MAX: f64 = 5.0;
/// Jobs count only where the disk is this busy without restriction, in percent.
const BUSY_PERCENT_MIN: f64 = 80.0;

pub(crate) fn run(arguments: &MakespanArguments) -> anyhow::Result<()> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let seed = drawn_seed(arguments.seed);
    anyhow::ensure!(arguments.scale > 0.0 && arguments.scale <= 100.0, "a scale must be above 0 and at most 100");
    for elevator in &arguments.elevator {
        for jobs in &arguments.jobs {
            let plan = MakespanPlan {
                profile: arguments.profile.clone(),
                elevator: elevator.clone(),
                jobs: if jobs == "alike" { alike_jobs() } else { mixed_jobs() },
                scale: arguments.scale,
                rounds: arguments.rounds.max(1),
                seed,
                daemon: binaries::minervad(&arguments.output)?,
            };
            let where_ = format!("{}, {elevator}, {jobs} jobs at scale {}", arguments.profile, arguments.scale);
            let rounds = makespan(&plan, &program, &interrupted)?;
            line(&where_, &plan.jobs, &rounds).print(arguments.output.json)?;
        }
    }
    Ok(())
}

/// Means of one round, in seconds.
struct Means {
    unrestricted: f64,
    minerva: f64,
    /// One after the other, the shortest first: computed from what each takes alone.
    optimum: f64,
    slowdowns: [f64; 3],
}

fn means(round: &MakespanRound) -> Means {
    let alone = &round.alone.seconds;
    let mut order: Vec<usize> = (0..alone.len()).collect();
    order.sort_by(|a, b| alone[*a].total_cmp(&alone[*b]));
    let mut optimum = vec![0.0; alone.len()];
    order.iter().fold(0.0, |before, job| {
        optimum[*job] = before + alone[*job];
        optimum[*job]
    });
    let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    let slowdown = |seconds: &[f64]| {
        seconds.iter().zip(alone).map(|(took, alone)| took / alone.max(f64::MIN_POSITIVE)).sum::<f64>()
            / seconds.len().max(1) as f64
    };
    let (unrestricted, minerva) = (&round.unrestricted.seconds, &round.minerva.seconds);
    Means {
        unrestricted: mean(unrestricted),
        minerva: mean(minerva),
        optimum: mean(&optimum),
        slowdowns: [slowdown(unrestricted), slowdown(minerva), slowdown(&optimum)],
    }
}

fn line(where_: &str, jobs: &[MakespanJob], rounds: &[MakespanRound]) -> Line {
    let of = |value: &dyn Fn(&MakespanRound) -> f64| -> Vec<f64> { rounds.iter().map(value).collect() };
    let gains = of(&|round| {
        let Means { unrestricted, minerva, optimum, .. } = means(round);
        100.0 * (unrestricted - minerva) / (unrestricted - optimum)
    });
    let last = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    let makespans = of(&|round| percent(last(&round.minerva.seconds), last(&round.unrestricted.seconds)));
    let longest = of(&|round| {
        let alone = &round.alone.seconds;
        let job = (0..alone.len()).max_by(|a, b| alone[*a].total_cmp(&alone[*b])).unwrap_or(0);
        percent(round.minerva.seconds[job], round.unrestricted.seconds[job])
    });
    let busy = of(&|round| 100.0 * round.unrestricted.busy);
    let slowdowns = [0, 1, 2].map(|arm| median(rounds.iter().map(|round| means(round).slowdowns[arm])));
    let mean_seconds = |value: fn(&Means) -> f64| median(rounds.iter().map(|round| value(&means(round))));
    let counts = median(busy.iter().copied()) >= BUSY_PERCENT_MIN;
    Line {
        id: "makespan",
        value: median(gains.iter().copied()),
        unit: "% of what the optimum gains in mean completion",
        goal: format!(
            "at least {GAIN_PERCENT_MIN}, makespan no longer, the longest at most {LONGEST_PERCENT_MAX} % longer"
        ),
        met: counts
            && median(gains.iter().copied()) >= GAIN_PERCENT_MIN
            && median(makespans.iter().copied()) <= 0.0
            && median(longest.iter().copied()) <= LONGEST_PERCENT_MAX,
        detail: format!(
            "{where_}, {} rounds ({}): mean {:.1} for {:.1} s, optimum {:.1}; mean slowdown {:.2} for {:.2}, optimum {:.2}; makespan \
             {:+.1} % ({}), the longest {:+.1} % ({}); disk busy {:.0} % without restriction; all bytes direct, so all charged; {}",
            rounds.len(),
            spread(&gains),
            mean_seconds(|means| means.minerva),
            mean_seconds(|means| means.unrestricted),
            mean_seconds(|means| means.optimum),
            slowdowns[1],
            slowdowns[0],
            slowdowns[2],
            median(makespans.iter().copied()),
            spread(&makespans),
            median(longest.iter().copied()),
            spread(&longest),
            median(busy.iter().copied()),
            each(jobs, rounds)
        ),
    }
}

/// What each job took.
fn each(jobs: &[MakespanJob], rounds: &[MakespanRound]) -> String {
    let each: Vec<String> = jobs
        .iter()
        .enumerate()
        .map(|(at, job)| {
            let of_job = |seconds: fn(&MakespanRound) -> &[f64]| median(rounds.iter().map(|round| seconds(round)[at]));
            format!(
                "{} {:.1} for {:.1} s (alone {:.1})",
                job.name,
                of_job(|round| &round.minerva.seconds),
                of_job(|round| &round.unrestricted.seconds),
                of_job(|round| &round.alone.seconds)
            )
        })
        .collect();
    each.join(", ")
}

/// By how much the one is more than the other.
fn percent(one: f64, other: f64) -> f64 {
    100.0 * (one / other.max(f64::MIN_POSITIVE) - 1.0)
}

fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.1} to {most:.1} %")
}

#[cfg(test)]
mod tests {
    use super::means;
    use minerva_lab::figure::{MakespanRound, MakespanRun};

    #[test]
    fn the_optimum_is_one_after_the_other_the_shortest_first() {
        let run = |seconds: [f64; 3]| MakespanRun { seconds: seconds.to_vec(), busy: 1.0 };
        let round = MakespanRound {
            unrestricted: run([60.0, 30.0, 50.0]),
            minerva: run([60.0, 12.0, 33.0]),
            alone: run([30.0, 10.0, 20.0]),
        };
        let means = means(&round);
        assert_eq!((means.optimum, means.minerva), (100.0 / 3.0, 35.0));
        assert_eq!(means.slowdowns[2], (2.0 + 1.0 + 1.5) / 3.0);
    }
}
