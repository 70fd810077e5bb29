//! When one queue's work may run, by its pace, by whether others pause, and by whether it has the turn of its disk.

use minerva_model::{BackgroundPace, Nanos};

/// A share's time against others is taken in stretches of this.
const STRETCH: Nanos = Nanos::from_millis(200);
/// Time against others that was not used, because the daemon was late, is not made up for beyond this.
const CREDIT_MAX: Nanos = Nanos::from_millis(1000);

/// Looks are at most 250 ms apart. What passes beyond this between two does not count as running: `CLOCK_BOOTTIME` goes on while a host is
/// suspended, and nothing runs then.
pub(crate) const LOOK_MAX: Nanos = Nanos::from_secs(1);

/// What a disk has for the work that goes first on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// Nothing: work on another disk, which lies on the same one below, has the turn.
    Wait,
    /// Others use it, and work may take its share from them.
    Beside,
    /// Others pause.
    Gap,
}

impl Chance {
    pub(crate) fn is_gap(self) -> bool {
        self == Self::Gap
    }
}

/// The pace of a queue, and what it still has of its share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Duty {
    pub(crate) pace: BackgroundPace,
    /// Time against others that it still has.
    credit: Nanos,
    is_spending: bool,
}

impl Duty {
    /// Nothing is to be done: what was left of a share is lost.
    pub(crate) fn rest(&mut self) {
        self.credit = Nanos::ZERO;
    }

    /// Whether it may run now, `passed` after the last call, at which it was let run or not (`is_running`). While another has the turn it
    /// earns nothing: together they have no more of the disk below than one has.
    pub(crate) fn may_run(&mut self, passed: Nanos, chance: Chance, is_running: bool) -> bool {
        let BackgroundPace::Share(permille) = self.pace else { return chance.is_gap() };
        let has_turn = chance != Chance::Wait;
        if has_turn {
            let earned = Nanos(passed.0 / 1000 * u64::from(permille));
            self.credit = (self.credit + earned).min(CREDIT_MAX);
        }
        if is_running {
            self.credit = Nanos(self.credit.0.saturating_sub(passed.0));
        }
        // In whole stretches: every change costs.
        let is_enough = if self.is_spending { self.credit > Nanos::ZERO } else { self.credit >= STRETCH };
        self.is_spending = has_turn && is_enough;
        chance.is_gap() || self.is_spending
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Duty};
    use minerva_model::{BackgroundPace, Nanos};

    /// Looks every 10 ms for a minute; thousandths of the time in which it ran, and how often it began.
    fn ran(pace: BackgroundPace, is_gap: impl Fn(u64) -> bool) -> (u64, u64) {
        let mut duty = Duty { pace, ..Duty::default() };
        let (mut is_running, mut count, mut begins) = (false, 0, 0);
        for look in 0..6_000 {
            let chance = if is_gap(look) { Chance::Gap } else { Chance::Beside };
            let may = duty.may_run(Nanos::from_millis(10), chance, is_running);
            begins += u64::from(may && !is_running);
            is_running = may;
            count += u64::from(may);
        }
        (count / 6, begins)
    }

    #[test]
    fn a_share_is_taken_in_stretches_and_gaps_in_full() {
        let (part, begins) = ran(BackgroundPace::Share(250), |_| false);
        assert!((240..=260).contains(&part) && begins < 100, "{part} {begins}");
        // Others pause for a second in two: in the other it takes no more than its share.
        let (part, _) = ran(BackgroundPace::Share(250), |look| look / 100 % 2 == 0);
        assert!((500..=625).contains(&part), "{part}");
        assert_eq!(ran(BackgroundPace::Gaps, |_| false), (0, 0));
        assert_eq!(ran(BackgroundPace::Gaps, |_| true), (1_000, 1));
    }

    #[test]
    fn who_waits_for_its_turn_earns_nothing_meanwhile_and_does_not_run() {
        let mut duty = Duty { pace: BackgroundPace::Share(500), ..Duty::default() };
        let (mut is_running, mut ran) = (false, [0, 0]);
        for look in 0..6_000 {
            // Each second time ten seconds.
            let has_turn = look / 1_000 % 2 == 1;
            let chance = if has_turn { Chance::Beside } else { Chance::Wait };
            is_running = duty.may_run(Nanos::from_millis(10), chance, is_running);
            ran[usize::from(has_turn)] += u32::from(is_running);
        }
        assert!(ran[0] == 0 && (1_400..=1_500).contains(&ran[1]), "{ran:?} of 3,000 looks each");
    }
}
