//! Series of values at equal steps, made of rows as they come.

use anyhow::bail;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use minerva_forecast::tenant::{Reading, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A gap longer than this ends a series: what lies beyond is too far to be told from what was before.
const GAP_STEPS_MAX: usize = 200_000;
/// Steps of one series in all: so many, or so many a row, whichever is more. With more the step is far shorter than the time between rows.
const STEPS_MAX: usize = 1_000_000;
const STEPS_PER_ROW_MAX: usize = 50;
/// Of each kind of trouble so many lines are named.
const NAMED_MAX: usize = 3;
const EARLIER: &str = "an earlier time than in a row above";
const LATER: &str = "a later time than in the two rows below";
const AGAIN: &str = "the time of the row above again";
/// A clock that was set back does not do it so often.
const BEGINS_AGAIN_MIN: usize = 10;

/// Values at equal steps; what is missing is not a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) step_seconds: f64,
    /// Of the first value, since 1970; absent where the file has no time.
    pub(super) start_seconds: Option<f64>,
    /// That is in the recorded host's time zone already.
    pub(super) is_local: bool,
    pub(super) values: Vec<f64>,
    /// What processes used besides the disk in each step, where it is known; empty for tables.
    pub(super) usage: Vec<Option<Usage>>,
}

impl Series {
    /// When the first step ended, on the clock of the place where it was measured, in seconds.
    pub(super) fn local_start(&self) -> Option<f64> {
        self.start_seconds.map(|start| if self.is_local { start } else { local(start) })
    }

    /// A step as the daemon takes a slice; nothing of one without a value.
    pub(super) fn reading(&self, step: usize) -> Option<Reading> {
        let value = self.values.get(step).copied().filter(|value| value.is_finite())?;
        let start = self.local_start();
        Some(Reading {
            elapsed_seconds: 1.0,
            read_bytes: value,
            wall_seconds: start.map(|start| start + step as f64 * self.step_seconds),
            usage: self.usage.get(step).copied().flatten(),
            ..Reading::default()
        })
    }
}

/// Seconds since 1970 on the wall clock of this machine's zone.
fn local(seconds: f64) -> f64 {
    let offset = Timestamp::from_second(seconds as i64).map_or(0, |at| TimeZone::system().to_offset(at).seconds());
    seconds + f64::from(offset)
}

/// A value with its place in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) seconds: Option<f64>,
    pub(super) value: f64,
}

/// What was wrong with a file, by kind, with the lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Problems {
    file: String,
    /// The lines of each kind: every column of a table says the same of a row's time.
    kinds: BTreeMap<String, BTreeSet<u64>>,
}

impl Problems {
    pub(super) fn of(file: &std::path::Path) -> Self {
        Self { file: file.display().to_string(), kinds: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, line: u64, what: impl Into<String>) {
        self.kinds.entry(what.into()).or_default().insert(line);
    }

    /// Times go back again and again, as where a file has several series one after the other.
    pub(super) fn begins_again_often(&self) -> bool {
        self.kinds.iter().any(|(what, lines)| what.starts_with(EARLIER) && lines.len() >= BEGINS_AGAIN_MIN)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// One line a kind, as compilers write them.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(what, lines): (&String, &BTreeSet<u64>)| {
            let mut named = lines.iter().take(NAMED_MAX).map(u64::to_string);
            let mut text = format!("{}:{}: {what}", self.file, named.next().unwrap_or_default());
            if lines.len() > 1 {
                let more: Vec<String> = named.collect();
                let _ = write!(text, "; {} such lines, also {}", lines.len(), more.join(", "));
            }
            if lines.len() > NAMED_MAX {
                text.push_str(", …");
            }
            text
        };
        self.kinds.iter().map(line).collect()
    }
}

/// The rows of one column as a series. `step` is the length of a step in seconds where it is given.
///
/// # Errors
///
/// The series would have far more steps than rows.
pub(super) fn series(name: String, rows: &[Row], step: Option<f64>, problems: &mut Problems) -> anyhow::Result<Series> {
    let ordered = in_order(rows, problems);
    let timed: Option<Vec<f64>> = ordered.iter().map(|row| row.seconds).collect();
    let Some(seconds) = timed.filter(|seconds| !seconds.is_empty()) else {
        let values = ordered.iter().map(|row| row.value).collect();
        return Ok(Series {
            name,
            step_seconds: step.unwrap_or(1.0),
            start_seconds: None,
            is_local: false,
            values,
            usage: Vec::new(),
        });
    };
    let step_seconds = step.unwrap_or_else(|| usual_step(&seconds));
    let start = seconds[0];
    let steps_max = STEPS_MAX.max(rows.len().saturating_mul(STEPS_PER_ROW_MAX));
    // Rows that fall on the same step are averaged.
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for (row, at) in ordered.iter().zip(&seconds) {
        let place = ((at - start) / step_seconds).round() as usize;
        if place > sums.len() + GAP_STEPS_MAX {
            problems
                .note(row.line, format!("{name}: a gap of more than {GAP_STEPS_MAX} steps; what follows is left out"));
            break;
        }
        if place >= steps_max {
            bail!(
                "line {}: up to this row {name} would have more than {steps_max} steps of {step_seconds} s, nearly all of them without a value; \
                 give a longer step with --step",
                row.line
            );
        }
        if place > sums.len() {
            problems.note(row.line, format!("{name}: a gap before this row"));
        }
        if sums.len() <= place {
            sums.resize(place + 1, (0.0, 0.0));
        }
        if row.value.is_finite() {
            sums[place] = (sums[place].0 + row.value, sums[place].1 + 1.0);
        }
    }
    let values = sums.iter().map(|(sum, count)| if *count > 0.0 { sum / count } else { f64::NAN }).collect();
    Ok(Series { name, step_seconds, start_seconds: Some(start), is_local: false, values, usage: Vec::new() })
}

/// Without rows whose time is not after that of the row before, and single rows that are ahead of those that follow.
fn in_order<'a>(rows: &'a [Row], problems: &mut Problems) -> Vec<&'a Row> {
    let mut last = f64::NEG_INFINITY;
    let mut kept = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        if let Some(at) = row.seconds {
            if let Some(what) = misplaced(last, at, &rows[index + 1..]) {
                problems.note(row.line, format!("{what}; the row is passed over"));
                continue;
            }
            last = at;
        }
        kept.push(row);
    }
    kept
}

/// What is wrong with a row's time, between the last before it that was kept and the rows below.
fn misplaced(last: f64, at: f64, below: &[Row]) -> Option<&'static str> {
    if at < last {
        return Some(EARLIER);
    }
    if at == last {
        return Some(AGAIN);
    }
    // If one row below is earlier, that one is misplaced; if two are, in order and after what was before, it is this one.
    let [next, after, ..] = below else { return None };
    let (next, after) = (next.seconds?, after.seconds?);
    (last <= next && next <= after && after < at).then_some(LATER)
}

/// The median time from row to row.
fn usual_step(seconds: &[f64]) -> f64 {
    let mut steps: Vec<f64> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied().filter(|step| *step > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Problems, Row, series};
    use std::path::Path;

    fn made(rows: &[(f64, f64)]) -> (Vec<f64>, f64, Vec<String>) {
        let mut problems = Problems::of(Path::new("a.csv"));
        let series = series("rate".to_owned(), &numbered(rows), None, &mut problems).expect("a series");
        (series.values, series.step_seconds, problems.lines())
    }

    /// Below a line with names.
    fn numbered(rows: &[(f64, f64)]) -> Vec<Row> {
        let row = |(line, (seconds, value)): (u64, &(f64, f64))| Row { line, seconds: Some(*seconds), value: *value };
        (2..).zip(rows).map(row).collect()
    }

    #[test]
    fn gaps_are_no_numbers_and_rows_out_of_order_are_named_and_passed_over() {
        let (values, step, problems) = made(&[
            (0.0, 1.0),
            (10.0, 2.0),
            (20.0, 3.0),
            (20.0, 9.0),
            (15.0, 9.0),
            (50.0, 6.0),
            (51.0, 8.0),
            (60.0, 1.0),
        ]);
        assert_eq!(step, 10.0);
        assert_eq!(
            values.iter().map(|value| value.to_string()).collect::<Vec<_>>(),
            ["1", "2", "3", "NaN", "NaN", "7", "1"]
        );
        assert_eq!(
            problems,
            [
                "a.csv:6: an earlier time than in a row above; the row is passed over",
                "a.csv:7: rate: a gap before this row",
                "a.csv:5: the time of the row above again; the row is passed over",
            ]
        );
    }

    #[test]
    fn one_row_none_and_a_leap_of_years_are_series_too() {
        assert_eq!(made(&[]).0.len(), 0);
        assert_eq!(made(&[(7.0, 3.0)]).0, [3.0]);
        let (values, _, problems) = made(&[(0.0, 1.0), (1.0, 2.0), (2.0, 2.0), (1e9, 3.0)]);
        assert_eq!((values.len(), problems.len()), (3, 1));
    }

    #[test]
    fn a_single_row_ahead_of_its_neighbours_is_passed_over_and_no_other() {
        const AHEAD: f64 = 4e9;
        for place in [0, 1, 50, 117] {
            let mut rows: Vec<(f64, f64)> = (0..120).map(|second| (f64::from(second), 1.0)).collect();
            rows[place].0 = AHEAD;
            let (values, step, problems) = made(&rows);
            assert_eq!((values.len(), step), (if place == 0 { 119 } else { 120 }, 1.0), "{place}: {problems:?}");
            let line = place + 2;
            let expected = format!("a.csv:{line}: a later time than in the two rows below; the row is passed over");
            assert_eq!(problems[0], expected, "{place}");
        }
        // A clock that was set back by more than it had run since the row before: what is read again is passed over.
        let (values, _, problems) = made(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (0.5, 9.0), (1.5, 9.0), (3.0, 1.0)]);
        assert_eq!(values, [1.0; 4]);
        assert_eq!(
            problems,
            ["a.csv:5: an earlier time than in a row above; the row is passed over; 2 such lines, also 6"]
        );
    }

    #[test]
    fn far_more_steps_than_rows_are_no_series_and_a_longer_step_is_asked_for() {
        // One second and 150,000 in turns.
        let rows: Vec<(f64, f64)> = (0..60).map(|row| (f64::from(row / 2 * 150_001 + row % 2), 1.0)).collect();
        let made = |step| series("rate".to_owned(), &numbered(&rows), step, &mut Problems::of(Path::new("a.csv")));
        let error = made(None).expect_err("millions of steps").to_string();
        let expected = "line 16: up to this row rate would have more than 1000000 steps of 1 s, nearly all";
        assert!(error.starts_with(expected) && error.ends_with("give a longer step with --step"), "{error}");
        assert_eq!(made(Some(150_001.0)).expect("a series").values.len(), 30);
    }
}
