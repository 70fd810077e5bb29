//! Which columns of a table are series, and which is the time.

use super::series::{Problems, Row, Series, series};
use super::table::{Cell, Table};
use crate::arguments::Evaluated as Arguments;
use anyhow::bail;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Names of columns that hold the time.
const TIME_NAMES: [&str; 8] = ["time", "timestamp", "date", "datetime", "ts", "t", "seconds", "wall_seconds"];
/// Of a column of numbers this part of the cells at least are numbers.
const NUMBERS_MIN: f64 = 0.5;
/// No model takes more: squares of it would overflow.
const LARGEST: f64 = 1e18;

/// All series of a table.
pub(super) fn all(table: &Table, arguments: &Arguments, problems: &mut Problems) -> anyhow::Result<Vec<Series>> {
    if table.columns.is_empty() {
        bail!("it is empty; the first line names the columns, and each further line is a row");
    }
    if table.rows.is_empty() {
        bail!("it names the columns {} and has no rows", listed(&table.columns));
    }
    let index = |name: &str| {
        let found = table.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        found.ok_or_else(|| anyhow::anyhow!("there is no column {name}; there are {}", listed(&table.columns)))
    };
    let time = match &arguments.time {
        Some(name) => Some(index(name)?),
        None => table.columns.iter().position(|column| TIME_NAMES.contains(&column.to_lowercase().as_str())),
    };
    let by = arguments.by.as_deref().map(index).transpose()?;
    let mut values: Vec<usize> = arguments.column.iter().map(|name| index(name)).collect::<Result<_, _>>()?;
    if values.is_empty() {
        let is_used = |column: &usize| Some(*column) == time || Some(*column) == by;
        values = (0..table.columns.len()).filter(|column| !is_used(column) && is_of_numbers(table, *column)).collect();
    }
    if values.is_empty() {
        bail!("no column holds numbers besides the time; there are {}", listed(&table.columns));
    }
    let step = arguments.step.map(|step| step.as_secs_f64());
    let mut by_group: BTreeMap<String, Vec<&(u64, Vec<Cell>)>> = BTreeMap::new();
    for row in &table.rows {
        by_group.entry(by.map_or_else(String::new, |by| text(row.1.get(by)))).or_default().push(row);
    }
    let mut found = Vec::new();
    for (group, rows) in by_group {
        let times: Vec<Option<f64>> = rows.iter().map(|row| seconds(row, time, problems)).collect();
        for column in &values {
            let name = match group.as_str() {
                "" => table.columns[*column].clone(),
                group => format!("{group}, {}", table.columns[*column]),
            };
            let timed = rows.iter().zip(&times).filter(|(_, at)| time.is_none() || at.is_some());
            let rows: Vec<Row> = timed
                .map(|((line, cells), at)| {
                    let value = number(*line, cells.get(*column), &name, problems);
                    Row { line: *line, seconds: *at, value }
                })
                .collect();
            found.push(series(name, &rows, step, problems));
        }
    }
    Ok(found)
}

/// The names of the first columns; of a file that is no table they may be many, and long.
fn listed(columns: &[String]) -> String {
    const COLUMNS: usize = 20;
    const CHARACTERS: usize = 40;
    let short = |name: &String| match name.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    };
    let mut names: Vec<String> = columns.iter().take(COLUMNS).map(short).collect();
    if columns.len() > COLUMNS {
        names.push(format!("and {} more", columns.len() - COLUMNS));
    }
    names.join(", ")
}

fn is_of_numbers(table: &Table, column: usize) -> bool {
    let cells = table.rows.iter().filter_map(|(_, cells)| cells.get(column)).filter(|cell| **cell != Cell::Empty);
    let (numbers, all) = cells.fold((0.0, 0.0), |(numbers, all), cell| {
        (numbers + f64::from(u8::from(matches!(cell, Cell::Number(_)))), all + 1.0)
    });
    all > 0.0 && numbers >= NUMBERS_MIN * all
}

fn text(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Number(number)) => number.to_string(),
        Some(Cell::Empty) | None => "(none)".to_owned(),
    }
}

/// A value that can be forecast; what is none is a gap.
fn number(line: u64, cell: Option<&Cell>, name: &str, problems: &mut Problems) -> f64 {
    let why = match cell {
        Some(Cell::Number(number)) if (0.0..=LARGEST).contains(number) => return *number,
        Some(Cell::Number(number)) if *number > LARGEST && number.is_finite() => "above 1e18, which no model takes",
        Some(Cell::Number(number)) if *number < 0.0 && number.is_finite() => "a negative number",
        Some(Cell::Number(_)) => "not a finite number",
        Some(Cell::Text(_)) => "no number",
        Some(Cell::Empty) => "nothing",
        None => "too few cells",
    };
    problems.note(line, format!("{name}: {why}; taken as a gap"));
    f64::NAN
}

/// Seconds since 1970.
fn seconds((line, cells): &(u64, Vec<Cell>), time: Option<usize>, problems: &mut Problems) -> Option<f64> {
    let read = match cells.get(time?) {
        // What cannot be seconds is a finer unit.
        Some(Cell::Number(number)) => [1.0, 1e3, 1e6, 1e9]
            .into_iter()
            .map(|unit| number / unit)
            .find(|seconds| seconds.abs() < 1e11)
            .filter(|seconds| seconds.is_finite()),
        Some(Cell::Text(text)) => date(text),
        _ => None,
    };
    if read.is_none() {
        problems.note(*line, "the time cannot be read; the row is passed over");
    }
    read
}

/// A date with its zone, or one of this machine's.
fn date(text: &str) -> Option<f64> {
    let instant = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.replace(' ', "T").parse().ok()?;
        local.to_zoned(TimeZone::system()).ok().map(|zoned| zoned.timestamp())
    })?;
    Some(instant.as_nanosecond() as f64 / 1e9)
}
