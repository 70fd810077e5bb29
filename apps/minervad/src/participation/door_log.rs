//! Refusals of the doors in the log and in the audit: each, as long as they are few. A flood is counted and told as one line.

use crate::clock::boottime;
use crate::participation::directory::Listed;
use crate::participation::door_status::Denial;
use crate::participation::refusals::Refusals;
use minerva_model::Nanos;
use std::sync::{Mutex, PoisonError};

/// Lines in one period.
const LINES_MAX: u64 = 50;
const PERIOD: Nanos = Nanos::from_secs(10);

/// What was said in this period, and what was not.
#[derive(Debug)]
pub(crate) struct RefusalLog {
    audit: Refusals,
    period: Mutex<Period>,
}

#[derive(Debug, Default)]
struct Period {
    began_at: Nanos,
    count: u64,
}

impl Period {
    /// Whether this refusal is said, and how many were not before it.
    fn count(&mut self, now: Nanos) -> (bool, u64) {
        let mut unsaid = 0;
        if now.since(self.began_at) >= PERIOD {
            unsaid = self.count.saturating_sub(LINES_MAX);
            *self = Self { began_at: now, count: 0 };
        }
        self.count += 1;
        (self.count <= LINES_MAX, unsaid)
    }
}

impl RefusalLog {
    pub(crate) fn new(audit: Refusals) -> Self {
        Self { audit, period: Mutex::default() }
    }

    /// Says what a tenant was refused.
    pub(crate) fn refused(&self, tenant: &Listed, method: &str, denial: &Denial) {
        self.say(&tenant.name, &tenant.account, method, denial);
    }

    /// Says what somebody was refused of whom nobody knows which tenant it is.
    pub(crate) fn refused_stranger(&self, who: &str, method: &str, denial: &Denial) {
        self.say("", "", &format!("{method} of {who}"), denial);
    }

    /// Says it, unless it was said or too much was.
    fn say(&self, name: &str, account: &str, what: &str, denial: &Denial) {
        if denial.is_told {
            return;
        }
        let (said, unsaid) = self.period.lock().unwrap_or_else(PoisonError::into_inner).count(boottime());
        if unsaid > 0 {
            let text = format!("{unsaid} more requests were refused than are told one by one.");
            tracing::info!("{text}");
            self.audit.note("", "", "", text);
        }
        if said {
            tracing::info!(tenant = name, what, word = denial.word, "refused a request: {}", denial.message);
            self.audit.note(name, account, "", format!("{what}: {} ({})", denial.message, denial.word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, PERIOD, Period};
    use minerva_model::Nanos;

    #[test]
    fn a_flood_is_one_line_in_the_end() {
        let mut period = Period::default();
        let said = (0..LINES_MAX + 30).filter(|_| period.count(Nanos::SECOND).0).count();
        assert_eq!(said as u64, LINES_MAX);
        assert_eq!(period.count(Nanos::SECOND + PERIOD), (true, 30));
        assert_eq!(period.count(Nanos::SECOND + PERIOD), (true, 0));
    }
}
