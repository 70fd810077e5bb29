//! How a trace is replayed, and what came of it.

use super::error::TraceError;
use super::record::{Faults, Position};
use std::sync::Arc;

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At the trace's instants, whatever completes, `speed` times as fast.
    Open {
        /// Above 0; 1 is as it was taken.
        speed: f64,
    },
    /// As fast as possible with up to so many outstanding.
    Closed {
        /// Outstanding at most.
        depth: u32,
    },
}

/// What to do with addresses that the disk does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Stop with an error.
    #[default]
    Refuse,
    /// Fold them onto the disk: neighbours stay neighbours, and requests keep their alignment to 512 bytes.
    Fold,
}

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayOptions {
    /// When requests are made.
    pub pace: Pace,
    /// Only this volume; absent: all of them, at their own addresses on the one disk.
    pub volume: Option<u32>,
    /// The disk's size.
    pub capacity_bytes: u64,
    /// What to do with addresses past it.
    pub addresses: Addresses,
    /// The process waits for its writes. A trace does not say; one that was taken below a page cache holds both sorts.
    pub sync_writes: bool,
}

/// What a replay has done so far.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Requests made.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests whose address was folded.
    pub folded: u64,
    /// Where the first of them are, at most [`Faults::EXAMPLES_MAX`].
    pub folded_at: Vec<Position>,
    /// What was wrong with the trace.
    pub faults: Faults,
    /// The whole trace was made.
    pub completed: bool,
    /// Why it stopped before its end.
    pub error: Option<Arc<TraceError>>,
}
