//! A request to a disk, and what it costs.

use crate::FlowId;
use minerva_model::Nanos;

/// A caller's number for a request, unique among those queued or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Make what was written durable.
    Flush,
    /// Forget a range.
    Discard,
}

/// One request. Small and `Copy`, so that queues hold it by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number.
    pub id: RequestId,
    /// Whose it is.
    pub flow: FlowId,
    /// What is to be done.
    pub kind: Kind,
    /// Somebody waits for it: reads, and writes that are synced.
    pub sync: bool,
    /// The guest application's priority, 1 to 254, if it was given (Bai and Huang).
    pub tag: Option<u8>,
    /// First byte.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub length_bytes: u32,
    /// When it was queued.
    pub arrived: Nanos,
}

impl Request {
    /// The first byte after it.
    pub const fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes as u64)
    }

    /// Whether the disk moves data for it, and has to be where the data is: not for a flush or a discard.
    pub const fn moves_data(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Write)
    }
}

/// How a request is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Each the same, whatever its size.
    PerRequest,
    /// By size, in units of this many bytes, rounded up, at least one unit; one for a discard, which moves no bytes.
    PerBytes(u32),
}

impl Cost {
    /// What `request` costs, in units.
    pub const fn of(self, request: &Request) -> u64 {
        match self {
            Self::PerRequest => 1,
            Self::PerBytes(_) if matches!(request.kind, Kind::Discard) => 1,
            Self::PerBytes(unit) => {
                let unit = if unit == 0 { 1 } else { unit };
                let units = request.length_bytes.div_ceil(unit);
                if units == 0 { 1 } else { units as u64 }
            }
        }
    }
}
