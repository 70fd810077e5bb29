//! `minerva-lab figure makespan` and `reproduce makespan`: what batch jobs gain by going one before the other.

use super::{Line, drawn_seed, median};
use crate::cli::MakespanArguments;
use crate::{binaries, signals};
use minerva_lab::figure::{MakespanJob, MakespanPlan, MakespanRound, alike_jobs, makespan, mixed_jobs};
use minerva_lab::workload::WorkerProgram;

/// Of what running one after the other, the shortest first, gains in mean completion and in mean slowdown, in percent.
const GAIN_PERCENT_MIN: f64 = 80.0;
/// The optimum gains at least this part of what is taken without restriction, or a part of its gain says nothing.
const OPTIMUM_GAIN_MIN: f64 = 0.05;
/// By how much the longest may take longer, in percent.
const LONGEST_PERCENT_MAX: f64 = 5.0;
/// Jobs count only where the disk is this busy without restriction, in percent.
const BUSY_PERCENT_MIN: f64 = 80.0;
/// So many rounds are asked for: fewer meet no goal.
const ROUNDS_MIN: usize = 5;

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
                rounds: arguments.rounds,
                seed,
                daemon: binaries::minervad(&arguments.output)?,
            };
            let where_ = format!("{}, {elevator}, {jobs} jobs at scale {}", arguments.profile, arguments.scale);
            let rounds = makespan(&plan, &program, &interrupted)?;
            for line in lines(&where_, &plan.jobs, &rounds) {
                line.print(arguments.output.json)?;
            }
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

/// What of the optimum's gain is reached, in percent; not a number where the optimum gains next to nothing, so that such a round meets no goal.
fn gain([unrestricted, minerva, optimum]: [f64; 3]) -> f64 {
    if unrestricted - optimum < OPTIMUM_GAIN_MIN * unrestricted {
        return f64::NAN;
    }
    100.0 * (unrestricted - minerva) / (unrestricted - optimum)
}

/// Every round tells something, and the median is good.
fn is_good(gains: &[f64]) -> bool {
    !gains.iter().any(|gain| gain.is_nan()) && median(gains.iter().copied()) >= GAIN_PERCENT_MIN
}

/// Whether there are enough rounds, and a busy disk, to say anything.
fn counts(rounds: &[MakespanRound]) -> bool {
    rounds.len() >= ROUNDS_MIN && median(rounds.iter().map(|round| 100.0 * round.unrestricted.busy)) >= BUSY_PERCENT_MIN
}

fn lines(where_: &str, jobs: &[MakespanJob], rounds: &[MakespanRound]) -> [Line; 2] {
    [completion(where_, jobs, rounds), slowdown(where_, rounds)]
}

/// Each job's time as a multiple of its time alone, in the mean of all jobs.
fn slowdown(where_: &str, rounds: &[MakespanRound]) -> Line {
    let gains: Vec<f64> = rounds.iter().map(|round| gain(means(round).slowdowns)).collect();
    let [unrestricted, minerva, optimum] =
        [0, 1, 2].map(|arm| median(rounds.iter().map(|round| means(round).slowdowns[arm])));
    let value = median(gains.iter().copied());
    Line {
        id: "makespan",
        value,
        unit: "% of what the optimum gains in mean slowdown",
        goal: format!("at least {GAIN_PERCENT_MIN} in {ROUNDS_MIN} rounds"),
        met: counts(rounds) && is_good(&gains),
        detail: format!(
            "{where_}, {} rounds ({}): mean slowdown {minerva:.2} for {unrestricted:.2}, optimum {optimum:.2}",
            rounds.len(),
            spread(&gains)
        ),
    }
}

fn completion(where_: &str, jobs: &[MakespanJob], rounds: &[MakespanRound]) -> Line {
    let of = |value: &dyn Fn(&MakespanRound) -> f64| -> Vec<f64> { rounds.iter().map(value).collect() };
    let gains = of(&|round| {
        let Means { unrestricted, minerva, optimum, .. } = means(round);
        gain([unrestricted, minerva, optimum])
    });
    let last = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    let makespans = of(&|round| percent(last(&round.minerva.seconds), last(&round.unrestricted.seconds)));
    let longest = of(&|round| {
        let alone = &round.alone.seconds;
        let job = (0..alone.len()).max_by(|a, b| alone[*a].total_cmp(&alone[*b])).unwrap_or(0);
        percent(round.minerva.seconds[job], round.unrestricted.seconds[job])
    });
    let busy = of(&|round| 100.0 * round.unrestricted.busy);
    let [gained, whole, later, busy] = [&gains, &makespans, &longest, &busy].map(|of| median(of.iter().copied()));
    let mean_seconds = |value: fn(&Means) -> f64| median(rounds.iter().map(|round| value(&means(round))));
    Line {
        id: "makespan",
        value: gained,
        unit: "% of what the optimum gains in mean completion",
        goal: format!(
            "at least {GAIN_PERCENT_MIN} in {ROUNDS_MIN} rounds, makespan no longer, the longest at most {LONGEST_PERCENT_MAX} % longer"
        ),
        met: counts(rounds) && is_good(&gains) && whole <= 0.0 && later <= LONGEST_PERCENT_MAX,
        detail: format!(
            "{where_}, {} rounds ({}): mean {:.1} for {:.1} s, optimum {:.1}; makespan {whole:+.1} % ({}), the longest {later:+.1} % \
             ({}); disk busy {busy:.0} % without restriction, as the kernel ships the elevator; all bytes direct, so all charged; {}",
            rounds.len(),
            spread(&gains),
            mean_seconds(|means| means.minerva),
            mean_seconds(|means| means.unrestricted),
            mean_seconds(|means| means.optimum),
            spread(&makespans),
            spread(&longest),
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
    use super::{lines, means};
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

    #[test]
    fn few_rounds_and_a_slowdown_that_misses_meet_no_goal() {
        let round = |short: f64| {
            let run = |seconds: [f64; 2]| MakespanRun { seconds: seconds.to_vec(), busy: 1.0 };
            MakespanRound { unrestricted: run([40.0, 20.0]), minerva: run([30.0, short]), alone: run([30.0, 1.0]) }
        };
        let met = |rounds: usize, short: f64| lines("", &[], &vec![round(short); rounds]).map(|line| line.met);
        assert_eq!(met(5, 1.0), [true, true]);
        assert_eq!(met(4, 1.0), [false, false]);
        // The mean is made of seconds, the slowdown by the short one.
        assert_eq!(met(5, 6.0), [true, false]);
    }

    #[test]
    fn a_loss_is_no_gain_where_the_optimum_loses_too() {
        let run = |seconds: [f64; 2]| MakespanRun { seconds: seconds.to_vec(), busy: 1.0 };
        let round =
            MakespanRound { unrestricted: run([30.0, 30.0]), minerva: run([33.0, 33.0]), alone: run([20.0, 22.0]) };
        assert_eq!(lines("", &[], &vec![round; 5]).map(|line| line.met), [false, false]);
    }
}
