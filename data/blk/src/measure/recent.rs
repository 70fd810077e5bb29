//! Times of the requests of the last seconds: a histogram of fixed size for the seconds that run and one for those before, so that nothing is
//! allocated once it was made.

use hdrhistogram::Histogram;
use minerva_model::{Nanos, RecentFigures};

/// The length of one; figures are of one to two of them.
const SPAN: Nanos = Nanos::from_secs(5);
/// Times are told apart from a microsecond on.
const TIME_LEAST_NS: u64 = 1_000;
/// Longer ones count as this long.
const TIME_MOST_NS: u64 = 600_000_000_000;

/// Requests of the last seconds.
#[derive(Debug)]
pub(crate) struct Recent {
    current: Stretch,
    before: Stretch,
    began: Nanos,
}

/// Requests of some seconds.
#[derive(Debug)]
struct Stretch {
    times: Histogram<u32>,
    ops: u64,
    bytes: u64,
    wait_ns: u64,
    span: Nanos,
}

impl Recent {
    /// Of percentiles with so many significant digits, 1 or 2.
    pub(crate) fn new(now: Nanos, digits: u8) -> Self {
        Self { current: Stretch::new(digits), before: Stretch::new(digits), began: now }
    }

    /// A request was done.
    pub(crate) fn note(&mut self, now: Nanos, bytes: u64, took: Nanos) {
        self.advance(now);
        let current = &mut self.current;
        current.times.saturating_record(took.0.max(TIME_LEAST_NS));
        current.ops += 1;
        current.bytes += bytes;
        current.wait_ns = current.wait_ns.saturating_add(took.0);
    }

    fn advance(&mut self, now: Nanos) {
        let age = now.since(self.began);
        if age < SPAN {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.before);
        self.current.clear();
        self.before.span = SPAN;
        if age.0 >= 2 * SPAN.0 {
            self.before.clear();
            self.before.span = SPAN;
        }
        self.began = Nanos(now.0 - age.0 % SPAN.0);
    }

    /// What is known of them.
    pub(crate) fn told(&mut self, now: Nanos) -> RecentFigures {
        self.advance(now);
        let mut times = self.current.times.clone();
        // Both were made alike.
        let _ = times.add(&self.before.times);
        // An empty histogram has a greatest value too.
        let of = |part: f64| Nanos(if times.is_empty() { 0 } else { times.value_at_quantile(part) });
        let sum = |of: fn(&Stretch) -> u64| of(&self.current).saturating_add(of(&self.before));
        RecentFigures {
            span: Nanos(now.since(self.began).0 + self.before.span.0),
            ops: sum(|stretch| stretch.ops),
            bytes: sum(|stretch| stretch.bytes),
            wait: Nanos(sum(|stretch| stretch.wait_ns)),
            median: of(0.5),
            p95: of(0.95),
            p99: of(0.99),
            p999: of(0.999),
            longest: of(1.0),
        }
    }
}

impl Stretch {
    fn new(digits: u8) -> Self {
        #[expect(clippy::expect_used, reason = "the library refuses bounds out of order and more than five digits")]
        let times = Histogram::new_with_bounds(TIME_LEAST_NS, TIME_MOST_NS, digits).expect("bounds in order");
        Self { times, ops: 0, bytes: 0, wait_ns: 0, span: Nanos::ZERO }
    }

    fn clear(&mut self) {
        self.times.reset();
        (self.ops, self.bytes, self.wait_ns, self.span) = (0, 0, 0, Nanos::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;
    use minerva_model::Nanos;

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(1_000_000 + ms)
    }

    fn near(found: Nanos, expected_ms: u64) -> bool {
        (found.0 as f64 / (expected_ms as f64 * 1e6) - 1.0).abs() < 0.01
    }

    #[test]
    fn percentiles_are_of_the_last_seconds_only() {
        let mut recent = Recent::new(at(0), 2);
        for ms in 1..=1000 {
            recent.note(at(ms), 100, Nanos::from_millis(ms));
        }
        let told = recent.told(at(1000));
        assert_eq!((told.ops, told.bytes, told.span), (1000, 100_000, Nanos::SECOND));
        assert!(near(told.median, 500) && near(told.p95, 950) && near(told.p99, 990), "{told:?}");
        assert!(near(told.p999, 999) && near(told.longest, 1000), "{told:?}");
        // The next stretch has its own, beside those before.
        recent.note(at(6000), 1, Nanos::from_millis(4000));
        let told = recent.told(at(7000));
        assert_eq!((told.ops, told.span), (1001, Nanos::from_secs(7)));
        assert!(near(told.longest, 4000), "{told:?}");
        assert_eq!(recent.told(at(11_000)).ops, 1, "the first stretch is forgotten");
        let told = recent.told(at(60_000));
        assert_eq!((told.ops, told.longest, told.span), (0, Nanos::ZERO, Nanos::from_secs(5)));
    }

    #[test]
    fn times_out_of_bounds_count_at_the_bounds() {
        let mut recent = Recent::new(at(0), 1);
        recent.note(at(0), 0, Nanos(1));
        recent.note(at(0), 0, Nanos::from_secs(100_000));
        let told = recent.told(at(1));
        assert!(told.median.0 >= 1_000 && told.longest >= Nanos::from_secs(600), "{told:?}");
    }
}
