//! How long to wait before the next try.

use std::time::Duration;

/// The first wait, before the jitter.
const FIRST: Duration = Duration::from_millis(100);
/// A try that would have less than one part in so many of the patience is none.
const LAST_PART: u32 = 20;
/// No wait is longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double from try to try. The jitter keeps the clients of a server that comes back from asking all at once.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// The first wait is next.
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// After something worked: the next wait is the first again.
    pub const fn reset(&mut self) {
        self.next = FIRST;
    }

    /// The next wait; no shorter than the server asked for. `fraction` is random, from 0 to 1.
    pub fn after(&mut self, asked: Option<Duration>, fraction: f64) -> Duration {
        let base = self.next;
        self.next = (base * 2).min(LONGEST);
        let jittered = base.mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0);
        // What the server asked for is not jittered downwards: it would refuse again.
        asked.map_or(jittered, |asked| asked.max(jittered))
    }

    /// The next wait of who has so much left of a patience; nothing when that is too little for another try. The last waits are shorter, so
    /// that a server that is back by then is asked in time.
    pub fn within(
        &mut self,
        left: Duration,
        patience: Duration,
        asked: Option<Duration>,
        fraction: f64,
    ) -> Option<Duration> {
        let wait = self.after(asked, fraction).min(left / 2).max(asked.unwrap_or_default());
        // A try takes some time itself.
        let is_worth_it = !left.is_zero() && left.saturating_sub(wait) >= patience / LAST_PART;
        is_worth_it.then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;
    use std::time::Duration;

    #[test]
    fn waits_double_up_to_five_seconds_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new();
        let waits: Vec<u128> = (0..8).map(|_| backoff.after(None, 1.0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.after(None, 0.0), Duration::from_millis(50));
    }

    #[test]
    fn who_has_some_time_tries_until_it_is_over_and_not_without_end() {
        let patience = Duration::from_secs(10);
        for fraction in [0.0, 0.5, 1.0] {
            let (mut backoff, mut passed, mut tries) = (Backoff::new(), Duration::ZERO, 1);
            while let Some(wait) = backoff.within(patience - passed, patience, None, fraction) {
                passed += wait;
                tries += 1;
            }
            assert!(passed > patience / 10 * 9, "{passed:?}");
            assert!(tries < 20, "{tries}");
        }
        let second = Duration::from_secs(1);
        let asked = |asked| Backoff::new().within(second, second, Some(asked), 1.0);
        assert_eq!(asked(second), None, "it would be refused again");
        assert_eq!(asked(second / 2), Some(second / 2));
        assert_eq!(Backoff::new().within(Duration::ZERO, Duration::ZERO, None, 1.0), None);
    }

    #[test]
    fn the_server_may_ask_for_more() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.after(Some(Duration::from_secs(2)), 0.3), Duration::from_secs(2));
    }
}
