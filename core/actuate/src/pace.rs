//! How fast a tenant that is held back may go: so many requests a second of the size that it has.
//!
//! None waits for ever: while nothing is completed the cap doubles, so that a request much larger than those before is done within a
//! minute or so.

use minerva_model::{IoSignals, Nanos};
use serde::{Deserialize, Serialize};

/// The least distance of the requests of a capped tenant is never more than this.
pub(crate) const SECONDS_A_REQUEST: u64 = 4;
/// Who is held back may go at least this fast, in bytes a second: one request of 4 KiB in [`SECONDS_A_REQUEST`].
pub(crate) const PACE_BYTES_MIN: u64 = 1 << 10;
/// Nothing is known of the tenant's requests yet.
const CAP_BYTES_FIRST: u64 = 16 << 10;
/// Without a completed request for so long a capped tenant gets twice as much, up to one of 1 MiB, which is about as large as they come.
const PATIENCE: Nanos = Nanos::from_secs(8);
const CAP_BYTES_PATIENT: u64 = 256 << 10;

/// A tenant that is held back, or may be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// Its cap when it has one, in bytes a second each way.
    bytes_per_second: u64,
    /// When it last completed a request, was capped or got twice as much.
    served_at: Nanos,
    capped: bool,
}

impl Pace {
    /// Not capped, and nothing is known of it.
    pub(crate) const fn new(now: Nanos) -> Self {
        Self { bytes_per_second: CAP_BYTES_FIRST, served_at: now, capped: false }
    }

    /// A slice ended in which it used the disk as `row` says. In the next it is held back or not; `cap` says to how many bytes a second
    /// by the size of its requests.
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        row: Option<&IoSignals>,
        holds_back: bool,
        cap: impl FnOnce(u64) -> u64,
    ) {
        let began = holds_back && !self.capped;
        self.capped = holds_back;
        match row.map(|row| row.transferred).filter(|done| done.ops() > 0) {
            Some(done) => {
                let cap = cap(done.bytes() / done.ops());
                // What is about as much is not written anew.
                if cap.abs_diff(self.bytes_per_second) > self.bytes_per_second / 4 {
                    self.bytes_per_second = cap;
                }
                self.served_at = now;
            }
            None if began || !self.capped => self.served_at = now,
            None if now.since(self.served_at) >= PATIENCE => {
                if self.bytes_per_second < CAP_BYTES_PATIENT {
                    self.bytes_per_second *= 2;
                }
                self.served_at = now;
            }
            None => {}
        }
    }

    /// It is held back.
    pub(crate) const fn is_capped(&self) -> bool {
        self.capped
    }

    /// What it may read and write in a second; nothing where it is not held back.
    pub(crate) fn cap(&self) -> Option<[u64; 2]> {
        self.capped.then_some([self.bytes_per_second; 2])
    }
}

#[cfg(test)]
mod tests {
    use super::{CAP_BYTES_PATIENT, Pace};
    use crate::idle::of_idle;
    use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, TenantId};

    fn row(ops: u64, size: u64) -> IoSignals {
        IoSignals {
            tenant: TenantId(1),
            device: DeviceId { major: 8, minor: 0 },
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_ops: ops, read_bytes: ops * size, ..IoCounters::default() },
            latency: None,
            active: ops > 0,
            served: None,
            disk_time: Nanos::ZERO,
        }
    }

    /// The caps of each second at level `idle`, given how many requests of which size were completed in it.
    fn caps(seconds: &[(u64, u64)]) -> Vec<u64> {
        let mut pace = Pace::new(Nanos::ZERO);
        let slice = |(second, (ops, size)): (u64, &(u64, u64))| {
            pace.slice(Nanos::from_secs(second), Some(&row(*ops, *size)), true, of_idle);
            pace.cap().map_or(0, |[read, _]| read)
        };
        (1..).zip(seconds).map(slice).collect()
    }

    #[test]
    fn a_cap_is_one_request_in_four_seconds() {
        // Requests, their size, and the cap.
        let table = [
            (1, 512, 1 << 10),
            (1, 4 << 10, 1 << 10),
            (50, 6 << 10, 2 << 10),
            (3, 64 << 10, 16 << 10),
            (9, 256 << 10, 64 << 10),
            (1, 1 << 20, 256 << 10),
            (1, 64 << 20, 256 << 10),
        ];
        for (ops, size, cap) in table {
            assert_eq!(caps(&[(ops, size)]), [cap], "{ops} of {size}");
        }
    }

    #[test]
    fn who_waits_gets_twice_as_much_every_eight_seconds() {
        let waits = [vec![(1, 4 << 10)], vec![(0, 0); 80]].concat();
        let seen = caps(&waits);
        assert_eq!((seen[0], seen[7], seen[8], seen[16]), (1 << 10, 1 << 10, 2 << 10, 4 << 10));
        assert_eq!(seen.last(), Some(&CAP_BYTES_PATIENT));
        // What may pass in all until a request of 1 MiB is done, though those before were of 4 KiB.
        let passed = seen
            .iter()
            .scan(0, |sum, cap| {
                *sum += cap;
                Some(*sum)
            })
            .position(|sum| sum >= 1 << 20);
        assert!(passed.is_some_and(|second| second <= 70), "{passed:?}");
        assert_eq!(caps(&[vec![(1, 4 << 10)], vec![(0, 0); 20], vec![(1, 4 << 10)]].concat()).last(), Some(&(1 << 10)));
    }

    #[test]
    fn what_is_about_as_much_is_not_written_anew() {
        let mut pace = Pace::new(Nanos::ZERO);
        let mut second = 0;
        let mut cap = |bytes: u64| {
            second += 1;
            pace.slice(Nanos::from_secs(second), Some(&row(1, 4096)), true, |_| bytes);
            pace.cap()
        };
        assert_eq!(
            [cap(100_000), cap(120_000), cap(80_000), cap(130_000)],
            [100_000, 100_000, 100_000, 130_000].map(|cap| Some([cap; 2]))
        );
    }
}
