//! The figure `background`: policies of background work on the same days, each line a condition.

use crate::experiment::background::{Case, hard, paper};
use crate::output::Line;
use minerva_sim_background::{Forecaster, Outcome, Pattern, Policy, synthetic};
use minerva_sim_world::sweep;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// What the paper reports: violated and queued, %.
const PAPER_FIXED: (f64, f64) = (54.6, 21.7);
const PAPER_DYNAMIC: (f64, f64) = (6.2, 2.6);
/// Points by which a reproduction may differ and still be called near.
const NEAR: [f64; 2] = [15.0, 5.0];

/// Measures on so many threads.
pub(crate) fn figure(threads: usize) -> Vec<Line> {
    let days = sweep(threads, &SEEDS, |seed| {
        let case = paper(synthetic(Pattern::Office, *seed));
        let run = |policy, forecaster| case.run(policy, forecaster);
        [
            run(Policy::Floor, Forecaster::None),
            run(Policy::Fixed, Forecaster::None),
            run(Policy::Published, Forecaster::DayClusters),
            run(Policy::Ours, Forecaster::DayClusters),
            run(Policy::Ours, Forecaster::Perfect),
        ]
    });
    let of = |arm: usize| -> Vec<&Outcome> { days.iter().map(|outcomes| &outcomes[arm]).collect() };
    let (floor, ours, perfect) = (of(0), of(3), of(4));
    let apart = violated(&ours) - violated(&perfect);
    let met = worst(&ours, |outcome| outcome.violation_share) < 0.03
        && worst(&ours, |outcome| outcome.queued_share) < 0.01
        && apart <= 1.0
        && full(&ours) == 0;
    let mut lines = vec![
        reproduced("fixed bucket", &of(1), PAPER_FIXED, NEAR[0]),
        reproduced("dynamic bucket as published, EWMA clusters", &of(2), PAPER_DYNAMIC, NEAR[1]),
        line(
            violated(&ours),
            "below 3 %, 1 % queued, within a point of the perfect forecast's, pool never full".to_owned(),
            met,
            format!(
                "Minerva, EWMA clusters: {} queued; perfect forecast {:.2} % violated; no background work {:.2} %; {} seconds full; \
                 mean of seeds 1 to {}, worst {:.2} %",
                queued(&ours),
                violated(&perfect),
                violated(&floor),
                full(&ours),
                SEEDS.len(),
                100.0 * worst(&ours, |outcome| outcome.violation_share),
            ),
        ),
    ];
    let cases: Vec<Case> = SEEDS[..2].iter().flat_map(|seed| hard(*seed)).collect();
    lines.extend(sweep(threads, &cases, hard_line));
    lines
}

/// Harder days: the pool must hold; beside it what the days cost anyway.
fn hard_line(case: &Case) -> Line {
    let run = |policy, forecaster| case.run(policy, forecaster);
    let floor = run(Policy::Floor, Forecaster::None);
    let (ours, perfect) = (run(Policy::Ours, Forecaster::DayClusters), run(Policy::Ours, Forecaster::Perfect));
    let fixed = run(Policy::Fixed, Forecaster::None);
    let told = |outcome: &Outcome| {
        outcome.first_alarm.map_or("none".to_owned(), |(raised, date)| {
            format!("at {:.0} h for {:.0} h", raised / 3600.0, date / 3600.0)
        })
    };
    line(
        100.0 * ours.violation_share,
        "pool never full, within a point of the perfect forecast's".to_owned(),
        ours.full_seconds == 0 && ours.violation_share - perfect.violation_share <= 0.01,
        format!(
            "Minerva, {}: {:.2} % queued, {} seconds full, fullest {:.1} %, first alarm {}; perfect forecast {:.2} %; no background \
             work {:.2} %; fixed bucket {:.2} %, {} seconds full",
            case.name,
            100.0 * ours.queued_share,
            ours.full_seconds,
            100.0 * ours.fill_share_max,
            told(&ours),
            100.0 * perfect.violation_share,
            100.0 * floor.violation_share,
            100.0 * fixed.violation_share,
            fixed.full_seconds,
        ),
    )
}

fn reproduced(name: &str, outcomes: &[&Outcome], paper: (f64, f64), near: f64) -> Line {
    let value = violated(outcomes);
    line(
        value,
        format!("within {near} points of the paper's {} %", paper.0),
        (value - paper.0).abs() <= near,
        format!("{name}: {} queued, the paper's {} %; {} seconds full", queued(outcomes), paper.1, full(outcomes)),
    )
}

fn line(value: f64, goal: String, met: bool, detail: String) -> Line {
    Line { id: "background", value, unit: "% violated", goal, met, detail }
}

fn violated(outcomes: &[&Outcome]) -> f64 {
    100.0 * outcomes.iter().map(|outcome| outcome.violation_share).sum::<f64>() / outcomes.len() as f64
}

fn queued(outcomes: &[&Outcome]) -> String {
    let mean = outcomes.iter().map(|outcome| outcome.queued_share).sum::<f64>() / outcomes.len() as f64;
    format!("{:.2} %", 100.0 * mean)
}

fn worst(outcomes: &[&Outcome], value: fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(|outcome| value(outcome)).fold(0.0, f64::max)
}

fn full(outcomes: &[&Outcome]) -> u32 {
    outcomes.iter().map(|outcome| outcome.full_seconds).sum()
}
