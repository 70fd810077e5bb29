//! Whether the host is so short of memory that caps must not stand.
//!
//! A capped tenant may have to write back before memory is freed, and then everybody waits for it: the host goes down with the
//! tenant. So caps are lifted while the host's memory pressure is high. It is the part of the time in which *every* process that
//! wanted to run waited for memory (`full` of `/proc/pressure/memory`, `Documentation/accounting/psi.rst`), averaged over some ten
//! seconds as the kernel's own `avg10` is. `some` would let one tenant that thrashes in its own group lift everybody's caps.

use minerva_model::{Finding, FindingKind, Nanos, Pressure};
use serde::{Deserialize, Serialize};

/// The time constant of the average.
const AVERAGE_OVER_SECONDS: f64 = 10.0;
/// Caps come back when the pressure has been below half of the limit for so long.
const CALM: Nanos = Nanos::from_secs(10);

/// The pressure as far as caps are concerned.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct MemoryPressure {
    last: Option<(Nanos, Pressure)>,
    average_permille: f64,
    calm_since: Option<Nanos>,
    is_high: bool,
    /// People were told that it cannot be known.
    told_absent: bool,
}

impl MemoryPressure {
    /// Takes what the host has waited until now; `limit_permille` of 0 is never reached.
    pub(crate) fn sampled(&mut self, now: Nanos, waited: Option<Pressure>, limit_permille: u32) {
        let Some(waited) = waited else {
            *self = Self { told_absent: self.told_absent, ..Self::default() };
            return;
        };
        if let Some((before, earlier)) = self.last.replace((now, waited)) {
            let seconds = now.since(before).as_secs_f64().max(1e-3);
            let stalled = Nanos(waited.full_ns.saturating_sub(earlier.full_ns)).as_secs_f64() / seconds;
            let weight = 1.0 - (-seconds / AVERAGE_OVER_SECONDS).exp();
            self.average_permille += weight * (stalled.min(1.0) * 1e3 - self.average_permille);
        }
        let limit = f64::from(limit_permille);
        if limit_permille == 0 {
            self.is_high = false;
        } else if self.average_permille >= limit {
            self.is_high = true;
        }
        if !self.is_high || self.average_permille >= limit / 2.0 {
            self.calm_since = None;
        } else if now.since(*self.calm_since.get_or_insert(now)) >= CALM {
            self.is_high = false;
        }
    }

    /// Caps must not stand.
    pub(crate) fn is_high(&self) -> bool {
        self.is_high
    }

    /// What people are to know, given what they were told before this sample.
    pub(crate) fn news(&mut self, was_high: bool, limit_permille: u32) -> Option<Finding> {
        let percent = |permille: f64| permille / 10.0;
        let limit = percent(f64::from(limit_permille));
        let now = percent(self.average_permille);
        let (kind, message) = match (was_high, self.is_high) {
            (false, true) => (
                FindingKind::CapsLifted,
                format!(
                    "caps are lifted: in {now:.0} % of the last ten seconds every process that wanted to run waited for memory (limit \
                     {limit:.0} %), and a capped tenant that must write back first would hold up the whole host. They come back \
                     when it has been below {:.0} % for {} s.",
                    limit / 2.0,
                    CALM.as_secs_f64(),
                ),
            ),
            (true, false) => {
                (FindingKind::CapsBack, format!("memory pressure is down to {now:.1} %: caps are dealt again."))
            }
            _ if self.last.is_none() && limit_permille > 0 && !self.told_absent => {
                self.told_absent = true;
                (
                    FindingKind::Unreadable,
                    "the host's memory pressure (PSI) cannot be read, so caps are not lifted under memory pressure: boot with psi=1."
                        .to_owned(),
                )
            }
            _ => return None,
        };
        Some(Finding { kind, device: None, tenant: None, message })
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryPressure;
    use minerva_model::{FindingKind, Nanos, Pressure};

    /// Permille of each second stalled in full; the answer is at which seconds it was high.
    fn high(limit: u32, stalls: &[u64]) -> Vec<bool> {
        let (mut memory, mut waited) = (MemoryPressure::default(), Pressure::default());
        memory.sampled(Nanos::from_secs(1), Some(waited), limit);
        let mut seen = Vec::new();
        for (second, permille) in (2..).zip(stalls) {
            waited.full_ns += permille * 1_000_000;
            waited.some_ns += 1_000_000_000;
            memory.sampled(Nanos::from_secs(second), Some(waited), limit);
            seen.push(memory.is_high());
        }
        seen
    }

    #[test]
    fn it_rises_at_once_and_falls_after_a_calm() {
        let stalls: Vec<u64> = [vec![1_000; 5], vec![0; 60]].concat();
        let seen = high(100, &stalls);
        assert_eq!(seen[..2], [false, true], "two seconds of full stall are enough");
        let end = seen.iter().rposition(|high| *high).unwrap();
        // 39 % fall to 5 % in some 21 seconds, and ten seconds more are waited.
        assert!((30..40).contains(&(end - 4)), "{end}");
        assert!(seen[1..=end].iter().all(|high| *high), "it does not flutter");
    }

    #[test]
    fn what_only_some_wait_for_is_not_enough_and_zero_turns_it_off() {
        assert!(!high(100, &[50; 120]).contains(&true));
        assert!(!high(0, &[1_000; 60]).contains(&true));
        // Between half of the limit and the limit it stays as it is.
        let seen = high(100, &[vec![1_000; 3], vec![70; 200]].concat());
        assert_eq!(seen.last(), Some(&true));
    }

    #[test]
    fn absence_is_told_once() {
        let mut memory = MemoryPressure::default();
        memory.sampled(Nanos::from_secs(1), None, 100);
        assert_eq!(memory.news(false, 100).map(|finding| finding.kind), Some(FindingKind::Unreadable));
        memory.sampled(Nanos::from_secs(2), None, 100);
        assert_eq!(memory.news(false, 100), None);
        assert_eq!(MemoryPressure::default().news(false, 0), None);
    }
}
