//! Whether a process got what it was promised: by the second and by the request, in constant memory.

use minerva_model::Nanos;
use serde::Serialize;

/// A promise, in bytes: what the contract of a scheduler means to a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promise {
    /// A process that asks all the time gets at least `bytes_per_second * (t - delay)` in any interval t; judged by the second,
    /// and a request that straddles the end of a second counts in the next one.
    pub bytes_per_second: f64,
    /// What it may ask for at once, beyond the rate, and still have each request served within the delay.
    pub burst_bytes: f64,
    /// How long a request within rate and burst may take.
    pub delay: Nanos,
}

/// How a promise fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportedPromise {
    /// Whole seconds, after the first, in which the process asked all the time.
    pub seconds: u64,
    /// Those in which it got less than promised.
    pub seconds_missed: u64,
    /// Requests that came within rate and burst.
    pub requests: u64,
    /// Those that took longer than the delay.
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
    second_bytes: u64,
    second_idle: Nanos,
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
            second_bytes: 0,
            second_idle: Nanos::ZERO,
            outstanding: 0,
            request_bytes_max: 0,
            idle_since: Nanos::ZERO,
            reported: ReportedPromise::default(),
        }
    }

    /// Ends every second before `now`'s.
    fn advance(&mut self, now: Nanos) {
        while self.second < now.0 / Nanos::SECOND.0 {
            let end = Nanos((self.second + 1) * Nanos::SECOND.0);
            self.note_idle(end);
            // The first second is the scheduler's to learn in.
            if self.second > 0 && self.second_idle <= IDLE_MAX {
                self.reported.seconds += 1;
                self.reported.seconds_missed += u64::from((self.second_bytes as f64) < self.floor_bytes());
            }
            (self.second, self.second_bytes, self.second_idle) = (self.second + 1, 0, Nanos::ZERO);
        }
    }

    /// What the promise makes of a second.
    fn floor_bytes(&self) -> f64 {
        let part = 1.0 - self.promise.delay.as_secs_f64();
        self.promise.bytes_per_second * part - f64::from(self.request_bytes_max)
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
        self.request_bytes_max = self.request_bytes_max.max(bytes);
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
        self.second_bytes += u64::from(bytes);
        self.outstanding -= 1;
        self.idle_since = now;
        self.reported.requests_late += u64::from(within && now.since(issued) > self.promise.delay);
    }

    pub(crate) fn reported(&self) -> ReportedPromise {
        self.reported
    }
}
