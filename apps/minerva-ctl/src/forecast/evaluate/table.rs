//! A file of rows and columns: CSV, or Parquet.

use super::times;
use anyhow::{Context as _, bail};
use minerva_sim_workload::trace::guarded_parquet;
use parquet::record::Field;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What stands in one place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Empty,
    Number(f64),
    /// In seconds since 1970: what the file's format says is a time.
    Time(f64),
    Text(String),
}

/// Rows with the number of their line, or in Parquet of their row, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(u64, Vec<Cell>)>,
    /// The line of the names, where it could be a row as well.
    pub(super) doubtful_names: Option<u64>,
}

/// Names of columns that hold the time.
const TIME_NAMES: [&str; 8] = ["time", "timestamp", "date", "datetime", "ts", "t", "seconds", "wall_seconds"];

/// Whether a column of this name holds the time.
pub(super) fn is_time_name(name: &str) -> bool {
    TIME_NAMES.contains(&name.to_lowercase().as_str())
}

impl Cell {
    fn of(text: &str) -> Self {
        match text.trim() {
            "" => Self::Empty,
            text => text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Number),
        }
    }
}

/// Reads a file by its name's end; `None` if it is neither.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<Table>> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    let open = || open(path).with_context(|| format!("failed to open {}", path.display()));
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&[".parquet", ".pq"]) {
        return parquet(open()?).with_context(|| format!("failed to read {}", path.display())).map(Some);
    }
    if ends(&[".csv.gz", ".tsv.gz"]) {
        return csv(flate2::read::MultiGzDecoder::new(open()?), path).map(Some);
    }
    if ends(&[".csv", ".tsv"]) {
        return csv(open()?, path).map(Some);
    }
    Ok(None)
}

/// Opens a file or a pipe. A device may have no end, and all of a table is held.
fn open(path: &Path) -> anyhow::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        bail!("it is a device and no file; copy what it holds into a file first");
    }
    Ok(file)
}

fn csv(mut input: impl Read, path: &Path) -> anyhow::Result<Table> {
    let mut text = Vec::new();
    input.read_to_end(&mut text).with_context(|| format!("failed to read {}", path.display()))?;
    // The first line says what stands between cells.
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |wanted: u8| first.iter().filter(|byte| **byte == wanted).count();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|byte| count(*byte)).unwrap_or(b',');
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_slice());
    let mut rows = Vec::new();
    for record in reader.byte_records() {
        let record = record.with_context(|| format!("failed to read {}", path.display()))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push((line, record.iter().map(|cell| Cell::of(&String::from_utf8_lossy(cell))).collect::<Vec<_>>()));
    }
    let width = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let mut columns: Vec<String> = (1..=width).map(|number| format!("column {number}")).collect();
    let mut doubtful_names = None;
    if rows.first().is_some_and(|(_, cells)| can_be_names(cells)) {
        let (line, cells) = rows.remove(0);
        doubtful_names = could_be_row(&cells).then_some(line);
        for (column, cell) in columns.iter_mut().zip(cells) {
            match cell {
                Cell::Text(text) => *column = text.trim_start_matches('\u{feff}').to_owned(),
                Cell::Number(number) | Cell::Time(number) => *column = number.to_string(),
                Cell::Empty => {}
            }
        }
    }
    Ok(Table { columns, rows, doubtful_names })
}

/// Whether a first line names the columns: it has texts, and no date is among them.
fn can_be_names(cells: &[Cell]) -> bool {
    let is_date = |text: &str| times::date(text).is_some();
    texts(cells).next().is_some() && !texts(cells).any(is_date)
}

/// Whether what can be names could be a row as well. Columns may be named by numbers, such as those of processors, but no row has the name
/// of a column with the time in it.
fn could_be_row(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| matches!(cell, Cell::Number(_))) && !texts(cells).any(is_time_name)
}

fn texts(cells: &[Cell]) -> impl Iterator<Item = &str> {
    cells.iter().filter_map(|cell| match cell {
        Cell::Text(text) => Some(text.trim_start_matches('\u{feff}')),
        _ => None,
    })
}

fn parquet(file: File) -> anyhow::Result<Table> {
    let reader = guarded_parquet(file)?;
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let columns = fields.iter().map(|field| field.name().to_owned()).collect();
    // The library panics on some damaged files; nothing of what it was working on is used after that.
    let read = || -> anyhow::Result<Vec<(u64, Vec<Cell>)>> {
        let mut rows = Vec::new();
        for (index, row) in reader.get_row_iter(None)?.enumerate() {
            rows.push((index as u64 + 1, row?.get_column_iter().map(|(_, field)| cell(field)).collect()));
        }
        Ok(rows)
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(rows) => Ok(Table { columns, rows: rows?, doubtful_names: None }),
        Err(_) => bail!("the decoder failed on a damaged file"),
    }
}

fn cell(field: &Field) -> Cell {
    match field {
        Field::Null => Cell::Empty,
        Field::Byte(number) => Cell::Number(f64::from(*number)),
        Field::Short(number) => Cell::Number(f64::from(*number)),
        Field::Int(number) => Cell::Number(f64::from(*number)),
        Field::Long(number) => Cell::Number(*number as f64),
        Field::Date(days) => Cell::Time(f64::from(*days) * 86_400.0),
        Field::TimestampMillis(number) => Cell::Time(*number as f64 / 1e3),
        Field::TimestampMicros(number) => Cell::Time(*number as f64 / 1e6),
        Field::UByte(number) => Cell::Number(f64::from(*number)),
        Field::UShort(number) => Cell::Number(f64::from(*number)),
        Field::UInt(number) => Cell::Number(f64::from(*number)),
        Field::ULong(number) => Cell::Number(*number as f64),
        Field::Float(number) => Cell::Number(f64::from(*number)),
        Field::Double(number) => Cell::Number(*number),
        Field::Float16(_) | Field::Decimal(_) => Cell::of(&field.to_string()),
        other => Cell::Text(other.to_string().trim_matches('"').to_owned()),
    }
}
