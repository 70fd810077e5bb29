//! The two clocks of the daemon: the one that decisions are made by, and the one that people read.

use minerva_model::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since boot, suspended time included. A wall clock that jumps does not move it.
pub(crate) fn boottime() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    Nanos(
        u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Wall-clock time in nanoseconds since 1970, for people and for the audit table.
pub(crate) fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// What clocks in the host's time zone show, as seconds since 1970 there: work is often started by them.
pub(crate) fn local_seconds() -> Option<u64> {
    let now = jiff::Zoned::now();
    u64::try_from(now.timestamp().as_second() + i64::from(now.offset().seconds())).ok()
}

/// The time from now until `instant`; zero when it has passed.
pub(crate) fn until(instant: Nanos) -> Duration {
    Duration::from_nanos(instant.since(boottime()).0)
}
