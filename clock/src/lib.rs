//! The two clocks: the one that decisions are made and limits are kept by, and the one that certificates and people go by.

use minerva_model::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since boot, suspended time included. A wall clock that jumps does not move it.
pub fn boottime() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    Nanos(
        u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000) + u64::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Wall-clock time in nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
