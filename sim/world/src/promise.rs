//! Whether a process got what it was promised: by the second and by the request, in constant memory.

use minerva_model::Nanos;
use serde::Serialize;

/// A promise, in bytes: what the contract of a scheduler means to a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// A process that asks all the time gets at least `bytes_per_second * (t - delay)` in any interval t; judged in intervals of
    /// [`Promise::interval_s`], and a request that straddles the end of one counts in the next one.
    pub bytes_per_second: f64,
    /// What it may ask for at once, beyond the rate, and still have each request served within the delay.
    pub burst_bytes: f64,
    /// How long a request within rate and burst may take.
    pub delay: Nanos,
}

impl Promise {
    /// The promise says nothing of an interval that is no longer than the delay and a request, and little of one that is not much longer.
    /// Judged are intervals of at least twice the delay, in whole seconds, of which it promises a quarter of the rate or more where requests
    /// have at most `request_bytes_max`.
    pub fn interval_s(&self, request_bytes_max: u32) -> u64 {
        let silent_s = self.delay.as_secs_f64() + f64::from(request_bytes_max) / self.bytes_per_second.max(1.0);
        let quarter_s = (silent_s * 4.0 / 3.0).ceil() as u64;
        self.delay.0.saturating_mul(2).div_ceil(Nanos::SECOND.0).max(quarter_s).max(1)
    }
}

/// How a promise fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportedPromise {
    /// Seconds of one judged interval: [`Promise::interval_s`], by the largest request.
    pub interval_s: u64,
    /// Seconds of the judged intervals, in which the process asked all the time. The first second of a run is not judged.
    pub seconds: u64,
    /// Those of the intervals in which it got less than promised.
    pub seconds_missed: u64,
    /// Requests that came within rate and burst.
    pub requests: u64,
    /// Those that took longer than the delay, and those that have waited longer at the end of the run.
    pub requests_late: u64,
}

/// A process that asks for nothing for more than this part of a second did not ask all the time.
const IDLE_MAX: Nanos = Nanos::from_millis(100);

/// The account of one promise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    promise: Promise,
    tokens_bytes: f64,
    refilled: Nanos,
    second: u64,
    second_idle: Nanos,
    /// Seconds of the interval so far, all of them whole.
    interval_s: u64,
    interval_bytes: u64,
    outstanding: u32,
    request_bytes_max: u32,
    idle_since: Nanos,
    reported: ReportedPromise,
}

impl Watch {
    pub(crate) fn new(promise: Promise) -> Self {
        Self {
            promise,
            tokens_bytes: promise.burst_bytes,
            refilled: Nanos::ZERO,
            second: 0,
            second_idle: Nanos::ZERO,
            interval_s: 0,
            interval_bytes: 0,
            outstanding: 0,
            request_bytes_max: 0,
            idle_since: Nanos::ZERO,
            reported: ReportedPromise { interval_s: promise.interval_s(0), ..ReportedPromise::default() },
        }
    }

    /// Ends every second before `now`'s.
    fn advance(&mut self, now: Nanos) {
        while self.second < now.0 / Nanos::SECOND.0 {
            let end = Nanos((self.second + 1) * Nanos::SECOND.0);
            self.note_idle(end);
            self.interval_s += 1;
            // The first second is the scheduler's to learn in.
            let asked_all_the_time = self.second > 0 && self.second_idle <= IDLE_MAX;
            let complete = self.interval_s >= self.reported.interval_s;
            if asked_all_the_time && complete {
                let missed = (self.interval_bytes as f64) < self.floor_bytes();
                self.reported.seconds += self.interval_s;
                self.reported.seconds_missed += if missed { self.interval_s } else { 0 };
            }
            if complete || !asked_all_the_time {
                (self.interval_s, self.interval_bytes) = (0, 0);
            }
            (self.second, self.second_idle) = (self.second + 1, Nanos::ZERO);
        }
    }

    /// What the promise makes of an interval.
    fn floor_bytes(&self) -> f64 {
        let seconds = self.interval_s as f64 - self.promise.delay.as_secs_f64();
        self.promise.bytes_per_second * seconds - f64::from(self.request_bytes_max)
    }

    fn note_idle(&mut self, until: Nanos) {
        if self.outstanding == 0 {
            self.second_idle += until.since(self.idle_since);
            self.idle_since = until;
        }
    }

    /// A request is made; whether it is within rate and burst.
    pub(crate) fn issued(&mut self, now: Nanos, bytes: u32) -> bool {
        self.advance(now);
        self.note_idle(now);
        self.outstanding += 1;
        if bytes > self.request_bytes_max {
            self.request_bytes_max = bytes;
            self.reported.interval_s = self.promise.interval_s(bytes);
        }
        let earned = self.promise.bytes_per_second * now.since(self.refilled).as_secs_f64();
        self.tokens_bytes = (self.tokens_bytes + earned).min(self.promise.burst_bytes.max(f64::from(bytes)));
        self.refilled = now;
        let within = self.tokens_bytes >= f64::from(bytes);
        if within {
            self.tokens_bytes -= f64::from(bytes);
            self.reported.requests += 1;
        }
        within
    }

    /// A request is done.
    pub(crate) fn completed(&mut self, now: Nanos, issued: Nanos, bytes: u32, within: bool) {
        self.advance(now);
        self.interval_bytes += u64::from(bytes);
        self.outstanding -= 1;
        self.idle_since = now;
        self.reported.requests_late += u64::from(within && self.is_late(now, issued));
    }

    /// Whether a request that was made at `issued` and is under way, or done now, is late.
    pub(crate) fn is_late(&self, now: Nanos, issued: Nanos) -> bool {
        now.since(issued) > self.promise.delay
    }

    /// How the promise fared until `end`, when `overdue` requests within rate and burst are under way and late.
    pub(crate) fn reported(mut self, end: Nanos, overdue: u64) -> ReportedPromise {
        self.advance(end);
        self.reported.requests_late += overdue;
        self.reported
    }
}

#[cfg(test)]
mod tests {
    use super::{Promise, Watch};
    use minerva_model::Nanos;

    const BLOCK: u32 = 65_536;

    fn watch(delay: Nanos) -> Watch {
        Watch::new(Promise { bytes_per_second: 1e6, burst_bytes: f64::from(BLOCK), delay })
    }

    /// Requests without a pause until `until_s`, `per_second` of them in each second.
    fn serve(watch: &mut Watch, until_s: u64, per_second: u64) {
        for index in 0..until_s * per_second {
            let at = Nanos(index * Nanos::SECOND.0 / per_second);
            let done = Nanos((index + 1) * Nanos::SECOND.0 / per_second);
            let within = watch.issued(at, BLOCK);
            watch.completed(done, at, BLOCK, within);
        }
    }

    #[test]
    fn starving_until_the_end_is_a_violation() {
        let mut watch = watch(Nanos::from_millis(100));
        serve(&mut watch, 3, 20);
        let within = watch.issued(Nanos::from_secs(3), BLOCK);
        assert!(watch.is_late(Nanos::from_secs(30), Nanos::from_secs(3)));
        let reported = watch.reported(Nanos::from_secs(30), u64::from(within));
        assert_eq!((reported.seconds, reported.seconds_missed), (29, 27));
        assert_eq!(reported.requests_late, 1);
    }

    #[test]
    fn a_long_delay_is_judged_in_longer_intervals() {
        let delay = Nanos::from_secs(2);
        let judged = |per_second| {
            let mut watch = watch(delay);
            serve(&mut watch, 41, per_second);
            watch.reported(Nanos::from_secs(41), 0)
        };
        // Four seconds promise two seconds' worth, 2 MB: eight requests a second are enough, six are not.
        assert_eq!((judged(8).interval_s, judged(8).seconds, judged(8).seconds_missed), (4, 40, 0));
        assert_eq!(judged(6).seconds_missed, 40);
        // A request that is longer than the rate makes in a second is judged over more of them.
        let mut large =
            Watch::new(Promise { bytes_per_second: 50_000.0, burst_bytes: 65_536.0, delay: Nanos::from_millis(100) });
        let within = large.issued(Nanos::ZERO, BLOCK);
        let starved = large.reported(Nanos::from_secs(8), u64::from(within));
        assert_eq!((starved.interval_s, starved.seconds, starved.seconds_missed), (2, 6, 6));
        let mut short = watch(delay);
        serve(&mut short, 4, 1);
        assert_eq!(short.reported(Nanos::from_secs(4), 0).seconds, 0, "no whole interval after the first second");
    }
}
