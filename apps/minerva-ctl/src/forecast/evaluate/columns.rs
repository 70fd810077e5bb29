//! Which columns of a table are series, and which is the time.

use super::series::{Problems, Row, Series, series};
use super::table::{Cell, Table, is_time_name};
use super::times;
use crate::arguments::{Evaluated as Arguments, TimeUnit};
use crate::output;
use anyhow::bail;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Of a column of numbers, or of dates, this part of the cells at least are such.
const PART_MIN: f64 = 0.5;
/// Of columns that are not used so many are named in an error.
const UNUSED_NAMED_MAX: usize = 3;
/// No model takes more: squares of it would overflow.
const LARGEST: f64 = 1e18;

/// All series of a table.
pub(super) fn all(table: &Table, arguments: &Arguments, problems: &mut Problems) -> anyhow::Result<Vec<Series>> {
    let used = Used::of(table, arguments, problems)?;
    let step = arguments.step.map(|step| step.as_secs_f64());
    let per_second = used.time.map_or(1.0, |time| units_per_second(table, time, arguments));
    let mut by_group: BTreeMap<String, Vec<&(u64, Vec<Cell>)>> = BTreeMap::new();
    for row in &table.rows {
        by_group.entry(used.by.map_or_else(String::new, |by| text(row.1.get(by)))).or_default().push(row);
    }
    let mut found = Vec::new();
    for (group, rows) in by_group {
        let at = |row: &&(u64, Vec<Cell>)| seconds(row, used.time?, per_second, problems);
        let times: Vec<Option<f64>> = rows.iter().map(at).collect();
        for column in &used.values {
            let name = match group.as_str() {
                "" => table.columns[*column].clone(),
                group => format!("{group}, {}", table.columns[*column]),
            };
            let timed = rows.iter().zip(&times).filter(|(_, at)| used.time.is_none() || at.is_some());
            let rows: Vec<Row> = timed
                .map(|((line, cells), at)| {
                    let value = number(*line, cells.get(*column), &name, problems);
                    Row { line: *line, seconds: *at, value }
                })
                .collect();
            found.push(series(name, &rows, step, problems)?);
        }
    }
    Ok(found)
}

/// What is used of a table, as places among its columns.
struct Used {
    time: Option<usize>,
    by: Option<usize>,
    values: Vec<usize>,
}

impl Used {
    fn of(table: &Table, arguments: &Arguments, problems: &mut Problems) -> anyhow::Result<Self> {
        if table.columns.is_empty() {
            bail!("it is empty; the first line names the columns, and each further line is a row");
        }
        if table.rows.is_empty() {
            bail!("it names the columns {} and has no rows", listed(&table.columns));
        }
        if let Some(line) = table.doubtful_names {
            let what = "taken as the names of the columns, though it has numbers";
            problems.note(line, format!("{what}; if it is a row, write a line with names above it"));
        }
        let index = |name: &str| {
            let found = table.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
            found.ok_or_else(|| anyhow::anyhow!("there is no column {name}; there are {}", listed(&table.columns)))
        };
        let by = arguments.by.as_deref().map(index).transpose()?;
        let values: Vec<usize> = arguments.column.iter().map(|name| index(name)).collect::<Result<_, _>>()?;
        let is_free = |column: usize| Some(column) != by && !values.contains(&column);
        let time = match &arguments.time {
            Some(name) => Some(index(name)?),
            None => table.columns.iter().position(|column| is_time_name(column)).or_else(|| {
                (0..table.columns.len()).find(|column| is_free(*column) && Share::of(table, *column, is_date).is_most())
            }),
        };
        let mut used = Self { time, by, values };
        if used.values.is_empty() {
            used.choose(table, problems)?;
        }
        Ok(used)
    }

    /// Takes every column of numbers. Of one that has some and too few it is said how it can be used all the same.
    fn choose(&mut self, table: &Table, problems: &mut Problems) -> anyhow::Result<()> {
        let mut unused = Vec::new();
        for (column, name) in table.columns.iter().enumerate() {
            if Some(column) == self.time || Some(column) == self.by {
                continue;
            }
            let numbers = Share::of(table, column, |cell| matches!(cell, Cell::Number(_)));
            if numbers.is_most() {
                self.values.push(column);
            } else if let Some(line) = numbers.first_other.filter(|_| numbers.such > 0) {
                let (other, all) = (numbers.all - numbers.such, numbers.all);
                let why = format!("{name}: {other} of {all} cells are no number; give --column {name} to use it");
                problems.note(line, why.as_str());
                unused.push(why);
            }
        }
        if self.values.is_empty() {
            unused.truncate(UNUSED_NAMED_MAX);
            unused.insert(0, format!("no column holds numbers besides the time; there are {}", listed(&table.columns)));
            bail!(unused.join("; "));
        }
        Ok(())
    }
}

/// How many of a column's cells are of some kind.
struct Share {
    such: usize,
    /// But empty ones.
    all: usize,
    /// The line of the first that is not.
    first_other: Option<u64>,
}

impl Share {
    fn of(table: &Table, column: usize, is_such: impl Fn(&Cell) -> bool) -> Self {
        let mut share = Self { such: 0, all: 0, first_other: None };
        for (line, cells) in &table.rows {
            let Some(cell) = cells.get(column).filter(|cell| **cell != Cell::Empty) else { continue };
            share.all += 1;
            if is_such(cell) {
                share.such += 1;
            } else {
                share.first_other = share.first_other.or(Some(*line));
            }
        }
        share
    }

    fn is_most(&self) -> bool {
        self.such > 0 && self.such as f64 >= PART_MIN * self.all as f64
    }
}

fn is_date(cell: &Cell) -> bool {
    match cell {
        Cell::Time(_) => true,
        Cell::Text(text) => times::date(text).is_some(),
        Cell::Number(_) | Cell::Empty => false,
    }
}

/// Of the numbers in the column with the time. Where they are taken for something finer than seconds, it is said.
fn units_per_second(table: &Table, time: usize, arguments: &Arguments) -> f64 {
    let unit = arguments.time_unit.unwrap_or_else(|| {
        let numbers = table.rows.iter().filter_map(|(_, cells)| match cells.get(time) {
            Some(Cell::Number(number)) => Some(*number),
            _ => None,
        });
        let unit = times::unit(numbers);
        if unit != TimeUnit::S {
            let (file, column) = (arguments.file.display(), &table.columns[time]);
            output::say(&format!(
                "{file}: the times in {column} are taken as {}; --time-unit changes that",
                times::name(unit)
            ));
        }
        unit
    });
    times::per_second(unit)
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

fn text(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Number(number)) => number.to_string(),
        Some(Cell::Time(seconds)) => {
            Timestamp::from_second(*seconds as i64).map_or_else(|_| seconds.to_string(), |at| at.to_string())
        }
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
        Some(Cell::Text(_) | Cell::Time(_)) => "no number",
        Some(Cell::Empty) => "nothing",
        None => "too few cells",
    };
    problems.note(line, format!("{name}: {why}; taken as a gap"));
    f64::NAN
}

/// Seconds since 1970.
fn seconds((line, cells): &(u64, Vec<Cell>), time: usize, per_second: f64, problems: &mut Problems) -> Option<f64> {
    let read = match cells.get(time) {
        Some(Cell::Number(number)) => Some(number / per_second).filter(|seconds| seconds.is_finite()),
        Some(Cell::Time(seconds)) => Some(*seconds),
        Some(Cell::Text(text)) => times::date(text),
        Some(Cell::Empty) | None => None,
    };
    if read.is_none() {
        problems.note(*line, "the time cannot be read; the row is passed over");
    }
    read
}
