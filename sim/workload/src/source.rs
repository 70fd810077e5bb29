//! What a process does next.

use minerva_blocksched::Kind;
use minerva_model::Nanos;

/// One request as a process makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// What is to be done.
    pub kind: Kind,
    /// The process waits for it.
    pub sync: bool,
    /// The priority that the application gave it, 1 to 254.
    pub tag: Option<u8>,
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub length_bytes: u32,
}

/// A process's next move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes this request now.
    Issue(IoRequest),
    /// Does something else until this instant, then is asked again.
    At(Nanos),
    /// Waits for one of its requests.
    Blocked,
    /// Has ended.
    Finished,
}

/// A process, seen from the disk. Asked for its next move at its start, after each request it made, at the instants it
/// named and after each completion.
pub trait Source: Send {
    /// What it does at `now`.
    fn next(&mut self, now: Nanos) -> Step;

    /// One of its requests has completed.
    fn completed(&mut self, now: Nanos, request: &IoRequest);
}
