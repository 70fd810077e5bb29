//! A job that a rule names ends with its cgroup; one whose cgroup lives on, such as that of a service that works now and then, when it has
//! rested for long. Else all its runs would be one, larger than any that was declared.

use super::Rule;
use minerva_model::{JobRun, Nanos, Signals, TenantId};

/// Without a transfer and without computing, for so long: phases in which a job waits for others are shorter.
const LONG_REST: Nanos = Nanos::from_secs(600);
/// Processors in use from which a job computes.
const COMPUTING_CORES: f64 = 0.25;

impl Rule {
    /// Notes which jobs did anything in a slice.
    pub(super) fn note_active(&mut self, now: Nanos, signals: &Signals) {
        let moved = signals.io.iter().filter(|row| row.transferred.bytes() > 0).map(|row| row.tenant);
        let computed = signals.usage.iter().filter(|usage| {
            let cores = usage.cpu_ns as f64 / usage.elapsed.0.max(1) as f64;
            usage.elapsed > Nanos::ZERO && cores >= COMPUTING_CORES
        });
        for tenant in moved.chain(computed.map(|usage| usage.tenant)) {
            // Of one that was cut short nothing is counted yet, but it may go on.
            if self.attained.contains_key(&tenant) || self.active.contains_key(&tenant) {
                self.active.insert(tenant, now);
            }
        }
    }

    /// Ends jobs that have rested for long, but for those that say themselves when they end.
    pub(super) fn end_rested(&mut self, now: Nanos) {
        if !self.settings.ends_after_rest {
            return;
        }
        let has_rested = |(tenant, active): (&TenantId, &Nanos)| {
            let is_over = now.since(*active) >= LONG_REST && !self.named.has_declared(*tenant);
            is_over.then_some(*tenant)
        };
        let rested: Vec<TenantId> = self.active.iter().filter_map(has_rested).collect();
        for tenant in rested {
            let run = self.end(tenant);
            self.rested.extend(run);
        }
    }

    /// Runs that ended by a rest since this was last asked.
    pub(crate) fn take_rested(&mut self) -> Vec<JobRun> {
        std::mem::take(&mut self.rested)
    }
}
