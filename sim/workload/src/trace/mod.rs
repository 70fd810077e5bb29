//! Block traces: reading those that others published, Minerva's native form, and replaying them.
//!
//! | file | what |
//! |---|---|
//! | `record` | one request, and what was wrong with a trace |
//! | `input` | decompression, found by content |
//! | `format` | which format a trace has |
//! | `lines`, `fields`, `names` | what formats of text share |
//! | `fixed` | what formats of equal records share |
//! | `formats/` | one file a format |
//! | `reader` | time from the first request, order, how much may be malformed |
//! | `native/` | Parquet, read and written |
//! | `sort` | requests put back into the order in which they were made |
//! | `feed` | one trace read for several processes |
//! | `replay` | a process that does what a trace says |
//! | `replay_options` | how a trace is replayed, and what came of it |
//! | `summary` | what a trace holds, in numbers |
//!
//! Memory is constant: buffers, decoders' windows, requests held to be sorted, and one row group of the native form while it is written.

mod decode;
mod error;
mod feed;
mod fields;
mod fixed;
mod format;
mod formats;
mod input;
mod lines;
mod names;
mod native;
mod reader;
mod record;
mod replay;
mod replay_options;
mod slice;
mod sort;
mod summary;
#[cfg(test)]
mod tests;

pub use error::TraceError;
pub use feed::Lane;
pub use format::Format;
pub use input::Compression;
pub use native::reader::guarded_parquet;
pub use native::writer::NativeWriter;
pub use reader::{OutOfOrder, ReadOptions, TraceReader};
pub use record::{Faults, Malformed, Misplaced, Position, Record};
pub use replay::TraceSource;
pub use replay_options::{Addresses, Pace, ReplayOptions, Replayed};
pub use slice::Slice;
pub use summary::{Summary, SummaryBuilder, VolumeSummary};
