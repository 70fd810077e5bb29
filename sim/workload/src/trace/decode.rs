//! What every format offers to the reader above it.

use super::record::{Found, Position};

/// A format at work on a stream.
pub(super) trait Decode: Send {
    /// What comes next; nothing at the end.
    fn next(&mut self) -> std::io::Result<Option<Found>>;

    /// Where the last entry was.
    fn position(&self) -> Position;

    /// What the trace calls its volumes, by number, if it has names.
    fn volume_names(&self) -> &[String] {
        &[]
    }
}
