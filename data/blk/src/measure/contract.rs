//! Whether a contract is kept, request by request and second by second. Judged in bytes, by what came and what was done, and not by what the
//! scheduler believes.

use minerva_model::{ContractFigures, Nanos};

/// Who asks for more than this part of a second asks all the time.
const ASKING_LEAST: Nanos = Nanos::from_millis(900);

/// What a disk is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContractTerms {
    /// Bytes a second.
    pub bytes_per_second: u64,
    /// So many more at once.
    pub burst_bytes: u64,
    /// Each request is done within this from when rate and burst allow it. None where the scheduler promises no more than the rate.
    pub delay: Option<Nanos>,
}

/// How it fares.
#[derive(Debug)]
pub(crate) struct ContractMeasure {
    terms: ContractTerms,
    /// What rate and burst leave, every request charged, in bytes; below 0 where more was asked for.
    left: f64,
    refilled: Nanos,
    figures: ContractFigures,
    second: Second,
}

/// What happened in the second that runs.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    bytes: u64,
    request_bytes_max: u64,
    late: u64,
    asked: Nanos,
}

impl ContractMeasure {
    pub(crate) fn new(now: Nanos, terms: ContractTerms) -> Self {
        let left = terms.burst_bytes as f64;
        Self { terms, left, refilled: now, figures: ContractFigures::default(), second: Second::default() }
    }

    pub(crate) fn terms(&self) -> ContractTerms {
        self.terms
    }

    /// A read or write comes; the instant from when rate and burst allow it.
    pub(crate) fn allow(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let (rate, burst, bytes) =
            (self.terms.bytes_per_second.max(1) as f64, self.terms.burst_bytes as f64, bytes as f64);
        let earned = rate * now.since(self.refilled).as_secs_f64();
        self.refilled = self.refilled.max(now);
        // One that is longer than the burst is allowed at once where nothing else was asked for: nobody could do better.
        self.left = (self.left + earned).min(burst.max(bytes)) - bytes;
        if self.left >= 0.0 {
            return now;
        }
        self.figures.early += 1;
        now + Nanos((-self.left / rate * 1e9) as u64)
    }

    /// It is done.
    pub(crate) fn done(&mut self, now: Nanos, allowed: Nanos, bytes: u64) {
        self.figures.requests += 1;
        self.second.bytes += bytes;
        self.second.request_bytes_max = self.second.request_bytes_max.max(bytes);
        let behind = self.behind(now, allowed);
        if behind > Nanos::ZERO {
            self.figures.late += 1;
            self.figures.late_max = self.figures.late_max.max(behind);
            self.second.late += 1;
        }
    }

    /// By how much a request that is allowed from then on is later than promised now.
    fn behind(&self, now: Nanos, allowed: Nanos) -> Nanos {
        self.terms.delay.map_or(Nanos::ZERO, |delay| now.since(allowed + delay))
    }

    /// A second is over, in which the guest had something under way for so long; whether a request was late in it.
    pub(crate) fn end_second(&mut self, asked: Nanos) -> bool {
        let second = Second { asked, ..std::mem::take(&mut self.second) };
        if second.asked == Nanos::ZERO && second.bytes == 0 {
            return false;
        }
        let figures = &mut self.figures;
        figures.seconds += 1;
        figures.seconds_late += u64::from(second.late > 0);
        // The service curve of a rate and a delay; a request that straddles the second's end counts in the next.
        let delay = self.terms.delay.unwrap_or(Nanos::ZERO).as_secs_f64().min(1.0);
        let least = self.terms.bytes_per_second as f64 * (1.0 - delay) - second.request_bytes_max as f64;
        let short = least - second.bytes as f64;
        if second.asked >= ASKING_LEAST && short > 0.0 {
            figures.seconds_short += 1;
            figures.short_bytes_max = figures.short_bytes_max.max(short as u64);
        }
        second.late > 0
    }

    /// What is known, with the requests that are still under way, each by when it was allowed.
    pub(crate) fn told(&self, now: Nanos, under_way: impl Iterator<Item = Nanos>) -> ContractFigures {
        let mut figures = self.figures.clone();
        for allowed in under_way {
            let behind = self.behind(now, allowed);
            if behind > Nanos::ZERO {
                figures.overdue += 1;
                figures.late_max = figures.late_max.max(behind);
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::{ContractMeasure, ContractTerms};
    use minerva_model::Nanos;

    const TERMS: ContractTerms =
        ContractTerms { bytes_per_second: 1000, burst_bytes: 100, delay: Some(Nanos::from_millis(200)) };

    fn ms(count: u64) -> Nanos {
        Nanos::from_millis(count)
    }

    #[test]
    fn a_request_is_late_a_delay_after_rate_and_burst_allow_it() {
        let mut measure = ContractMeasure::new(ms(0), TERMS);
        // Twenty at once, of which one is allowed every 100 ms.
        let allowed: Vec<Nanos> = (0..20).map(|_| measure.allow(ms(1000), 100)).collect();
        assert_eq!((allowed[0], allowed[1], allowed[19]), (ms(1000), ms(1100), ms(2900)));
        for (number, allowed) in (0..).zip(&allowed[..18]) {
            measure.done(ms(1100 + number * 100), *allowed, 100);
        }
        assert!(measure.told(ms(2900), [allowed[18], allowed[19]].into_iter()).is_kept());
        // Of the two that are left one is late when it is done, and the other before it is.
        measure.done(ms(3030), allowed[18], 100);
        let told = measure.told(ms(3105), [allowed[19]].into_iter());
        assert_eq!((told.requests, told.early, told.late, told.overdue, told.late_max), (19, 19, 1, 1, ms(30)));
    }

    #[test]
    fn a_second_is_short_where_the_guest_asks_all_the_time_and_has_less_than_rate_and_delay_give() {
        let mut measure = ContractMeasure::new(ms(0), TERMS);
        let mut second = |asked: u64, requests: u64| {
            for _ in 0..requests {
                measure.done(ms(0), ms(0), 100);
            }
            measure.end_second(ms(asked))
        };
        // 1000 bytes a second less 200 ms less a request are 700.
        assert!(!second(1000, 7));
        assert!(!second(1000, 6));
        assert!(!second(500, 1), "it asked for little");
        assert!(!second(0, 0), "it asked for nothing");
        let told = measure.told(ms(0), std::iter::empty());
        assert_eq!((told.seconds, told.seconds_short, told.short_bytes_max, told.seconds_late), (3, 1, 100, 0));
        assert!(!told.is_kept());
    }

    #[test]
    fn a_promise_of_a_rate_alone_has_no_late_request() {
        let mut measure = ContractMeasure::new(ms(0), ContractTerms { delay: None, ..TERMS });
        measure.done(ms(60_000), ms(0), 100);
        assert!(!measure.end_second(ms(1000)));
        let told = measure.told(ms(90_000), [ms(0)].into_iter());
        assert_eq!((told.late + told.overdue, told.seconds_short, told.short_bytes_max), (0, 1, 800));
    }
}
