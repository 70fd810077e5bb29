//! Every request of a process, and what the process did within a window of time. Both arms are counted here, by the instant
//! at which a request completed.

use crate::{Arm, Outcome, TenantOutcome};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When it completed, in milliseconds of any clock that all logs of a run share.
    pub(crate) at_ms: u64,
    pub(crate) time_ns: u64,
    pub(crate) bytes: u64,
}

/// What is counted: everything that completes from an instant on, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_ms: u64,
    pub(crate) length_ms: u64,
}

/// What a process did within a window.
pub(crate) struct Report {
    /// Time of each request, rising, in nanoseconds.
    times_ns: Vec<u64>,
    bytes: u64,
    length_ms: u64,
}

impl Window {
    /// Windows of this length, one behind the other. What is left over at the end belongs to none.
    pub(crate) fn split(self, length_ms: u64) -> impl Iterator<Item = Self> {
        let count = self.length_ms / length_ms.max(1);
        (0..count).map(move |index| Self { from_ms: self.from_ms + index * length_ms, length_ms })
    }

    /// What `log` has of it.
    pub(crate) fn count(&self, log: &[Entry]) -> Report {
        let span = self.from_ms..self.from_ms + self.length_ms;
        let within = |entry: &&Entry| span.contains(&entry.at_ms);
        let mut times_ns: Vec<u64> = log.iter().filter(within).map(|entry| entry.time_ns).collect();
        times_ns.sort_unstable();
        let bytes = log.iter().filter(within).map(|entry| entry.bytes).sum();
        Report { times_ns, bytes, length_ms: self.length_ms }
    }
}

/// What each process did within a window.
fn outcome(logs: &[Vec<Entry>], window: Window) -> Outcome {
    Outcome { tenants: logs.iter().map(|log| window.count(log).outcome()).collect() }
}

/// The same, also in windows of this length.
pub(crate) fn arm(logs: &[Vec<Entry>], whole: Window, window_ms: u64) -> Arm {
    Arm { whole: outcome(logs, whole), windows: whole.split(window_ms).map(|window| outcome(logs, window)).collect() }
}

impl Report {
    /// The time that `part` of all requests did not exceed; zero without requests.
    pub(crate) fn quantile_ns(&self, part: f64) -> f64 {
        let rank = (self.times_ns.len() as f64 * part).ceil() as usize;
        self.times_ns.get(rank.saturating_sub(1)).copied().unwrap_or_default() as f64
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.times_ns.len() as f64 * 1e3 / self.length_ms as f64
    }

    pub(crate) fn outcome(&self) -> TenantOutcome {
        let sum: u64 = self.times_ns.iter().sum();
        TenantOutcome {
            bytes_per_second: self.bytes as f64 * 1e3 / self.length_ms as f64,
            p99_ms: self.quantile_ns(0.99) / 1e6,
            mean_ms: sum as f64 / self.times_ns.len().max(1) as f64 / 1e6,
            requests: self.times_ns.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Window};

    #[test]
    fn only_what_completed_within_the_window_counts() {
        let log =
            [(999, 5), (1000, 7), (1500, 3), (2000, 9)].map(|(at_ms, time_ns)| Entry { at_ms, time_ns, bytes: 8 });
        let report = Window { from_ms: 1000, length_ms: 1000 }.count(&log);
        assert_eq!((report.outcome().bytes_per_second, report.outcome().requests), (16.0, 2));
        let halves: Vec<u64> = Window { from_ms: 0, length_ms: 2500 }.split(1000).map(|half| half.from_ms).collect();
        assert_eq!(halves, [0, 1000]);
        assert_eq!((report.quantile_ns(0.99), report.quantile_ns(0.5), report.rate()), (7.0, 3.0, 2.0));
    }
}
