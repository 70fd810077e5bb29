//! Writing the native form.

use super::{SCHEMA, VERSION, VERSION_KEY, VOLUMES_KEY, kind_number};
use crate::trace::error::TraceError;
use crate::trace::record::Record;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a group: about 35 MiB while they are gathered.
const GROUP_ROWS: usize = 1_000_000;

#[derive(Default)]
struct Rows {
    at: Vec<i64>,
    volume: Vec<i32>,
    kind: Vec<i32>,
    offset: Vec<i64>,
    length: Vec<i32>,
    latency: Vec<i64>,
    has_latency: Vec<i16>,
}

/// Writes a trace in the native form. It appears under its name when [`NativeWriter::finish`] has written all of it;
/// dropped before that, it leaves nothing.
pub struct NativeWriter {
    path: PathBuf,
    partial: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
    rows: Rows,
    records: u64,
}

impl NativeWriter {
    /// Begins the file at `path`; one that is there is replaced at the end, or that to which a link there leads. Anything else that is there
    /// is an error: a device, pipe or directory cannot be replaced by a file.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| TraceError::Write { path: path.to_owned(), source };
        let place = match path.metadata() {
            Ok(found) if !found.is_file() => {
                return Err(failed(
                    "it is no file, and the native form is written beside it and put in its place".into(),
                ));
            }
            Ok(_) => path.canonicalize().map_err(|error| failed(error.into()))?,
            Err(_) => path.to_owned(),
        };
        let (partial, file) = create_beside(&place).map_err(|error| failed(error.into()))?;
        let writer = open(file).map_err(|error| {
            let _ = std::fs::remove_file(&partial);
            failed(error.into())
        })?;
        Ok(Self { path: place, partial, writer: Some(writer), rows: Rows::default(), records: 0 })
    }

    /// Appends one request.
    pub fn write(&mut self, record: &Record) -> Result<(), TraceError> {
        // Parquet keeps unsigned numbers in signed ones of the same width. A time past 2^63 ns, 292 years, is cut to that.
        self.rows.at.push(i64::try_from(record.at.0).unwrap_or(i64::MAX));
        self.rows.volume.push(record.volume as i32);
        self.rows.kind.push(kind_number(record.kind));
        self.rows.offset.push(record.offset_bytes as i64);
        self.rows.length.push(record.length_bytes as i32);
        self.rows.has_latency.push(i16::from(record.latency.is_some()));
        if let Some(latency) = record.latency {
            self.rows.latency.push(i64::try_from(latency.0).unwrap_or(i64::MAX));
        }
        self.records += 1;
        if self.rows.at.len() >= GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// Requests so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes what remains, with the volumes' names if there are any, and puts the file in its place.
    pub fn finish(mut self, volume_names: &[String]) -> Result<(), TraceError> {
        if !self.rows.at.is_empty() {
            self.flush()?;
        }
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        writer.append_key_value_metadata(KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_owned()));
        if !volume_names.is_empty() {
            let names: Vec<String> = volume_names.iter().map(|name| name.replace(['\n', '\r'], " ")).collect();
            writer.append_key_value_metadata(KeyValue::new(VOLUMES_KEY.to_owned(), names.join("\n")));
        }
        let file = writer.into_inner().map_err(|error| self.failed(error.into()))?;
        file.sync_all().map_err(|error| self.failed(error.into()))?;
        std::fs::rename(&self.partial, &self.path).map_err(|error| self.failed(error.into()))?;
        // Whatever has that name from now on is somebody's.
        self.partial = PathBuf::new();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let written = write_group(writer, &self.rows);
        self.rows.clear();
        written.map_err(|error| self.failed(error.into()))
    }

    fn failed(&self, source: Box<dyn std::error::Error + Send + Sync>) -> TraceError {
        TraceError::Write { path: self.path.clone(), source }
    }
}

/// A new file beside another: one that is there under such a name is somebody's.
fn create_beside(place: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0_u32;
    loop {
        let mut partial = place.as_os_str().to_owned();
        partial.push(if number == 0 { ".partial".to_owned() } else { format!(".partial{number}") });
        let partial = PathBuf::from(partial);
        match File::create_new(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|file| (partial, file)),
        }
    }
}

impl Drop for NativeWriter {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl Rows {
    fn clear(&mut self) {
        self.at.clear();
        self.volume.clear();
        self.kind.clear();
        self.offset.clear();
        self.length.clear();
        self.latency.clear();
        self.has_latency.clear();
    }
}

fn open<W: Write + Send>(file: W) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("minerva".to_owned());
    // Times grow and offsets are many: a dictionary would only be tried and given up.
    for name in ["t_ns", "lat_ns"] {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(name), false)
            .set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED);
    }
    properties = properties
        .set_column_dictionary_enabled(ColumnPath::from("off"), false)
        .set_column_encoding(ColumnPath::from("off"), Encoding::PLAIN);
    SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
}

fn write_group<W: Write + Send>(writer: &mut SerializedFileWriter<W>, rows: &Rows) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    column::<Int64Type, W>(&mut group, &rows.at, None)?;
    column::<Int32Type, W>(&mut group, &rows.volume, None)?;
    column::<Int32Type, W>(&mut group, &rows.kind, None)?;
    column::<Int64Type, W>(&mut group, &rows.offset, None)?;
    column::<Int32Type, W>(&mut group, &rows.length, None)?;
    column::<Int64Type, W>(&mut group, &rows.latency, Some(&rows.has_latency))?;
    group.close()?;
    Ok(())
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than are written".to_owned()));
    };
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}
