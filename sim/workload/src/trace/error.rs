//! What stops a trace from being read or written.

use super::format::Format;
use super::record::{Malformed, Misplaced, Position};
use minerva_model::Nanos;
use std::path::PathBuf;

/// Why a trace could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open the trace {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file cannot be read on; also: its compression is broken or cut off.
    #[error("{origin}: cannot be read beyond {position}; is the file cut off or damaged?")]
    Read {
        /// The trace.
        origin: String,
        /// How far it was read.
        position: Position,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{origin}: the trace is empty")]
    Empty {
        /// The trace.
        origin: String,
    },
    /// No known format looks like it.
    #[error("{origin}: not a trace of a known format ({detail}); name the format if it is one of: {}", Format::names())]
    UnknownFormat {
        /// The trace.
        origin: String,
        /// What was seen.
        detail: String,
    },
    /// It was read to its end and nothing in it was a request.
    #[error("{origin}: no request in it when read as {format} ({malformed} entries could not be understood{})",
        first.as_ref().map(|first| format!(", the first at {first}")).unwrap_or_default())]
    NoRecords {
        /// The trace.
        origin: String,
        /// As what it was read.
        format: Format,
        /// Entries that were not understood.
        malformed: u64,
        /// The first of them.
        first: Option<Malformed>,
    },
    /// More than the set share of it could not be understood.
    #[error(
        "{origin}: {malformed} of the first {seen} entries could not be understood as {format}, the first at {first}; name another format, or allow more malformed entries"
    )]
    TooManyMalformed {
        /// The trace.
        origin: String,
        /// As what it was read.
        format: Format,
        /// Entries that were not understood.
        malformed: u64,
        /// Entries so far.
        seen: u64,
        /// The first that was not understood.
        first: Malformed,
    },
    /// The instants of more than the set share of it do not fit those around them.
    #[error(
        "{origin}: {misplaced} of the first {seen} requests are out of order, and by more than is sorted, the first at {first}; sort within a wider window, sort the trace, or allow more"
    )]
    TooManyMisplaced {
        /// The trace.
        origin: String,
        /// Requests out of order or far ahead.
        misplaced: u64,
        /// Entries so far.
        seen: u64,
        /// The first of them.
        first: Misplaced,
    },
    /// Time went back, and the reader was told to refuse that.
    #[error(
        "{origin}: {position} is {back} earlier than the request before it; sort the trace, or let it be sorted within a window"
    )]
    OutOfOrder {
        /// The trace.
        origin: String,
        /// Where.
        position: Position,
        /// How far back.
        back: Nanos,
    },
    /// A Parquet file that is not a trace of ours.
    #[error("{origin}: not a trace in the native form: {detail}")]
    NotNative {
        /// The file.
        origin: String,
        /// What differs.
        detail: String,
    },
    /// A Parquet file that is broken.
    #[error("{origin}: the Parquet file is damaged")]
    Parquet {
        /// The file.
        origin: String,
        /// How.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// A request does not fit the disk on which the trace is replayed.
    #[error(
        "{origin}: {position}: the request of {length_bytes} bytes at byte {offset_bytes} is past the disk's end at {capacity_bytes}; fold the addresses, or take a greater disk"
    )]
    PastTheEnd {
        /// The trace.
        origin: String,
        /// Where.
        position: Position,
        /// Its first byte.
        offset_bytes: u64,
        /// Its length.
        length_bytes: u32,
        /// The disk's size.
        capacity_bytes: u64,
    },
    /// A trace cannot be written.
    #[error("cannot write the trace {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
