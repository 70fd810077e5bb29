//! How long an account's coordinated operations may go ahead of others (docs/adr/0006): an allowance that each slice of such
//! precedence takes from, and that time gives back. Precedence that costs nobody anything costs nothing.

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What accounts have left. One that is not here has all of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PrecedenceTime {
    whole: Nanos,
    window: Nanos,
    left: BTreeMap<String, Left>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Left {
    left: Nanos,
    at: Nanos,
}

impl PrecedenceTime {
    /// `whole` can be used up at once, and is given back within `window`.
    pub(crate) fn configure(&mut self, whole: Nanos, window: Nanos) {
        self.whole = whole;
        self.window = window;
    }

    /// What an account has left.
    pub(crate) fn left(&self, now: Nanos, account: &str) -> Nanos {
        self.left.get(account).map_or(self.whole, |one| self.given_back(now, *one))
    }

    /// An account had precedence for this long.
    pub(crate) fn take(&mut self, now: Nanos, account: &str, length: Nanos) {
        let left = self.left(now, account) - length;
        self.left.insert(account.to_owned(), Left { left, at: now });
    }

    /// Accounts that have everything again need not be remembered.
    pub(crate) fn forget_whole(&mut self, now: Nanos) {
        let mut left = std::mem::take(&mut self.left);
        left.retain(|_, one| self.given_back(now, *one) < self.whole);
        self.left = left;
    }

    fn given_back(&self, now: Nanos, one: Left) -> Nanos {
        let back = u128::from(now.since(one.at).0) * u128::from(self.whole.0) / u128::from(self.window.0.max(1));
        (one.left + Nanos(u64::try_from(back).unwrap_or(u64::MAX))).min(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::PrecedenceTime;
    use minerva_model::Nanos;

    #[test]
    fn before_it_is_configured_nobody_has_precedence_and_nothing_breaks() {
        let mut time = PrecedenceTime::default();
        time.take(Nanos(1), "a", Nanos(7));
        assert_eq!(time.left(Nanos(9), "a"), Nanos::ZERO);
    }

    #[test]
    fn what_is_used_up_comes_back_within_the_window_and_no_more_of_it() {
        let mut time = PrecedenceTime::default();
        time.configure(Nanos::from_secs(60), Nanos::from_secs(600));
        let second = Nanos::from_secs;
        assert_eq!(time.left(second(5), "a"), second(60));
        for now in 1..=100 {
            time.take(second(now), "a", Nanos::SECOND);
        }
        // A second used, and a tenth given back: the 60 last for 66.
        assert_eq!((time.left(second(100), "a"), time.left(second(110), "a")), (Nanos::ZERO, Nanos::SECOND));
        assert_eq!(time.left(second(100), "b"), second(60), "another account has its own");
        time.forget_whole(second(699));
        assert_eq!(time.left.len(), 1);
        time.forget_whole(second(700));
        assert!(time.left.is_empty());
        // A leap of the clock gives the whole and no more; one back gives nothing.
        time.take(second(1_000), "a", second(10));
        assert_eq!(time.left(Nanos(u64::MAX), "a"), second(60));
        assert_eq!(time.left(Nanos::ZERO, "a"), second(50));
    }
}
