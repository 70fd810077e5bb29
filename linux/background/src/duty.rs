//! When one queue's work may run, by its pace and by whether others pause.

use minerva_model::{BackgroundPace, Nanos};

/// A share's time against others is taken in stretches of this.
const STRETCH: Nanos = Nanos::from_millis(200);
/// Time against others that was not used, because the daemon was late, is not made up for beyond this.
const CREDIT_MAX: Nanos = Nanos::from_millis(1000);

/// Looks are at most 250 ms apart. What passes beyond this between two does not count as running: `CLOCK_BOOTTIME` goes on while a host is
/// suspended, and nothing runs then.
pub(crate) const LOOK_MAX: Nanos = Nanos::from_secs(1);

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

    /// Whether it may run now, `passed` after the last call, at which it was let run or not (`is_running`).
    pub(crate) fn may_run(&mut self, passed: Nanos, is_gap: bool, is_running: bool) -> bool {
        let BackgroundPace::Share(permille) = self.pace else { return is_gap };
        let earned = Nanos(passed.0 / 1000 * u64::from(permille));
        self.credit = (self.credit + earned).min(CREDIT_MAX);
        if is_running {
            self.credit = Nanos(self.credit.0.saturating_sub(passed.0));
        }
        // In whole stretches: every change costs.
        self.is_spending = if self.is_spending { self.credit > Nanos::ZERO } else { self.credit >= STRETCH };
        is_gap || self.is_spending
    }
}

#[cfg(test)]
mod tests {
    use super::Duty;
    use minerva_model::{BackgroundPace, Nanos};

    /// Looks every 10 ms for a minute; thousandths of the time in which it ran, and how often it began.
    fn ran(pace: BackgroundPace, is_gap: impl Fn(u64) -> bool) -> (u64, u64) {
        let mut duty = Duty { pace, ..Duty::default() };
        let (mut is_running, mut count, mut begins) = (false, 0, 0);
        for look in 0..6_000 {
            let may = duty.may_run(Nanos::from_millis(10), is_gap(look), is_running);
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
}
