//! Minerva's native form: Parquet with zstd, sorted by time, one row a request, about a million rows a group.
//!
//! | column | type | encoding |
//! |---|---|---|
//! | `t_ns` | INT64: since the trace's first request, in a slice since the slice's start | delta |
//! | `vol` | INT32, unsigned | dictionary |
//! | `op` | INT32: 0 read, 1 write, 2 flush, 3 discard | dictionary |
//! | `off` | INT64, unsigned: bytes | plain |
//! | `len` | INT32, unsigned: bytes | dictionary |
//! | `lat_ns` | INT64, optional | delta |
//!
//! The file's metadata has `minerva.trace.version` (1), and `minerva.trace.volumes`, the volumes' names by number, one a
//! line, where the trace has names.

pub(super) mod reader;
mod source;
pub(super) mod writer;

use minerva_blocksched::Kind;

/// The version of this form.
const VERSION: &str = "1";
const VERSION_KEY: &str = "minerva.trace.version";
const VOLUMES_KEY: &str = "minerva.trace.volumes";

/// The schema as Parquet writes it; the columns' order is that of the readers and writers.
const SCHEMA: &str = "message trace {
    required int64 t_ns;
    required int32 vol (INTEGER(32, false));
    required int32 op (INTEGER(8, false));
    required int64 off (INTEGER(64, false));
    required int32 len (INTEGER(32, false));
    optional int64 lat_ns;
}";

const fn kind_number(kind: Kind) -> i32 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Flush => 2,
        Kind::Discard => 3,
    }
}

const fn kind_of(number: i32) -> Option<Kind> {
    match number {
        0 => Some(Kind::Read),
        1 => Some(Kind::Write),
        2 => Some(Kind::Flush),
        3 => Some(Kind::Discard),
        _ => None,
    }
}
