//! Short times in which the host does nothing for the disk, because it does something else.
//!
//! They belong to the host's clock and not to the requests: a process that makes ten times as many requests meets a stall with
//! a tenth of them.

use crate::host::Host;
use minerva_model::Nanos;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// Stalls as they come.
pub(crate) struct Stalls {
    host: Host,
    random: Pcg64Mcg,
    /// Start and end of those that are not over, and of one beyond everything that was asked so far.
    windows: VecDeque<(Nanos, Nanos)>,
}

impl Stalls {
    /// As often and as long as they were when `host` was measured.
    pub(crate) fn new(host: Host, seed: u64) -> Self {
        let mut stalls = Self { host, random: Pcg64Mcg::seed_from_u64(seed), windows: VecDeque::new() };
        stalls.draw(Nanos::ZERO);
        stalls
    }

    /// Adds the first one after `from`; none if the host has none.
    fn draw(&mut self, from: Nanos) {
        let Some(gap_mean_ns) = self.host.stall_gap_mean_ns() else { return };
        let gap_ns = -self.random.random_range(f64::MIN_POSITIVE..1.0).ln() * gap_mean_ns;
        let start = from + Nanos(gap_ns as u64);
        let length = self.host.stall(self.random.random_range(0.0..1.0));
        self.windows.push_back((start, start + length));
    }

    /// When something that would happen at `at` does happen. Nobody asks for what was before `now` any more.
    pub(crate) fn after(&mut self, now: Nanos, at: Nanos) -> Nanos {
        while let Some((start, end)) = self.windows.back().copied()
            && start <= at
        {
            self.draw(end);
        }
        while self.windows.len() > 1 && self.windows.front().is_some_and(|(_, end)| *end < now) {
            self.windows.pop_front();
        }
        let stall = self.windows.iter().find(|(start, end)| (*start..*end).contains(&at));
        stall.map_or(at, |(_, end)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::Stalls;
    use crate::host::Host;
    use minerva_model::Nanos;

    #[test]
    fn stalls_take_the_part_of_time_that_they_took_of_the_calibration() {
        // One request in a hundred was a millisecond late, and there were a thousand in 1.1 seconds.
        let delay_ns = vec![(0.01, 100e3), (0.989_999, 100e3), (0.99, 1_100e3), (1.0, 1_100e3)];
        let host = Host { delay_ns, ..Host::default() };
        let mut stalls = Stalls::new(host, 1);
        let late = (0..1_000_000u64).filter(|step| {
            let at = Nanos(step * 100_000);
            stalls.after(at, at) > at
        });
        let late = late.count();
        assert!((7_500..10_500).contains(&late), "{late} of 1,000,000 instants are within a stall");
        let mut none = Stalls::new(Host::default(), 1);
        assert_eq!(none.after(Nanos::ZERO, Nanos::SECOND), Nanos::SECOND);
    }
}
