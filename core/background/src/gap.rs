//! Whether others have paused, looked at every few milliseconds while work waits for a gap.
//!
//! A pause is believed once it has lasted for a while: most are the time that a program thinks between two requests (Golding and
//! others, "Idleness is not sloth", 1995; Eggert and Touch, "Idletime scheduling with preemption intervals", 2005). How long follows
//! what came of the pauses before: it doubles after one that was over sooner than it took to be believed, and shrinks after long ones.

use minerva_model::Nanos;

const WAIT_MIN: Nanos = Nanos::from_millis(60);
const WAIT_FIRST: Nanos = Nanos::from_millis(120);
const WAIT_MAX: Nanos = Nanos::from_millis(480);
/// A pause in which so many times the wait could be used was worth believing sooner.
const LONG: u64 = 8;

/// Pauses of whoever else uses a disk.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    wait: Nanos,
    quiet_since: Option<Nanos>,
    used_since: Option<Nanos>,
}

impl Default for Gap {
    fn default() -> Self {
        Self { wait: WAIT_FIRST, quiet_since: None, used_since: None }
    }
}

impl Gap {
    /// Takes how many requests others made since the last look; whether work may run until the next.
    pub fn look(&mut self, now: Nanos, requests: u64) -> bool {
        if requests > 0 {
            if let Some(used) = self.used_since.take().map(|since| now.since(since)) {
                self.wait = if used < self.wait {
                    Nanos(self.wait.0 * 2).min(WAIT_MAX)
                } else if used.0 > LONG * self.wait.0 {
                    Nanos(self.wait.0 - self.wait.0 / LONG).max(WAIT_MIN)
                } else {
                    self.wait
                };
            }
            self.quiet_since = Some(now);
            return false;
        }
        let quiet = now.since(*self.quiet_since.get_or_insert(now));
        let is_gap = quiet >= self.wait;
        if is_gap {
            self.used_since.get_or_insert(now);
        }
        is_gap
    }

    /// Nobody looks for a while: what comes meanwhile says nothing of the pauses before.
    pub fn interrupt(&mut self) {
        (self.quiet_since, self.used_since) = (None, None);
    }

    /// How long a pause must last to be believed.
    pub fn wait(&self) -> Nanos {
        self.wait
    }
}

#[cfg(test)]
mod tests {
    use super::{Gap, WAIT_FIRST, WAIT_MAX, WAIT_MIN};
    use minerva_model::Nanos;

    /// Looks every 5 ms at others that are busy and pause in turns; the part of pauses that may be used, and of busy times.
    fn shares(gap: &mut Gap, busy_ms: u64, pause_ms: u64, seconds: u64) -> (f64, f64) {
        let (mut in_pauses, mut in_busy) = ((0, 0), (0, 0));
        for at in (0..seconds * 1000).step_by(5) {
            let is_busy = at % (busy_ms + pause_ms) < busy_ms;
            // Twenty requests a second while busy.
            let requests = u64::from(is_busy && at % 50 == 0);
            let may = gap.look(Nanos::from_millis(at), requests);
            let count = if is_busy { &mut in_busy } else { &mut in_pauses };
            *count = (count.0 + u32::from(may), count.1 + 1);
        }
        let share = |(may, all): (u32, u32)| f64::from(may) / f64::from(all.max(1));
        (share(in_pauses), share(in_busy))
    }

    #[test]
    fn pauses_of_seconds_are_used_and_thinking_time_is_not() {
        let (pauses, busy) = shares(&mut Gap::default(), 3000, 2000, 100);
        assert!(pauses > 0.9 && busy < 0.01, "{pauses} {busy}");
        let mut gap = Gap::default();
        let (_, busy) = shares(&mut gap, 100, 100, 100);
        assert!(busy < 0.01, "{busy}");
    }

    #[test]
    fn the_wait_follows_what_came_of_pauses_within_its_bounds() {
        let mut gap = Gap::default();
        assert_eq!(gap.wait(), WAIT_FIRST);
        // Pauses that end just after they were believed.
        shares(&mut gap, 50, 130, 60);
        assert!(gap.wait() > WAIT_FIRST && gap.wait() <= WAIT_MAX, "{}", gap.wait().0);
        shares(&mut gap, 1000, 60_000, 6000);
        assert_eq!(gap.wait(), WAIT_MIN);
    }

    #[test]
    fn when_nobody_looked_is_no_pause() {
        let mut gap = Gap::default();
        for second in (0..100).step_by(2) {
            gap.look(Nanos::from_secs(second), 0);
            assert!(gap.look(Nanos::from_secs(second + 1), 0));
            gap.interrupt();
            assert!(!gap.look(Nanos::from_secs(second + 1), 7));
        }
        assert_eq!(gap.wait(), WAIT_FIRST);
    }

    #[test]
    fn before_anything_was_seen_a_disk_is_not_taken_for_quiet() {
        let mut gap = Gap::default();
        assert!(!gap.look(Nanos::from_secs(5), 0));
        assert!(gap.look(Nanos::from_secs(6), 0));
        assert!(!gap.look(Nanos::from_secs(7), 1));
    }
}
