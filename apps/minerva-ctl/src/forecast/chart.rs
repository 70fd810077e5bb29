//! A chart in text: a column a slice, or several bins of a day or a week.

use super::series::{Point, Series};
use crate::figures::{long_span, rate};

const ROWS: usize = 14;
/// Slices that are over; with those to come and the labels it fits a terminal of 100 columns.
const PAST_MAX: usize = 64;

/// Draws the latest slices and those to come.
pub(super) fn chart(series: &Series) -> String {
    let series = series.clone().latest(PAST_MAX);
    let top = series.top();
    let labels = [rate(top as u64), rate((top / 2.0) as u64), "0".to_owned()];
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..ROWS {
        let label = match row {
            0 => &labels[0],
            _ if row == ROWS / 2 => &labels[1],
            _ if row == ROWS - 1 => &labels[2],
            _ => "",
        };
        let mut line = format!("{label:>width$} \u{2524}");
        for (index, point) in series.points.iter().enumerate() {
            if index == series.past {
                line.push('\u{250A}');
            }
            line.push(cell(point, row, top));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let past_seconds = series.past as f64 * series.slice_seconds;
    let left = match past_seconds {
        seconds if seconds < 3_600.0 => format!("-{seconds:.0} s"),
        seconds => format!("-{}", long_span((seconds * 1e9) as u64)),
    };
    let gap = series.past.saturating_sub(left.len());
    text.push_str(&format!("{:width$}  {left}{:gap$}now {}\n", "", "", crate::moment::show(series.unix_ns)));
    text.push_str(&format!("{:width$}  \u{25CF} came   \u{2500} expected   \u{2591} {}\n", "", series.interval));
    text
}

/// What is drawn of a slice in a row, the topmost being 0.
fn cell(point: &Point, row: usize, top: f64) -> char {
    let row_of = |value: f64| {
        let part = (value / top).clamp(0.0, 1.0);
        ((1.0 - part) * (ROWS - 1) as f64).round() as usize
    };
    if point.came.is_some_and(|came| row_of(came) == row) {
        return '\u{25CF}';
    }
    let Some([value, lower, upper]) = point.expected else { return ' ' };
    match row {
        _ if row == row_of(value) => '\u{2500}',
        _ if (row_of(upper)..=row_of(lower)).contains(&row) => '\u{2591}',
        _ => ' ',
    }
}
