//! Medians of pairs with their spread, against goals.

use crate::figure::{Line, median};
use minerva_lab::contest::plot;

/// So many pairs are asked for: fewer do not meet a goal, whatever their median.
const PAIRS_LEAST: usize = 5;

/// The middle of some pairs, and how far they are apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) count: usize,
}

/// Nothing of no values.
pub(super) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let values: Vec<f64> = values.into_iter().collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let count = values.len();
    (count > 0).then(|| Spread { median: median(values), least, most, count })
}

/// The line of what was measured in no pair.
fn not_measured(what: &str) -> Line {
    let (goal, detail) = (
        "as asked for".to_owned(),
        format!("{what}: not measured: no pair of it was played, or in one of them there was nothing to gain"),
    );
    Line { id: "worth", value: f64::NAN, unit: "%", goal, met: false, detail }
}

impl Spread {
    fn words(&self) -> String {
        let Self { least, most, count, .. } = self;
        let few = if self.is_enough() { "" } else { ", fewer than are asked for" };
        format!("median of {count} pairs{few}, {least:.1} to {most:.1}")
    }

    const fn is_enough(&self) -> bool {
        self.count >= PAIRS_LEAST
    }

    /// A line of percent of which more is better.
    fn at_least(self, least: f64, what: String) -> Line {
        let (met, detail) = (self.is_enough() && self.median >= least, format!("{what}: {}", self.words()));
        Line { id: "worth", value: self.median, unit: "%", goal: format!("at least {least}"), met, detail }
    }
}

/// A line of percent of which more is better; of no pair one that says so.
pub(super) fn at_least(spread: Option<Spread>, least: f64, what: String) -> Line {
    match spread {
        Some(spread) => spread.at_least(least, what),
        None => not_measured(&what),
    }
}

/// A line of a change in percent of which less is better; of no pair one that says so.
pub(super) fn goal(spread: Option<Spread>, most: f64, what: String) -> Line {
    let Some(spread) = spread else { return not_measured(&what) };
    let (met, detail) = (spread.is_enough() && spread.median <= most, format!("{what}: {}", spread.words()));
    Line { id: "worth", value: spread.median, unit: "% of time", goal: format!("at most {most:+}"), met, detail }
}

/// Arms beside each other.
pub(super) struct Bars {
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) rows: Vec<(String, Spread)>,
}

impl Bars {
    /// As SVG.
    pub(super) fn plot(&self) -> anyhow::Result<String> {
        let row = |(name, spread): &(String, Spread)| (name.clone(), [spread.median, spread.least, spread.most]);
        Ok(plot(&self.title, self.unit, &self.rows.iter().map(row).collect::<Vec<_>>())?)
    }
}

#[cfg(test)]
mod tests {
    use super::{at_least, goal, spread};

    #[test]
    fn a_median_is_judged_and_its_spread_told() {
        let line = goal(spread([-50.0, -30.0, -45.0, -44.0, -48.0]), -40.0, "a".to_owned());
        assert!(line.met && line.value == -45.0 && line.detail.ends_with("median of 5 pairs, -50.0 to -30.0"));
        assert!(!at_least(spread([90.0, 99.0, 90.0, 90.0, 90.0]), 97.0, "b".to_owned()).met);
        assert_eq!(spread([]), None);
    }

    #[test]
    fn fewer_pairs_than_are_asked_for_meet_no_goal() {
        let four = || spread([-50.0; 4]);
        let line = goal(four(), -40.0, "a".to_owned());
        assert!(!line.met && line.detail.contains("median of 4 pairs, fewer than are asked for"), "{}", line.detail);
        assert!(!at_least(four(), -60.0, "b".to_owned()).met);
    }

    #[test]
    fn what_no_pair_was_played_of_is_told_and_meets_no_goal() {
        for line in [goal(None, -40.0, "a".to_owned()), at_least(None, 80.0, "a".to_owned())] {
            assert!(!line.met && line.value.is_nan() && line.detail.starts_with("a: not measured"), "{}", line.detail);
        }
    }
}
