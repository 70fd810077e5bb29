//! How fast the disk can be, as BFQ learns it: from the requests dispatched within about a second, unless most of them
//! were seeks, in which case they say little of what the disk can do.

use minerva_model::Nanos;

/// Fewer requests say nothing.
const REQUESTS_MIN: u64 = 32;
/// Neither does a shorter time.
const INTERVAL_MIN: Nanos = Nanos::from_millis(300);
/// An observation ends after this.
const INTERVAL: Nanos = Nanos::from_secs(1);
/// A pause in which nothing is under way ends it too.
const PAUSE: Nanos = Nanos::from_millis(100);
/// Sequential requests that came later than this after the last completion were not limited by the disk.
const GAP_MAX: Nanos = Nanos::from_millis(2);

/// The estimate and the observation under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakRate {
    /// Bytes a second, once something was observed.
    bytes_per_second: Option<f64>,
    first: Nanos,
    last: Nanos,
    last_completion: Nanos,
    requests: u64,
    sequential: u64,
    bytes: u64,
    in_flight: u32,
}

impl PeakRate {
    /// What the disk can transfer within `time`, once that is known.
    pub(crate) fn bytes_within(&self, time: Nanos) -> Option<u64> {
        self.bytes_per_second.map(|rate| (rate * time.as_secs_f64()) as u64)
    }

    /// A request is sent; `near` the end of the one before it or not. `start` is what a disk of this kind is taken for
    /// before the first observation.
    pub(crate) fn dispatched(&mut self, now: Nanos, bytes: u64, near: bool, start: f64) {
        let paused = self.in_flight == 0 && now.since(self.last) > PAUSE;
        if self.requests > 0 && (paused || now.since(self.first) >= INTERVAL) {
            self.conclude(start);
        }
        if self.requests == 0 {
            self.first = now;
        } else {
            let limited = self.in_flight > 0 || now.since(self.last_completion) < GAP_MAX;
            self.sequential += u64::from(near && limited);
        }
        self.requests += 1;
        self.bytes += bytes;
        self.last = now;
        self.in_flight += 1;
    }

    /// A request is done.
    pub(crate) fn completed(&mut self, now: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_completion = now;
    }

    /// So many of the requests in flight hang: what is slow while they do is not the disk.
    pub(crate) fn give_up(&mut self, hung: u32) {
        self.in_flight = self.in_flight.saturating_sub(hung);
    }

    /// Ends the observation and learns from it what there is to learn.
    fn conclude(&mut self, start: f64) {
        let span = self.last.max(self.last_completion).since(self.first);
        let (requests, sequential, bytes) = (self.requests, self.sequential, self.bytes);
        (self.requests, self.sequential, self.bytes) = (0, 0, 0);
        if requests < REQUESTS_MIN || span < INTERVAL_MIN {
            return;
        }
        let rate = bytes as f64 / span.as_secs_f64();
        let peak = self.bytes_per_second.unwrap_or(start);
        if 4 * sequential < 3 * requests && rate <= peak {
            return;
        }
        // The longer and the more sequential, the more it counts: at most half.
        let weight = 9.0 * sequential as f64 / requests as f64 * (span.as_secs_f64() / INTERVAL.as_secs_f64());
        let divisor = 10.0 - weight.min(8.0);
        self.bytes_per_second = Some(peak + (rate - peak) / divisor);
    }
}

#[cfg(test)]
mod tests {
    use super::PeakRate;
    use minerva_model::Nanos;

    fn observe(near: bool, seconds: u64) -> Option<u64> {
        let mut rate = PeakRate::default();
        for millisecond in 0..seconds * 1000 {
            rate.dispatched(Nanos::from_millis(millisecond), 50_000, near, 100e6);
            rate.completed(Nanos::from_millis(millisecond));
        }
        rate.bytes_within(Nanos::SECOND)
    }

    #[test]
    fn it_learns_from_sequential_requests_and_not_from_slow_seeks() {
        assert_eq!(observe(true, 1), None, "the first second is not over");
        let learnt = observe(true, 20).expect("an observation");
        assert!((49_900_000..50_100_000).contains(&learnt), "{learnt}");
        assert_eq!(observe(false, 20), None);
    }
}
