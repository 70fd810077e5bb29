//! Requests that passed the service: how many, how long each took, and how many failed for a reason that is not the program's.

use crate::file_system::Result;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Upper bounds of the buckets in nanoseconds, each four times the one before; what takes longer has a bucket of its own.
pub const LATENCY_BOUNDS_NS: [u64; 10] = {
    let mut bounds = [16_384; 10];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 4;
        at += 1;
    }
    bounds
};

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Data are read through the service.
    Read,
    /// Data are written.
    Write,
    /// Data or names are made durable, by `fsync` or `close`.
    Sync,
    /// Names and attributes.
    Metadata,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::Metadata];

    /// As people write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Metadata => "metadata",
        }
    }
}

/// What is known of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFigures {
    /// How many took at most [`LATENCY_BOUNDS_NS`] and more than the bound before; at last those that took longer than all.
    pub counts: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// What all took together, in nanoseconds.
    pub total_ns: u64,
    /// Those that failed because the disk or memory did.
    pub failures: u64,
}

/// Counts of one kind. An atomic each, so that requests of a tree do not wait for each other here.
#[derive(Debug, Default)]
struct Counts {
    counts: [AtomicU64; LATENCY_BOUNDS_NS.len() + 1],
    total_ns: AtomicU64,
    failures: AtomicU64,
}

/// Counts of all kinds.
#[derive(Debug, Default)]
pub struct RequestCounters {
    kinds: [Counts; Operation::ALL.len()],
}

impl RequestCounters {
    /// Does it, and counts it.
    pub(crate) fn time<T>(&self, operation: Operation, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = work();
        self.note(operation, begun.elapsed(), done.as_ref().err().copied());
        done
    }

    fn note(&self, operation: Operation, took: Duration, error: Option<Errno>) {
        let counts = &self.kinds[operation as usize];
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS_NS.partition_point(|bound| *bound < took_ns);
        counts.counts[bucket].fetch_add(1, Ordering::Relaxed);
        counts.total_ns.fetch_add(took_ns, Ordering::Relaxed);
        counts.failures.fetch_add(u64::from(error.is_some_and(is_failure)), Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn figures(&self, operation: Operation) -> RequestFigures {
        let counts = &self.kinds[operation as usize];
        RequestFigures {
            counts: std::array::from_fn(|bucket| counts.counts[bucket].load(Ordering::Relaxed)),
            total_ns: counts.total_ns.load(Ordering::Relaxed),
            failures: counts.failures.load(Ordering::Relaxed),
        }
    }
}

/// Whether the machine failed and not the program. A full pool is counted by the quota.
fn is_failure(error: Errno) -> bool {
    matches!(error, Errno::IO | Errno::ROFS | Errno::NODEV | Errno::NXIO | Errno::UCLEAN | Errno::NOMEM | Errno::MFILE)
}

#[cfg(test)]
mod tests {
    use super::{LATENCY_BOUNDS_NS, Operation, RequestCounters, RequestFigures};
    use rustix::io::Errno;
    use std::time::Duration;

    #[test]
    fn each_request_is_in_the_bucket_of_its_time_and_a_failure_of_the_machine_is_counted() {
        let counters = RequestCounters::default();
        let last = LATENCY_BOUNDS_NS.len();
        for (took_ns, error, bucket) in [
            (0, None, 0),
            (16_384, Some(Errno::NOENT), 0),
            (16_385, Some(Errno::IO), 1),
            (LATENCY_BOUNDS_NS[last - 1], None, last - 1),
            (u64::from(u32::MAX) * 10, Some(Errno::ROFS), last),
        ] {
            let before = counters.figures(Operation::Write);
            counters.note(Operation::Write, Duration::from_nanos(took_ns), error);
            let after = counters.figures(Operation::Write);
            assert_eq!(after.counts[bucket], before.counts[bucket] + 1, "{took_ns}");
            assert_eq!(after.total_ns, before.total_ns + took_ns);
        }
        assert_eq!(counters.figures(Operation::Write).failures, 2);
        assert_eq!(counters.figures(Operation::Read), RequestFigures::default());
    }
}
