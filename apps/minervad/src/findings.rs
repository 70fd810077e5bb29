//! What `status` shows of what was found, and what the log says of decisions in `shadow` mode.

use crate::clock::unix_ns;
use minerva_api::v1;
use minerva_model::{FindingKind, Nanos};
use std::collections::VecDeque;

/// Findings that `status` shows.
const FINDINGS_SHOWN: usize = 50;
/// In `shadow` mode the log says this often what was decided.
const DIGEST_PERIOD: Nanos = Nanos::from_secs(60);

/// What people are told.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The latest.
    latest: VecDeque<v1::Finding>,
    digest: Digest,
}

impl Findings {
    /// Keeps one; beyond what is shown the oldest goes.
    pub(crate) fn show(&mut self, kind: FindingKind, message: String) {
        if self.latest.len() == FINDINGS_SHOWN {
            self.latest.pop_front();
        }
        let (unix_ns, warning) = (unix_ns(), kind.is_warning());
        self.latest.push_back(v1::Finding { unix_ns, kind: kind.as_str().to_owned(), warning, message });
    }

    /// The oldest first.
    pub(crate) fn shown(&self) -> Vec<v1::Finding> {
        self.latest.iter().cloned().collect()
    }

    /// Counts a decision.
    pub(crate) fn decided(&mut self, share: u32, tenant: &str, device: &str) {
        self.digest.decided(share, tenant, device);
    }

    /// A slice is over: now and then the log says what was decided, if that was all that became of it.
    pub(crate) fn end_slice(&mut self, now: Nanos, is_shadow: bool) {
        self.digest.end_period(now, is_shadow);
    }
}

/// What was decided since the log last said so. A shadow that says nothing would be a shadow that nobody believes; one that says
/// everything is not read.
#[derive(Debug, Default)]
struct Digest {
    since: Nanos,
    decisions: u64,
    /// The smallest share, and whose on which disk.
    smallest: Option<(u32, String, String)>,
}

impl Digest {
    /// Counts a decision.
    fn decided(&mut self, share: u32, tenant: &str, device: &str) {
        self.decisions += 1;
        if self.smallest.as_ref().is_none_or(|(smallest, ..)| share < *smallest) {
            self.smallest = Some((share, tenant.to_owned(), device.to_owned()));
        }
    }

    /// Begins anew when the period is over, and says what was decided in it if that was all that became of it.
    fn end_period(&mut self, now: Nanos, is_shadow: bool) {
        if now.since(self.since) < DIGEST_PERIOD {
            return;
        }
        let Self { decisions, smallest, .. } = std::mem::replace(self, Self { since: now, ..Self::default() });
        if let Some((share, tenant, disk)) = smallest.filter(|_| is_shadow) {
            tracing::info!(
                decisions,
                "nothing is written in shadow mode; the smallest share decided in the last minute was {share}, for {tenant} on \
                 {disk} (minerva-ctl explain '{tenant}')"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FINDINGS_SHOWN, Findings};
    use minerva_model::FindingKind;

    #[test]
    fn the_latest_findings_are_shown() {
        let mut findings = Findings::default();
        (0..FINDINGS_SHOWN + 3).for_each(|number| findings.show(FindingKind::Steerable, number.to_string()));
        let shown = findings.shown();
        assert_eq!((shown.len(), shown[0].message.as_str()), (FINDINGS_SHOWN, "3"));
    }
}
