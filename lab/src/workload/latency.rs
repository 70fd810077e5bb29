//! Request times of a worker, as a histogram that crosses a pipe.

use hdrhistogram::Histogram;
use minerva_model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Three significant digits: a percentile is right to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// How long requests took: pairs of microseconds and how many requests took that long, in rising order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latency(Vec<(u64, u64)>);

impl Latency {
    /// The time that `part` of all requests did not exceed, 0.99 for p99; `None` without requests.
    pub fn quantile(&self, part: f64) -> Option<Nanos> {
        let total = self.count();
        let rank = ((total as f64 * part).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        self.0.iter().find_map(|(microseconds, count)| {
            seen += count;
            (seen >= rank).then(|| Nanos::from_micros(*microseconds))
        })
    }

    /// Those of several workers as if one had done it all.
    pub fn merged<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut counts = BTreeMap::<u64, u64>::new();
        all.flat_map(|one| &one.0).for_each(|(microseconds, count)| *counts.entry(*microseconds).or_default() += count);
        Self(counts.into_iter().collect())
    }

    /// How many requests there were.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}

/// Collects the times while the work goes on, without allocating once warm.
pub(crate) struct Recorder(Histogram<u64>);

impl Recorder {
    pub(crate) fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the library refuses only more than five digits")]
        Self(Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are allowed"))
    }

    pub(crate) fn record(&mut self, time: Nanos) {
        // Histograms without an upper bound grow, so nothing is refused.
        let _ = self.0.record(time.0 / 1_000);
    }

    pub(crate) fn finish(&self) -> Latency {
        Latency(
            self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, Recorder};
    use minerva_model::Nanos;

    #[test]
    fn quantiles_count_requests_and_survive_the_pipe() {
        let mut recorder = Recorder::new();
        for milliseconds in 1..=100 {
            recorder.record(Nanos::from_millis(milliseconds));
        }
        let text = serde_json::to_string(&recorder.finish()).unwrap();
        let latency: Latency = serde_json::from_str(&text).unwrap();
        assert_eq!(latency.count(), 100);
        let p99 = latency.quantile(0.99).unwrap().as_millis_f64();
        assert!((98.9..99.2).contains(&p99), "{p99}");
        assert_eq!(Latency::default().quantile(0.5), None);
    }
}
