//! An operation that should fit in with what others do, and the server's answers to it.

use crate::cache::Pool;
use crate::level::UnknownWord;
use crate::working_device::{self, DiskLooks};
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline as WireDeadline;
use minerva_api::v1::coordinate_response::Answer as WireAnswer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// What an operation mostly does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads of neighbouring blocks.
    #[default]
    SequentialRead,
    /// Writes of neighbouring blocks.
    SequentialWrite,
    /// Small reads all over.
    RandomRead,
    /// Small writes all over.
    RandomWrite,
}

impl Access {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::SequentialRead, Self::SequentialWrite, Self::RandomRead, Self::RandomWrite];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SequentialRead => "sequential-read",
            Self::SequentialWrite => "sequential-write",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
        }
    }

    /// As the contract numbers it.
    pub const fn to_wire(self) -> i32 {
        match self {
            Self::SequentialRead => v1::Access::SequentialRead as i32,
            Self::SequentialWrite => v1::Access::SequentialWrite as i32,
            Self::RandomRead => v1::Access::RandomRead as i32,
            Self::RandomWrite => v1::Access::RandomWrite as i32,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Access {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let words = Self::ALL.map(Self::as_str);
        Self::ALL.into_iter().find(|access| access.as_str() == text).ok_or_else(|| UnknownWord::new(text, &words))
    }
}

/// Until when an operation can wait, counted from when it is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// It must have begun within so long.
    Begin(Duration),
    /// It should be done within so long: it is held no longer than that less the time that it will take.
    Done(Duration),
}

impl Deadline {
    /// The span.
    pub const fn span(self) -> Duration {
        match self {
            Self::Begin(span) | Self::Done(span) => span,
        }
    }
}

/// An operation that should fit in with what others do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// How much it will move.
    pub bytes: u64,
    /// What it mostly does.
    pub access: Access,
    /// Until when it can wait; absent: as long as the operator lets an operation wait.
    pub deadline: Option<Deadline>,
    /// On which disk, as `MAJ:MIN` of the host; absent: the one below `path`, else the disk that the tenant uses most.
    pub device: Option<String>,
    /// What it will read or write, or something beside it; absent: the working directory.
    pub path: Option<PathBuf>,
    /// Of one that writes: it may go to this pool in place of its disk where others use that.
    pub pool: Option<Pool>,
    /// Where the pool's service listens; absent: where it listens by default.
    pub cache_socket: Option<PathBuf>,
}

impl Operation {
    /// A sequential read of so much, that can wait as long as the operator lets an operation wait.
    pub fn of_bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// It must have begun within so long.
    #[must_use]
    pub fn begin_within(self, span: Duration) -> Self {
        Self { deadline: Some(Deadline::Begin(span)), ..self }
    }

    /// It should be done within so long.
    #[must_use]
    pub fn done_within(self, span: Duration) -> Self {
        Self { deadline: Some(Deadline::Done(span)), ..self }
    }

    /// What it mostly does.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// On which disk, as `MAJ:MIN` of the host.
    #[must_use]
    pub fn device(self, device: impl Into<String>) -> Self {
        Self { device: Some(device.into()), ..self }
    }

    /// What it will read or write, or something beside it: it tells which disk is meant.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// It may go to this pool in place of its disk, where others use that: then the answer is [`Answer::Pool`], and
    /// [`crate::Coordinated::create`] makes the file there. For operations that write.
    #[must_use]
    pub fn or_pool(self, pool: Pool) -> Self {
        Self { pool: Some(pool), ..self }
    }

    /// Asks the pool's service at this socket.
    #[must_use]
    pub fn cache_socket(self, socket: impl Into<PathBuf>) -> Self {
        Self { cache_socket: Some(socket.into()), ..self }
    }

    /// As it is asked about, with what the pool said of itself.
    pub(crate) fn request(&self, key: &str, pool: Option<v1::PoolOffer>) -> v1::CoordinateRequest {
        let path = self.path.as_deref().unwrap_or(Path::new("."));
        // It is only a hint, so a path that cannot be looked at is none.
        let working_device = || working_device::of_path(path).ok().flatten().unwrap_or_default();
        let working_device = if self.device.is_some() { String::new() } else { working_device() };
        let looks = DiskLooks::of(&working_device).unwrap_or_default();
        v1::CoordinateRequest {
            working_device,
            working_disk_size_bytes: looks.size_bytes,
            working_disk_serial: looks.serial,
            request_id: key.to_owned(),
            size_bytes: self.bytes,
            access: self.access.to_wire(),
            deadline: self.deadline.map(|deadline| match deadline {
                Deadline::Begin(span) => WireDeadline::BeginWithinNs(nanoseconds(span)),
                Deadline::Done(span) => WireDeadline::DoneWithinNs(nanoseconds(span)),
            }),
            device: self.device.clone().unwrap_or_default(),
            pool,
        }
    }
}

/// The same question some time later: its deadline is nearer. For agents, which ask for others.
pub fn asked_ago(request: &v1::CoordinateRequest, passed: Duration) -> v1::CoordinateRequest {
    // A span of 0 would be refused as one that has passed, and so it is in the first question.
    let left = |span_ns: u64| span_ns.saturating_sub(nanoseconds(passed)).max(1).min(span_ns);
    let deadline = request.deadline.map(|deadline| match deadline {
        WireDeadline::BeginWithinNs(span) => WireDeadline::BeginWithinNs(left(span)),
        WireDeadline::DoneWithinNs(span) => WireDeadline::DoneWithinNs(left(span)),
    });
    v1::CoordinateRequest { deadline, ..request.clone() }
}

/// What the server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Begin.
    Now,
    /// It may begin after so many slices.
    After {
        /// How many.
        slices: u32,
        /// How long one is.
        slice: Duration,
    },
    /// Write to the pool that the operation may go to, at once.
    Pool,
    /// Wait to be told.
    Wait {
        /// Not longer than this, counted from the answer.
        at_most: Option<Duration>,
    },
}

impl Answer {
    /// From the wire. An answer that only a newer server knows is one to wait.
    pub(crate) fn of_response(response: &v1::CoordinateResponse) -> Self {
        match &response.answer {
            Some(WireAnswer::BeginNow(_)) => Self::Now,
            Some(WireAnswer::WriteToPool(_)) => Self::Pool,
            Some(WireAnswer::BeginAfter(after)) => {
                Self::After { slices: after.slices, slice: Duration::from_nanos(after.slice_ns) }
            }
            Some(WireAnswer::Wait(wait)) => Self::Wait { at_most: wait.at_most_ns.map(Duration::from_nanos) },
            None => Self::Wait { at_most: None },
        }
    }

    /// How long it is kept waiting at most, from the answer on. One slice more than it was told to wait, so that the server,
    /// which counts whole slices, is heard before this side begins on its own.
    pub(crate) fn promise(self) -> Option<Duration> {
        match self {
            Self::Now | Self::Pool => Some(Duration::ZERO),
            Self::After { slices, slice } => Some(slice.saturating_mul(slices.saturating_add(1))),
            Self::Wait { at_most } => at_most,
        }
    }
}

/// Saturates after 584 years.
pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Access, Answer, Operation, WireDeadline, asked_ago};
    use std::time::Duration;

    #[test]
    fn an_operation_is_asked_about_in_the_units_of_the_contract() {
        let operation = Operation::of_bytes(500).access(Access::RandomWrite).done_within(Duration::from_secs(2));
        let request = operation.device("8:0").request("key", None);
        assert_eq!((request.size_bytes, request.device.as_str(), request.request_id.as_str()), (500, "8:0", "key"));
        assert_eq!(request.deadline, Some(WireDeadline::DoneWithinNs(2_000_000_000)));
        assert_eq!(request.access, 4);
    }

    #[test]
    fn a_deadline_is_nearer_later_and_never_passed() {
        let second = Duration::from_secs(1);
        let bound = |operation: Operation| asked_ago(&operation.request("key", None), second).deadline;
        let operation = Operation::of_bytes(500);
        assert_eq!(bound(operation.clone()), None);
        assert_eq!(bound(operation.clone().done_within(3 * second)), Some(WireDeadline::DoneWithinNs(2_000_000_000)));
        assert_eq!(bound(operation.clone().begin_within(second)), Some(WireDeadline::BeginWithinNs(1)));
        assert_eq!(bound(operation.begin_within(Duration::ZERO)), Some(WireDeadline::BeginWithinNs(0)), "a mistake");
    }

    #[test]
    fn an_answer_promises_no_more_than_it_says() {
        let slice = Duration::from_secs(1);
        assert_eq!(Answer::After { slices: 3, slice }.promise(), Some(Duration::from_secs(4)));
        assert_eq!(Answer::Wait { at_most: None }.promise(), None);
    }
}
