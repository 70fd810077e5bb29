//! The figure `background`: policies of background work on the same days, each line a condition; and what each forecaster is worth to them.

use crate::experiment::background::{Case, hard, paper};
use crate::output::Line;
use minerva_sim_background::{Forecaster, Outcome, Pattern, Policy, score, synthetic};
use minerva_sim_world::sweep;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// What the paper reports: violated and queued, %.
const PAPER_FIXED: (f64, f64) = (54.6, 21.7);
const PAPER_DYNAMIC: (f64, f64) = (6.2, 2.6);
/// Points by which a reproduction may differ and still be called near.
const NEAR: [f64; 2] = [15.0, 5.0];

/// What came of the paper's six days, drawn once.
struct Days {
    floor: Outcome,
    fixed: Outcome,
    /// In the order of [`Forecaster::ALL`], which is that of its variants.
    foreseen: [Foreseen; Forecaster::ALL.len()],
}

/// What came of them under the policies that look ahead, by one forecaster.
#[derive(Clone, Debug, Default)]
struct Foreseen {
    published: Outcome,
    ours: Outcome,
    /// Mean symmetric error of a day ahead in bins of ten minutes; nothing where nobody forecasts.
    error_percent: Option<f64>,
}

impl Days {
    fn play(case: &Case) -> Self {
        let foreseen = |forecaster: Forecaster| {
            let accuracy = score(&case.load, case.server, forecaster);
            Foreseen {
                published: case.run(Policy::Published, forecaster),
                ours: case.run(Policy::Ours, forecaster),
                error_percent: (accuracy.count() > 0.0).then(|| accuracy.smape_percent()),
            }
        };
        Self {
            floor: case.run(Policy::Floor, Forecaster::None),
            fixed: case.run(Policy::Fixed, Forecaster::None),
            foreseen: Forecaster::ALL.map(foreseen),
        }
    }

    fn by(&self, forecaster: Forecaster) -> &Foreseen {
        &self.foreseen[forecaster as usize]
    }
}

/// Measures on so many threads.
pub(crate) fn figure(threads: usize) -> Vec<Line> {
    let days = sweep(threads, &SEEDS, |seed| Days::play(&paper(synthetic(Pattern::Office, *seed))));
    let mut lines = paper_lines(&days);
    lines.extend(Forecaster::ALL.map(|forecaster| compared(&days, forecaster)));
    let cases: Vec<Case> = SEEDS[..2].iter().flat_map(|seed| hard(*seed)).collect();
    lines.extend(sweep(threads, &cases, hard_line));
    lines
}

/// The paper's policies beside what it reports, and ours beside the perfect forecast.
fn paper_lines(days: &[Days]) -> Vec<Line> {
    let of = |outcome: fn(&Days) -> &Outcome| -> Vec<&Outcome> { days.iter().map(outcome).collect() };
    let (floor, ours) = (of(|days| &days.floor), of(|days| &days.by(Forecaster::DayClusters).ours));
    let perfect = of(|days| &days.by(Forecaster::Perfect).ours);
    let apart = violated(&ours) - violated(&perfect);
    let met = worst(&ours, |outcome| outcome.violation_share) < 0.03
        && worst(&ours, |outcome| outcome.queued_share) < 0.01
        && apart <= 1.0
        && full(&ours) == 0;
    let published = of(|days| &days.by(Forecaster::DayClusters).published);
    vec![
        reproduced("fixed bucket", &of(|days| &days.fixed), PAPER_FIXED, NEAR[0]),
        reproduced("dynamic bucket as published, EWMA clusters", &published, PAPER_DYNAMIC, NEAR[1]),
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
                days.len(),
                100.0 * worst(&ours, |outcome| outcome.violation_share),
            ),
        ),
    ]
}

/// One forecaster in the comparison of all; whatever is told or not told of the load, the pool must hold.
fn compared(days: &[Days], forecaster: Forecaster) -> Line {
    let by = || days.iter().map(|days| days.by(forecaster));
    let ours: Vec<&Outcome> = by().map(|foreseen| &foreseen.ours).collect();
    let published: Vec<&Outcome> = by().map(|foreseen| &foreseen.published).collect();
    let errors: Vec<f64> = by().filter_map(|foreseen| foreseen.error_percent).collect();
    let error = match errors.len() {
        0 => "nothing is foreseen".to_owned(),
        count => format!("a day ahead off by {:.1} % (SMAPE)", errors.iter().sum::<f64>() / count as f64),
    };
    line(
        violated(&ours),
        "pool never full; beside the other forecasters".to_owned(),
        full(&ours) == 0,
        format!(
            "Minerva, forecaster {}: {} queued, {} seconds full; as published {:.2} % violated, {} queued, {} seconds full; {error}; \
             mean of seeds 1 to {}",
            forecaster.as_str(),
            queued(&ours),
            full(&ours),
            violated(&published),
            queued(&published),
            full(&published),
            days.len(),
        ),
    )
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

#[cfg(test)]
mod tests {
    use super::{Days, Foreseen, compared};
    use minerva_sim_background::{Forecaster, Outcome};

    #[test]
    fn every_forecaster_has_a_line_of_what_came_of_it() {
        let outcome = |violation_share, full_seconds| Outcome { violation_share, full_seconds, ..Outcome::default() };
        // Told apart by what was violated: one in a thousand more than the one before, and the last fills the pool.
        let foreseen = |seed: f64| {
            Forecaster::ALL.map(|forecaster| Foreseen {
                published: outcome(0.5, 0),
                ours: outcome(
                    seed * 0.01 + 0.001 * f64::from(forecaster as u8),
                    u32::from(forecaster == Forecaster::None),
                ),
                error_percent: (forecaster != Forecaster::None).then_some(10.0 * seed),
            })
        };
        let days = |seed| Days { floor: Outcome::default(), fixed: Outcome::default(), foreseen: foreseen(seed) };
        let lines = Forecaster::ALL.map(|forecaster| compared(&[days(1.0), days(2.0)], forecaster));
        for (number, (line, forecaster)) in lines.iter().zip(Forecaster::ALL).enumerate() {
            assert!((line.value - 1.5 - 0.1 * number as f64).abs() < 1e-9, "mean of both: {line:?}");
            assert!(line.detail.contains(&format!("forecaster {}:", forecaster.as_str())), "{line:?}");
            let is_none = forecaster == Forecaster::None;
            assert_eq!(line.detail.contains("off by 15.0 %"), !is_none, "{line:?}");
            assert_eq!(line.met, !is_none, "a pool that was full");
        }
    }
}
