//! Who is on a disk: a tenant that is due little has nothing for some slices, and is there all the same.
//!
//! An elevator serves tenants in turns. One that has a part of all weights waits from one turn to the next for the length of a turn
//! divided by that part, and in slices that are shorter than that it transfers nothing though it has requests outstanding. So who used
//! the disk no longer ago than that may be waiting, and counts as present. Who has most of the weights is gone as soon as it is
//! silent.
//!
//! Nothing that kernels tell says it better on every host: requests queued by group are in debugging kernels only, pressure is not
//! there on v1, and time waited is accounted when a request ends (docs/adr/0035).

use minerva_model::{Nanos, Share};
use serde::{Deserialize, Serialize};

/// Who did not use the disk for so long has paused, whatever it is due: what it does next is new. The same time ends a session in
/// `core/forecast`.
pub(crate) const PAUSE: Nanos = Nanos::from_secs(10);
/// For so long one is served before the next is, at most: BFQ's `timeout_sync` (`Documentation/block/bfq-iosched.rst`). Twice as long, and
/// who goes first would keep its stake for a slice of a quarter of a second after its end.
pub(crate) const TURN_NS: u64 = 125_000_000;

/// The shares of those who used one disk lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    shares: u64,
}

impl Presence {
    /// Of the shares in force of all who used the disk less than [`PAUSE`] ago.
    pub(crate) fn of(shares: impl Iterator<Item = Share>) -> Self {
        Self { shares: shares.map(|share| u64::from(share.get())).sum() }
    }

    /// Whether one that has `share` and was served last so long ago may be waiting.
    pub(crate) fn may_wait(self, share: Share, silent: Nanos) -> bool {
        let wait = TURN_NS.saturating_mul(self.shares) / u64::from(share.get());
        silent < Nanos(wait).min(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::Presence;
    use minerva_model::{Nanos, Share};

    #[test]
    fn who_is_due_little_may_wait_for_long_and_who_is_due_most_for_no_time() {
        let presence = Presence::of([100, 10, 5, 5].map(Share::new).into_iter());
        // (share, milliseconds of silence, whether it may be waiting)
        let table = [
            (100, 0, true),
            (100, 250, false),
            (10, 1_400, true),
            (10, 1_500, false),
            (5, 2_900, true),
            (5, 3_000, false),
            (1, 9_900, true),
            (1, 10_000, false),
        ];
        for (share, milliseconds, expected) in table {
            let silent = Nanos::from_millis(milliseconds);
            assert_eq!(presence.may_wait(Share::new(share), silent), expected, "{share} after {milliseconds} ms");
        }
        let alone = Presence::of(std::iter::once(Share::NEUTRAL));
        assert!(!alone.may_wait(Share::NEUTRAL, Nanos::from_millis(250)), "nobody else is served");
    }
}
