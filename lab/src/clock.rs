//! The laboratory's clock: `CLOCK_BOOTTIME`, the same that the daemon steers by, so that instants of both can be compared.

use minerva_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds since boot.
pub fn boottime() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    // Both parts are never negative on this clock.
    Nanos((now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64))
}
