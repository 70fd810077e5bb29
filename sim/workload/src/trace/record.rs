//! One request of a trace, and what was wrong with a trace.

use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::fmt;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was made, since the first request of the trace.
    pub at: Nanos,
    /// What was asked.
    pub kind: Kind,
    /// First byte on its volume.
    pub offset_bytes: u64,
    /// Length; 0 only for a flush.
    pub length_bytes: u32,
    /// Whose: the trace's own number, or where the trace has names the place in [`super::TraceReader::volume_names`].
    pub volume: u32,
    /// How long it took then, where the trace says so.
    pub latency: Option<Nanos>,
}

/// A place in a trace, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// A row of the native form, from 0.
    Row(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A line or record that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where it begins.
    pub position: Position,
    /// Why.
    pub reason: String,
    /// Its beginning, if it is text.
    pub excerpt: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.reason)?;
        if self.excerpt.is_empty() { Ok(()) } else { write!(f, " in `{}`", self.excerpt) }
    }
}

/// A request whose instant does not fit those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Where it begins.
    pub position: Position,
    /// By how much.
    pub by: Nanos,
    /// It is far ahead of the request after it; otherwise it is earlier than the one before it.
    pub ahead: bool,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.ahead { "later than the request after it" } else { "earlier than the one before it" };
        write!(f, "{}: {} {direction}", self.position, self.by)
    }
}

/// What was wrong with what has been read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lines or records that could not be understood. They are left out.
    pub malformed: u64,
    /// The first of them, at most [`Faults::EXAMPLES_MAX`].
    pub examples: Vec<Malformed>,
    /// Well-formed entries that are no request or have no answer: SYSTOR's blank type, failed or merged requests.
    pub dropped: u64,
    /// Requests that stood behind later ones, within the sort window, and were put where they belong: no fault.
    pub sorted: u64,
    /// How far back in time the furthest of them was put.
    pub sorted_back_max: Nanos,
    /// Requests further behind a later one than the sort window. They are moved to the instant of the latest before them.
    pub out_of_order: u64,
    /// How far back the worst of those went.
    pub back_max: Nanos,
    /// Requests more than a minute later than both the one before and the one after. They are moved to the instant of the one
    /// before, so that one wrong clock does not move everything after it.
    pub far_ahead: u64,
    /// The first of those out of order or far ahead, at most [`Faults::EXAMPLES_MAX`].
    pub misplaced: Vec<Misplaced>,
}

impl Faults {
    /// So many malformed entries are kept for people to see.
    pub const EXAMPLES_MAX: usize = 5;

    pub(super) fn note_malformed(&mut self, malformed: Malformed) {
        self.malformed += 1;
        if self.examples.len() < Self::EXAMPLES_MAX {
            self.examples.push(malformed);
        }
    }

    pub(super) fn note_misplaced(&mut self, misplaced: Misplaced) {
        if misplaced.ahead {
            self.far_ahead += 1;
        } else {
            self.out_of_order += 1;
            self.back_max = self.back_max.max(misplaced.by);
        }
        if self.misplaced.len() < Self::EXAMPLES_MAX {
            self.misplaced.push(misplaced);
        }
    }
}

/// A request as a format gives it: the instant is on the trace's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) at_ns: u64,
    pub(super) kind: Kind,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u64,
    pub(super) volume: u32,
    pub(super) latency: Option<Nanos>,
}

impl Raw {
    /// Why no disk could have been asked this, if so.
    pub(super) fn objection(&self) -> Option<&'static str> {
        if self.length_bytes == 0 && self.kind != Kind::Flush {
            return Some("a request of no bytes");
        }
        if self.length_bytes > u64::from(u32::MAX) {
            return Some("a request of 4 GiB or more");
        }
        if self.offset_bytes.checked_add(self.length_bytes).is_none() {
            return Some("a request that ends past 2^64 bytes");
        }
        None
    }
}

/// What a format found next.
pub(super) enum Found {
    /// A request.
    Request(Raw),
    /// An entry that is counted and left out.
    Dropped,
    /// An entry that could not be understood.
    Malformed(Malformed),
}
