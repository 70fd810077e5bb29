//! What describes a workload: job files, and traces of every format.

use minerva_model::Nanos;
use minerva_sim_workload::trace::{Format, ReadOptions, TraceReader};
use minerva_sim_workload::{Step, job};
use std::io::Cursor;

/// A job file, and its jobs on a disk. The first two bytes are the disk's size: a power of two, and some more.
pub fn job_file(input: &[u8]) {
    let [power, more, text @ ..] = input else { return };
    let capacity = (1_u64 << (power % 64)).saturating_add(u64::from(*more));
    let file = match job::parse(&String::from_utf8_lossy(text), "fuzz") {
        Ok(file) => file,
        Err(errors) => return assert!(!errors.problems.is_empty() && !errors.to_string().is_empty()),
    };
    // Very many processes are allowed, and take their time.
    if text.len() > 4096 || file.processes() > 1000 {
        return;
    }
    match file.bind(capacity, 1) {
        Ok(jobs) => {
            for job in jobs.iter().take(4) {
                if let Step::Issue(request) = job.source().next(Nanos::ZERO) {
                    assert!(request.offset_bytes + u64::from(request.length_bytes) <= capacity);
                }
            }
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

/// Formats of lines, each under its own name. The first byte says which.
pub fn trace_text(input: &[u8]) {
    const FORMATS: [Format; 7] = [
        Format::Systor,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Spc,
        Format::FioIolog,
        Format::CloudPhysics,
    ];
    let [which, trace @ ..] = input else { return };
    read(trace, FORMATS[usize::from(*which) % FORMATS.len()]);
}

/// Formats of records. The first byte says which; versions and byte orders are in the trace.
pub fn trace_binary(input: &[u8]) {
    let [which, trace @ ..] = input else { return };
    read(trace, [Format::Blktrace, Format::Vscsi, Format::OracleGeneral][usize::from(*which) % 3]);
}

fn read(trace: &[u8], format: Format) {
    let options = ReadOptions { format: Some(format), malformed_permille_max: 1000, ..ReadOptions::default() };
    if let Ok(reader) = TraceReader::from_stream(Cursor::new(trace.to_vec()), "fuzz", options) {
        read_all(reader, 10_000);
    }
}

/// Reads so many records, as a few packed bytes can hold very many: they are in order, and none is behind the end of all disks.
fn read_all(reader: TraceReader, most: usize) {
    let mut last = Nanos::ZERO;
    for record in reader.take(most).flatten() {
        assert!(last <= record.at);
        assert!(record.offset_bytes.checked_add(u64::from(record.length_bytes)).is_some());
        last = record.at;
    }
}

/// A trace of which nothing is known: how it is packed, and what format it has.
pub fn trace_detect(trace: &[u8]) {
    if let Ok(reader) = TraceReader::from_stream(Cursor::new(trace.to_vec()), "fuzz", ReadOptions::default()) {
        read_all(reader, 10_000);
    }
}

/// The native form. The Parquet library panics on some damaged files, which the reader contains; so panics print and abort
/// nothing here, and only one that comes out of the reader is a finding, which the driver catches.
pub fn trace_native(trace: &[u8]) {
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if let Ok(reader) = TraceReader::from_native_bytes(trace.to_vec(), "fuzz", ReadOptions::default()) {
        read_all(reader, 100_000);
    }
}
