//! The clocks, and what the slice loop makes of them.

use minerva_model::Nanos;
use std::time::Duration;

pub(crate) use minerva_clock::{boottime, unix_ns};

/// What clocks in the host's time zone show, as seconds since 1970 there: work is often started by them.
pub(crate) fn local_seconds() -> Option<u64> {
    let now = jiff::Zoned::now();
    u64::try_from(now.timestamp().as_second() + i64::from(now.offset().seconds())).ok()
}

/// The longest wait at once. Waiting does not count the time for which the machine sleeps, and leases do: after it the guard gives
/// the loop ten seconds to renew its lease.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long to wait before looking at the clock again: until `instant`, zero when it has passed, and five seconds at most.
pub(crate) fn wait_until(instant: Nanos) -> Duration {
    Duration::from_nanos(instant.since(boottime()).0).min(WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::{boottime, wait_until};
    use minerva_linux_actuate::WriterSettings;
    use minerva_model::Nanos;
    use std::time::Duration;

    #[test]
    fn after_a_sleep_of_the_machine_the_loop_looks_at_the_clock_before_the_guard_acts() {
        let grace = WriterSettings::new("/run/minerva", "/sys/fs/cgroup").lease_grace;
        let wait = wait_until(boottime() + Nanos::from_secs(60));
        assert!(wait <= Duration::from_nanos(grace.0 / 2), "{wait:?}");
        assert_eq!(wait_until(Nanos::ZERO), Duration::ZERO);
    }
}
