//! What several parts of the server hold clients to.

use minerva_model::Nanos;

/// What a tenant says is small; more is refused before it is read.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// A report names files.
pub(crate) const REPORT_BYTES_MAX: usize = 256 << 10;
/// How long an answer may take. Those of the engine come at once; a purchase waits for the store's disk.
pub(crate) const ANSWER_WAIT_MAX: Nanos = Nanos::from_secs(5);
/// A request has to arrive and be answered within this.
pub(crate) const REQUEST_WAIT_MAX: Nanos = Nanos(2 * ANSWER_WAIT_MAX.0);
