//! The clocks, and what the slice loop makes of them.

use minerva_model::Nanos;
use std::time::Duration;

pub(crate) use minerva_clock::{boottime, unix_ns};

/// What clocks in the host's time zone show, as seconds since 1970 there: work is often started by them.
pub(crate) fn local_seconds() -> Option<u64> {
    let now = jiff::Zoned::now();
    u64::try_from(now.timestamp().as_second() + i64::from(now.offset().seconds())).ok()
}

/// The time from now until `instant`; zero when it has passed.
pub(crate) fn until(instant: Nanos) -> Duration {
    Duration::from_nanos(instant.since(boottime()).0)
}
