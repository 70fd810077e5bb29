//! How long a worker looks for more before it sleeps: to fall asleep and to be woken costs more than many a request takes.
//!
//! The rule is that of Linux's KVM (Documentation/virt/kvm/halt-polling.rst): twice as long where the last wait ended a little too
//! late to be caught, and not at all where it was much longer than polling may last. So whoever is idle, or waits for a disk that
//! seeks, polls never.
//!
//! A wait that was slept through is longer than it needed to be: falling asleep, being kicked and waking up take as long as many a guest
//! takes to ask again. Therefore up to twice the time that polling may last is no reason to give it up. Otherwise whoever once slept would
//! sleep again and again beside a guest for which a poll half as long would do.

use minerva_model::Nanos;

/// What a first try is worth.
const POLL_FIRST: Nanos = Nanos(4_000);

/// How long it is worth to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polling {
    time: Nanos,
    most: Nanos,
}

impl Polling {
    /// At most so long before each sleep; 0 for never.
    pub(super) fn new(most: Nanos) -> Self {
        Self { time: Nanos::ZERO, most }
    }

    /// How long to look before the next sleep.
    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    /// A wait, of looking and of sleep, was so long.
    pub(super) fn waited(&mut self, wait: Nanos) {
        if wait.0 / 2 > self.most.0 {
            self.time = Nanos::ZERO;
        } else if wait > self.time {
            self.time = Nanos(self.time.0 * 2).max(POLL_FIRST).min(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Polling;
    use minerva_model::Nanos;

    #[test]
    fn polling_grows_while_it_would_have_caught_the_wait_and_ends_with_a_longer_one() {
        let mut polling = Polling::new(Nanos::from_micros(32));
        assert_eq!(polling.time(), Nanos::ZERO, "nothing is known yet");
        let mut times = Vec::new();
        for wait_us in [20, 20, 20, 20, 20, 30, 64, 66, 1000, 10] {
            polling.waited(Nanos::from_micros(wait_us));
            times.push(polling.time().0 / 1000);
        }
        assert_eq!(times, [4, 8, 16, 32, 32, 32, 32, 0, 0, 4]);
    }

    #[test]
    fn who_slept_polls_again_beside_a_guest_that_asks_soon_though_to_wake_up_took_longer() {
        let mut polling = Polling::new(Nanos::from_micros(32));
        polling.waited(Nanos::from_micros(1000));
        (0..4).for_each(|_| polling.waited(Nanos::from_micros(50)));
        assert_eq!(polling.time(), Nanos::from_micros(32));
    }

    #[test]
    fn where_it_is_switched_off_nobody_polls() {
        let mut polling = Polling::new(Nanos::ZERO);
        for wait_ns in [0, 1, 5_000, 1_000_000] {
            polling.waited(Nanos(wait_ns));
            assert_eq!(polling.time(), Nanos::ZERO);
        }
    }
}
