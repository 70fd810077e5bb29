//! Formats against samples in their documented layouts, faults against their messages, and that no bytes make a reader panic.

mod bad_input;
mod formats;
mod native;
mod replay;

use super::{Faults, ReadOptions, Record, TraceError, TraceReader};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::io::Cursor;

/// Everything in a trace, and what was wrong with it.
fn read(bytes: impl AsRef<[u8]>, name: &str) -> Result<(Vec<Record>, Faults, TraceReader), TraceError> {
    read_as(bytes, name, ReadOptions::default())
}

fn read_as(
    bytes: impl AsRef<[u8]>,
    name: &str,
    options: ReadOptions,
) -> Result<(Vec<Record>, Faults, TraceReader), TraceError> {
    let mut reader = TraceReader::from_stream(Cursor::new(bytes.as_ref().to_vec()), name, options)?;
    let records = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    let faults = reader.faults().clone();
    Ok((records, faults, reader))
}

fn record(at: u64, kind: Kind, offset_bytes: u64, length_bytes: u32) -> Record {
    Record { at: Nanos(at), kind, offset_bytes, length_bytes, volume: 0, latency: None }
}
