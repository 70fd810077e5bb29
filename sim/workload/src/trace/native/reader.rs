//! Reading the native form, a few thousand rows at a time.

use super::source::Source;
use super::{SCHEMA, VERSION, VERSION_KEY, VOLUMES_KEY, kind_of};
use crate::trace::decode::Decode;
use crate::trace::error::TraceError;
use crate::trace::record::{Found, Malformed, Position, Raw};
use bytes::Bytes;
use minerva_model::Nanos;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::io::{Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that are decoded at once: enough to spread the cost of a call, few enough for the processor's cache.
const BATCH_ROWS: usize = 4096;

/// Whether the file begins as Parquet does. Leaves it at its beginning.
pub(in crate::trace) fn has_mark(mut file: &File) -> std::io::Result<bool> {
    let mut mark = Vec::new();
    file.take(4).read_to_end(&mut mark)?;
    file.rewind()?;
    Ok(mark == b"PAR1")
}

/// Runs a piece of the Parquet library, which panics on some damaged files (in 60.1 on an impossible bit width, for one).
/// Nothing of what it was working on is used after that: the error ends the reading.
fn contained<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder failed on a damaged file".to_owned())))
}

/// Opens a Parquet file of any schema as guarded as traces are: one that is damaged ends in an error. Reading its rows may still
/// panic in the library, which whoever reads them has to contain.
///
/// # Errors
/// It is no Parquet file, or a damaged one.
pub fn guarded_parquet(file: File) -> Result<Box<dyn FileReader + Send>, ParquetError> {
    contained(|| Ok(Box::new(SerializedFileReader::new(Source(file))?) as _))
}

/// One row group's columns.
struct Columns {
    at: ColumnReaderImpl<Int64Type>,
    volume: ColumnReaderImpl<Int32Type>,
    kind: ColumnReaderImpl<Int32Type>,
    offset: ColumnReaderImpl<Int64Type>,
    length: ColumnReaderImpl<Int32Type>,
    latency: ColumnReaderImpl<Int64Type>,
}

/// Rows that were decoded and not given out yet.
#[derive(Default)]
struct Batch {
    rows: usize,
    next: usize,
    at: Vec<i64>,
    volume: Vec<i32>,
    kind: Vec<i32>,
    offset: Vec<i64>,
    length: Vec<i32>,
    /// Values of the rows that have one, and for each row whether it has.
    latency: Vec<i64>,
    has_latency: Vec<i16>,
    next_latency: usize,
}

/// The rows of a file in the native form.
pub(in crate::trace) struct NativeRecords {
    file: Box<dyn FileReader + Send>,
    group: usize,
    columns: Option<Columns>,
    batch: Batch,
    row: u64,
    names: Vec<String>,
    taken: Arc<AtomicU64>,
    /// Bytes of the file for each row, for progress.
    bytes_per_row: f64,
}

impl NativeRecords {
    pub(in crate::trace) fn open(file: File, origin: &str) -> Result<Self, TraceError> {
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        Self::new(|| SerializedFileReader::new(Source(file)), bytes, origin)
    }

    pub(in crate::trace) fn from_bytes(bytes: Vec<u8>, origin: &str) -> Result<Self, TraceError> {
        let length = bytes.len() as u64;
        Self::new(|| SerializedFileReader::new(Source(Bytes::from(bytes))), length, origin)
    }

    fn new<F: FileReader + Send + 'static>(
        open: impl FnOnce() -> Result<F, ParquetError>,
        bytes: u64,
        origin: &str,
    ) -> Result<Self, TraceError> {
        let damaged = |source| TraceError::Parquet { origin: origin.to_owned(), source };
        let other = |detail: String| TraceError::NotNative { origin: origin.to_owned(), detail };
        let file = contained(open).map_err(damaged)?;
        let metadata = file.metadata().file_metadata();
        let expected = parse_message_type(SCHEMA).map_err(damaged)?;
        let columns = |schema: &parquet::schema::types::Type| -> Vec<(String, String)> {
            schema
                .get_fields()
                .iter()
                .map(|field| {
                    let kind =
                        if field.is_primitive() { field.get_physical_type().to_string() } else { "group".into() };
                    let optional = field.get_basic_info().has_repetition() && field.is_optional();
                    (field.name().to_owned(), if optional { format!("optional {kind}") } else { kind })
                })
                .collect()
        };
        let (found, wanted) = (columns(metadata.schema()), columns(&expected));
        if found != wanted {
            let list = |columns: &[(String, String)]| {
                columns.iter().take(8).map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>().join(", ")
            };
            return Err(other(format!("its columns are {}, and not {}", list(&found), list(&wanted))));
        }
        let value = |key: &str| {
            let pairs = metadata.key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.clone()
        };
        match value(VERSION_KEY) {
            Some(version) if version == VERSION => {}
            Some(version) => return Err(other(format!("it has version {version}, and this program reads {VERSION}"))),
            None => return Err(other(format!("its metadata lacks {VERSION_KEY}"))),
        }
        let names = value(VOLUMES_KEY).map_or_else(Vec::new, |names| names.lines().map(str::to_owned).collect());
        let rows = metadata.num_rows().max(1) as f64;
        Ok(Self {
            file: Box::new(file),
            group: 0,
            columns: None,
            batch: Batch::default(),
            row: 0,
            names,
            taken: Arc::new(AtomicU64::new(0)),
            bytes_per_row: bytes as f64 / rows,
        })
    }

    pub(in crate::trace) fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Decodes further rows; false when there are none.
    fn refill(&mut self) -> Result<bool, ParquetError> {
        loop {
            if let Some(columns) = &mut self.columns {
                if self.batch.fill(columns)? {
                    return Ok(true);
                }
                self.columns = None;
                self.group += 1;
            }
            if self.group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.columns = Some(self.open_group()?);
        }
    }

    fn open_group(&self) -> Result<Columns, ParquetError> {
        let group = self.file.get_row_group(self.group)?;
        // The schema was checked for the file; a damaged row group can still differ from it.
        let column = |index: usize| group.get_column_reader(index);
        Ok(Columns {
            at: int64(column(0)?)?,
            volume: int32(column(1)?)?,
            kind: int32(column(2)?)?,
            offset: int64(column(3)?)?,
            length: int32(column(4)?)?,
            latency: int64(column(5)?)?,
        })
    }
}

fn int64(reader: ColumnReader) -> Result<ColumnReaderImpl<Int64Type>, ParquetError> {
    match reader {
        reader @ ColumnReader::Int64ColumnReader(_) => Ok(get_typed_column_reader(reader)),
        _ => Err(ParquetError::General("a column has another type than the schema says".to_owned())),
    }
}

fn int32(reader: ColumnReader) -> Result<ColumnReaderImpl<Int32Type>, ParquetError> {
    match reader {
        reader @ ColumnReader::Int32ColumnReader(_) => Ok(get_typed_column_reader(reader)),
        _ => Err(ParquetError::General("a column has another type than the schema says".to_owned())),
    }
}

fn read<T: DataType>(reader: &mut ColumnReaderImpl<T>, into: &mut Vec<T::T>) -> Result<usize, ParquetError> {
    into.clear();
    Ok(reader.read_records(BATCH_ROWS, None, None, into)?.0)
}

impl Batch {
    fn fill(&mut self, columns: &mut Columns) -> Result<bool, ParquetError> {
        self.next = 0;
        self.next_latency = 0;
        self.rows = read(&mut columns.at, &mut self.at)?;
        self.latency.clear();
        self.has_latency.clear();
        let counts = [
            read(&mut columns.volume, &mut self.volume)?,
            read(&mut columns.kind, &mut self.kind)?,
            read(&mut columns.offset, &mut self.offset)?,
            read(&mut columns.length, &mut self.length)?,
            columns.latency.read_records(BATCH_ROWS, Some(&mut self.has_latency), None, &mut self.latency)?.0,
        ];
        let lengths =
            [self.volume.len(), self.kind.len(), self.offset.len(), self.length.len(), self.has_latency.len()];
        if counts.iter().chain(&lengths).any(|count| *count != self.rows) || self.at.len() != self.rows {
            return Err(ParquetError::General("the columns have different numbers of rows".to_owned()));
        }
        Ok(self.rows > 0)
    }

    /// The next row, as far as it makes sense.
    fn take(&mut self) -> Result<Raw, &'static str> {
        let row = self.next;
        self.next += 1;
        let latency = match self.has_latency[row] {
            0 => None,
            _ => {
                self.next_latency += 1;
                Some(self.latency.get(self.next_latency - 1).copied().unwrap_or(-1))
            }
        };
        let latency = match latency.map(u64::try_from).transpose() {
            Ok(latency) => latency.map(Nanos),
            Err(_) => return Err("a negative latency"),
        };
        let raw = Raw {
            at_ns: u64::try_from(self.at[row]).map_err(|_| "a negative time")?,
            kind: kind_of(self.kind[row]).ok_or("an unknown kind of request")?,
            // Parquet keeps unsigned numbers in signed ones of the same width.
            offset_bytes: self.offset[row] as u64,
            length_bytes: u64::from(self.length[row] as u32),
            volume: self.volume[row] as u32,
            latency,
        };
        raw.objection().map_or(Ok(raw), Err)
    }
}

impl Decode for NativeRecords {
    fn next(&mut self) -> std::io::Result<Option<Found>> {
        if self.batch.next >= self.batch.rows {
            let read = (self.row as f64 * self.bytes_per_row) as u64;
            self.taken.store(read, Ordering::Relaxed);
            if !contained(|| self.refill()).map_err(std::io::Error::other)? {
                return Ok(None);
            }
        }
        self.row += 1;
        Ok(Some(match self.batch.take() {
            Ok(raw) => Found::Request(raw),
            Err(reason) => Found::Malformed(Malformed {
                position: self.position(),
                reason: reason.to_owned(),
                excerpt: String::new(),
            }),
        }))
    }

    fn position(&self) -> Position {
        Position::Row(self.row.saturating_sub(1))
    }

    fn volume_names(&self) -> &[String] {
        &self.names
    }
}
