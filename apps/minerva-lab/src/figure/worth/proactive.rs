//! Malensek et al. 2016, Fig. 3-a against 3-b, on the real kernel: four tenants start together, after an hour in which sessions like
//! theirs came.

use super::arms::{Arm, learning};
use super::draw::{Like, draw};
use super::judge::{Bars, Spread, at_least, goal, spread};
use super::play::{Book, Which, tell};
use crate::figure::Line;
use crate::worth_cli::RunsArguments;
use minerva_lab::scene::{Stage, play_hour, run_scene};
use std::fmt::Write as _;

pub(super) const SCENE: &str = "proactive";
/// What the paper says.
pub(super) const PAPER: &str = "reaction alone cannot tell VM 2 from VM 3 at first, and later favours VM 4 over 3; with forecast starting weights the short ones \
     are ahead from the start. No figures are published.";
/// The tenants, the shortest first.
const TENANTS: usize = 4;
/// What may be lost on work like which none was seen before, in percent.
const UNSEEN_LOSS_MOST: f64 = 3.0;
/// A part of what an oracle gains is told where it gains at least so much in every pair, as a part of what the short take with equal weights.
const ORACLE_GAIN_MIN: f64 = 0.05;

/// Plays what is not there yet.
pub(super) fn play(book: &mut Book, arguments: &RunsArguments, stage: &Stage<'_>) -> anyhow::Result<()> {
    let wanted = |arm: &Arm| arguments.arm.is_empty() || arguments.arm.iter().any(|name| name == arm.name());
    let arms: Vec<Arm> = Arm::ALL.into_iter().filter(wanted).collect();
    for pair in book.pairs(arguments.pairs) {
        for like in Like::ALL.into_iter().filter(|like| arguments.like.iter().any(|word| word == like.word())) {
            let which = Which { scene: SCENE, profile: stage.profile, like: like.word(), pair };
            let drawn = draw(stage.profile, arguments.scale, like, pair);
            for arm in book.open_arms(which, &arms) {
                let learnt = book.learnt(which);
                if !learnt.exists() {
                    if !book.take_one() {
                        return Ok(());
                    }
                    learn(book, &drawn.hour, &learnt, stage)?;
                }
                if !book.take_one() {
                    return Ok(());
                }
                let steering = arm.steering(&book.daemon, Some(&learnt));
                let run = run_scene(&drawn.scene, steering.as_ref(), stage, &mut |_| ())?;
                tell(stage, which, arm, &run);
                let ends = run.tenants.iter().map(|tenant| tenant.completion_s).collect();
                book.enter(which, arm, ends, run.disk_mb_per_s)?;
            }
        }
    }
    Ok(())
}

fn learn(
    book: &Book,
    hour: &minerva_lab::scene::Hour,
    learnt: &std::path::Path,
    stage: &Stage<'_>,
) -> anyhow::Result<()> {
    let mut told = 0;
    eprintln!("{}: {} sessions before", stage.profile, hour.sessions.len());
    let mut watch = |done: usize| {
        if done >= told + TOLD_EVERY {
            eprintln!("  {done} of {}", hour.sessions.len());
            told = done;
        }
    };
    Ok(play_hour(hour, &learning(&book.daemon, learnt.to_owned()), stage, &mut watch)?)
}

/// How far the hour is, is told every so many sessions.
const TOLD_EVERY: usize = 5;

/// The change of what tenants took under one arm against another, pair by pair, in percent.
fn change(book: &Book, profile: &str, like: Like, arms: [Arm; 2], of: impl Fn(&[f64]) -> f64) -> Option<Spread> {
    compare(book, profile, like, arms, |[ours, others]| 100.0 * (of(&ours.values) / of(&others.values) - 1.0))
}

fn compare(
    book: &Book,
    profile: &str,
    like: Like,
    [ours, against]: [Arm; 2],
    value: impl Fn([&super::play::Played; 2]) -> f64,
) -> Option<Spread> {
    let of = |pair: u64| {
        let which = Which { scene: SCENE, profile, like: like.word(), pair };
        Some(value([book.find(which, ours)?, book.find(which, against)?]))
    };
    spread(book.all_pairs().into_iter().filter_map(of))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// What came of it on one disk, with the goals.
pub(super) fn lines(book: &Book, profile: &str) -> Vec<Line> {
    Like::ALL
        .into_iter()
        .flat_map(|like| if like == Like::Unseen { unseen(book, profile) } else { seen(book, profile, like) })
        .collect()
}

fn seen(book: &Book, profile: &str, like: Like) -> Vec<Line> {
    let mut lines = Vec::new();
    let ours = |against| [Arm::Forecasts, against];
    let mut tenant = |index: usize, against: Arm, most: f64| {
        let what = format!("{profile}, {}, tenant {} against {}", like.word(), index + 1, against.name());
        lines.push(goal(change(book, profile, like, ours(against), |values| values[index]), most, what));
    };
    for index in 0..2 {
        tenant(index, Arm::Equal, -40.0);
        tenant(index, Arm::Fennel, -40.0);
        tenant(index, Arm::Kernel, 0.0);
    }
    tenant(2, Arm::Equal, 0.0);
    tenant(3, Arm::Equal, 5.0);
    for against in [Arm::Off, Arm::Last] {
        let what = format!("{profile}, {}, mean of the four against {}", like.word(), against.name());
        lines.push(goal(change(book, profile, like, ours(against), mean), 0.0, what));
    }
    let disk = compare(book, profile, like, ours(Arm::Equal), |[ours, equal]| {
        100.0 * (ours.disk_mb_per_s / equal.disk_mb_per_s)
    });
    let what = format!("{profile}, {}, whole disk, of what equal weights gave", like.word());
    lines.push(at_least(disk, 97.0, what));
    let what = format!("{profile}, {}, of what an oracle gains tenants 1 and 2", like.word());
    lines.push(at_least(part_of_oracle(book, profile, like), 80.0, what));
    lines
}

/// How much of what knowing the sizes gains the short ones is gained, pair by pair, in percent. Where knowing them gains next to nothing
/// there is nothing to have a part of, and nothing is said.
fn part_of_oracle(book: &Book, profile: &str, like: Like) -> Option<Spread> {
    let gain = |arm, which| {
        let short = |arm| Some(mean(&book.find(which, arm)?.values[..2]));
        Some(1.0 - short(arm)? / short(Arm::Equal)?)
    };
    let of = |pair: u64| {
        let which = Which { scene: SCENE, profile, like: like.word(), pair };
        Some([gain(Arm::Forecasts, which)?, gain(Arm::Oracle, which)?])
    };
    let gains: Vec<[f64; 2]> = book.all_pairs().into_iter().filter_map(of).collect();
    let can_gain = gains.iter().all(|[_, oracle]| *oracle >= ORACLE_GAIN_MIN);
    spread(gains.iter().filter(|_| can_gain).map(|[ours, oracle]| 100.0 * ours / oracle))
}

fn unseen(book: &Book, profile: &str) -> Vec<Line> {
    let what = format!("{profile}, never seen, mean of the four against minerva-off");
    let spread = change(book, profile, Like::Unseen, [Arm::Forecasts, Arm::Off], mean);
    vec![goal(spread, UNSEEN_LOSS_MOST, what)]
}

/// Median seconds of each tenant under each arm.
pub(super) fn table(book: &Book, profile: &str) -> String {
    let mut text = String::new();
    for like in Like::ALL {
        let rows = Arm::ALL.into_iter().filter_map(|arm| {
            let tenant = |index: usize| compare(book, profile, like, [arm, arm], |[run, _]| run.values[index]);
            let disk = compare(book, profile, like, [arm, arm], |[run, _]| run.disk_mb_per_s)?;
            let ends: Vec<String> =
                (0..TENANTS).filter_map(tenant).map(|spread| format!("{:>8.1}", spread.median)).collect();
            Some(format!("  {:<14}{} {:>10.1} {:>6}\n", arm.name(), ends.concat(), disk.median, disk.count))
        });
        let rows: String = rows.collect();
        if !rows.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "  {}: seconds of tenants 1 to 4, MB/s of the disk, runs\n{rows}", like.word());
        }
    }
    text
}

/// What the four took in the mean, of what they took with equal weights.
pub(super) fn bars(book: &Book, profile: &str) -> Bars {
    let of = |arm: Arm| {
        let part = |[ours, equal]: [&super::play::Played; 2]| 100.0 * mean(&ours.values) / mean(&equal.values);
        Some((arm.name().to_owned(), compare(book, profile, Like::Named, [arm, Arm::Equal], part)?))
    };
    Bars {
        title: format!("Four tenants start together, after sessions of the same names ({profile})"),
        unit: "mean completion, % of equal weights",
        rows: Arm::ALL.into_iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::play::{Book, Played};
    use super::{Arm, Like, SCENE, part_of_oracle};

    #[test]
    fn of_an_oracle_that_gains_nothing_no_part_is_had() {
        let part = |oracle: f64, ours: f64| {
            let mut book = Book::empty();
            for (arm, seconds) in [(Arm::Equal, 100.0), (Arm::Oracle, oracle), (Arm::Forecasts, ours)] {
                book.played.push(Played {
                    scene: SCENE.to_owned(),
                    profile: "a".to_owned(),
                    like: Like::Named.word().to_owned(),
                    scale: 1.0,
                    pair: 1,
                    arm: arm.name().to_owned(),
                    values: vec![seconds; 4],
                    disk_mb_per_s: 1.0,
                });
            }
            part_of_oracle(&book, "a", Like::Named).map(|spread| spread.median.round())
        };
        assert_eq!(part(50.0, 60.0), Some(80.0));
        assert_eq!(part(102.0, 99.0), None);
        assert_eq!(part(96.0, 90.0), None);
    }
}
