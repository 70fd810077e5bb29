//! What a scrape learns of the store.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Label `of`: what a transaction of the store was for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommitLabel {
    of: &'static str,
}

/// The numbers themselves.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    commits: Family<CommitLabel, Counter>,
    pub(crate) failures: Counter,
    pub(crate) rows_dropped: Counter,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let metrics =
            Self { commits: Family::default(), failures: Counter::default(), rows_dropped: Counter::default() };
        // A counter that appears only with its first commit cannot be alerted on: show the zeros from the start.
        for of in ["requests", "slice"] {
            drop(metrics.commits.get_or_create(&CommitLabel { of }));
        }
        metrics
    }
}

impl StoreMetrics {
    /// Has the scrape show them.
    pub fn register(&self, registry: &mut Registry) {
        let text = "Transactions of the store, by what they were for; each takes one sync at most";
        registry.register("store_commits", text, self.commits.clone());
        registry.register("store_failures", "Times the store refused a batch", self.failures.clone());
        let text = "Audit rows given up because the store did not keep up";
        registry.register("store_rows_dropped", text, self.rows_dropped.clone());
    }

    /// Counts transactions, for `requests` or for a `slice`.
    pub(crate) fn committed(&self, of: &'static str, count: u64) {
        self.commits.get_or_create(&CommitLabel { of }).inc_by(count);
    }
}
