//! Whether the host is so short of memory that caps must not stand.
//!
//! A capped tenant may have to write back before memory is freed, and then everybody waits for it: the host goes down with the
//! tenant. So caps are lifted while the host's memory pressure is high. It is the part of the time in which *every* process that
//! wanted to run waited for memory (`full` of `/proc/pressure/memory`, `Documentation/accounting/psi.rst`), averaged over some ten
//! seconds as the kernel's own `avg10` is. `some` would let one tenant that thrashes in its own group lift everybody's caps.

use crate::Actuator;
use crate::steering::Steering;
use minerva_model::{Effect, Finding, FindingKind, Nanos, Pressure};
use serde::{Deserialize, Serialize};

/// The time constant of the average.
const AVERAGE_OVER_SECONDS: f64 = 10.0;
/// Caps come back when the pressure has been below half of the limit for so long.
const CALM: Nanos = Nanos::from_secs(10);

impl Actuator {
    /// Before each [`Actuator::plan`]: how long the host has waited for memory since its boot, if the kernel tells. While it waits
    /// too much, caps are lifted.
    pub fn waited_for_memory(&mut self, now: Nanos, waited: Option<Pressure>) {
        let limit = self.config.actuation.caps_lift_at_memory_stall_permille;
        let was_high = self.memory.is_high();
        self.memory.sampled(now, waited, limit);
        let is_concerned = self.disks.values().any(Steering::may_hold_up_writeback);
        let finding = match self.config.actuation.lifting_is_told {
            true => self.memory.news(is_concerned, limit),
            false if is_concerned => self.memory.news_of_change(was_high, limit),
            false => None,
        };
        self.ledger.effects.extend(finding.map(Effect::Found));
    }

    /// While memory is short a tenant would have been capped that had no cap when that began.
    pub(crate) fn tell_refused_caps(&mut self) {
        let actuation = &self.config.actuation;
        if actuation.lifting_is_told && self.memory.is_high() && self.disks.values().any(Steering::refuses_caps) {
            let finding = self.memory.news(true, actuation.caps_lift_at_memory_stall_permille);
            self.ledger.effects.extend(finding.map(Effect::Found));
        }
    }
}

/// The pressure as far as caps are concerned.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct MemoryPressure {
    last: Option<(Nanos, Pressure)>,
    average_permille: f64,
    calm_since: Option<Nanos>,
    is_high: bool,
    /// People were told that it cannot be known.
    told_absent: bool,
    /// People were told that caps are lifted, and not yet that they are back.
    #[serde(default)]
    told_lifted: bool,
}

impl MemoryPressure {
    /// Takes what the host has waited until now; `limit_permille` of 0 is never reached.
    pub(crate) fn sampled(&mut self, now: Nanos, waited: Option<Pressure>, limit_permille: u32) {
        let Some(waited) = waited else {
            *self = Self { told_absent: self.told_absent, told_lifted: self.told_lifted, ..Self::default() };
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

    /// What people are to know after a sample. That caps are lifted concerns them only if a cap stands, may stand or is refused
    /// (`is_concerned`); that they are back, whoever was told that they are lifted.
    pub(crate) fn news(&mut self, is_concerned: bool, limit_permille: u32) -> Option<Finding> {
        match (self.told_lifted, self.is_high) {
            (false, true) if is_concerned => Some(self.lifted(limit_permille)),
            (true, false) => Some(self.back()),
            _ if is_concerned => self.absent(limit_permille),
            _ => None,
        }
    }

    /// The same of earlier versions, which told of no cap that was refused, nor that caps are back where none stood any more.
    pub(crate) fn news_of_change(&mut self, was_high: bool, limit_permille: u32) -> Option<Finding> {
        match (was_high, self.is_high) {
            (false, true) => Some(self.lifted(limit_permille)),
            (true, false) => Some(self.back()),
            _ => self.absent(limit_permille),
        }
    }

    fn lifted(&mut self, limit_permille: u32) -> Finding {
        self.told_lifted = true;
        let (now, limit) = (percent(self.average_permille), percent(f64::from(limit_permille)));
        let message = format!(
            "caps are lifted: in {now:.0} % of the last ten seconds every process that wanted to run waited for memory (limit \
             {limit:.0} %), and a capped tenant that must write back first would hold up the whole host. They come back \
             when it has been below {:.0} % for {} s.",
            limit / 2.0,
            CALM.as_secs_f64(),
        );
        found(FindingKind::CapsLifted, message)
    }

    fn back(&mut self) -> Finding {
        self.told_lifted = false;
        let message =
            format!("memory pressure is down to {:.1} %: caps are dealt again.", percent(self.average_permille));
        found(FindingKind::CapsBack, message)
    }

    fn absent(&mut self, limit_permille: u32) -> Option<Finding> {
        if self.last.is_some() || limit_permille == 0 || self.told_absent {
            return None;
        }
        self.told_absent = true;
        let message = "the host's memory pressure (PSI) cannot be read, so caps are not lifted under memory pressure: boot with psi=1.";
        Some(found(FindingKind::Unreadable, message.to_owned()))
    }
}

fn percent(permille: f64) -> f64 {
    permille / 10.0
}

fn found(kind: FindingKind, message: String) -> Finding {
    Finding { kind, device: None, tenant: None, message }
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
        assert_eq!(memory.news(true, 100).map(|finding| finding.kind), Some(FindingKind::Unreadable));
        memory.sampled(Nanos::from_secs(2), None, 100);
        assert_eq!(memory.news(true, 100), None);
        assert_eq!(MemoryPressure::default().news(true, 0), None);
    }

    #[test]
    fn whoever_was_told_that_caps_are_lifted_is_told_that_they_are_back() {
        let told = |lifting_is_told: bool, is_concerned: [bool; 4]| {
            let mut memory = MemoryPressure::default();
            let told = [false, true, true, false].into_iter().zip(is_concerned).map(|(is_high, is_concerned)| {
                let was_high = std::mem::replace(&mut memory.is_high, is_high);
                memory.last = Some((Nanos::ZERO, Pressure::default()));
                let finding = match lifting_is_told {
                    true => memory.news(is_concerned, 100),
                    false => is_concerned.then(|| memory.news_of_change(was_high, 100)).flatten(),
                };
                finding.map(|finding| finding.kind)
            });
            told.collect::<Vec<_>>()
        };
        let [lifted, back] = [FindingKind::CapsLifted, FindingKind::CapsBack].map(Some);
        assert_eq!(told(true, [true, true, false, false]), [None, lifted, None, back]);
        assert_eq!(told(true, [false, false, true, false]), [None, None, lifted, back], "a cap is refused later");
        assert_eq!(told(true, [false; 4]), [None; 4], "nobody is concerned");
        assert_eq!(told(false, [true, true, false, false]), [None, lifted, None, None], "as in earlier recordings");
    }
}
