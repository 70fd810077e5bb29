//! What is refused at the operators' socket, for the log: the first refusals of each user in each period, one line for the rest.
//! Pure: the instant is an argument.

use minerva_model::Nanos;
use std::collections::BTreeMap;

/// Lines of one user in one period.
const LINES_MAX: u64 = 10;
/// How long refusals are counted before the next lines.
const PERIOD: Nanos = Nanos::from_secs(60);
/// Users that have lines of their own in one period; the others are counted together.
const USERS_MAX: usize = 64;

/// Counts refusals by the number of the user.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts {
    began_at: Nanos,
    by_user: BTreeMap<u32, u64>,
    unlogged: u64,
}

impl RefusalCounts {
    /// Counts a refusal; whether it is to be logged.
    pub(crate) fn count(&mut self, uid: u32) -> bool {
        let has_room = self.by_user.len() < USERS_MAX || self.by_user.contains_key(&uid);
        let is_logged = has_room && {
            let count = self.by_user.entry(uid).or_default();
            *count += 1;
            *count <= LINES_MAX
        };
        self.unlogged += u64::from(!is_logged);
        is_logged
    }

    /// Ends the period when it is over; how many refusals of it were not logged, if any.
    pub(crate) fn end_period(&mut self, now: Nanos) -> Option<u64> {
        if now.since(self.began_at) < PERIOD {
            return None;
        }
        let ended = std::mem::replace(self, Self { began_at: now, ..Self::default() });
        (ended.unlogged > 0).then_some(ended.unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, PERIOD, RefusalCounts, USERS_MAX};
    use minerva_model::Nanos;

    #[test]
    fn a_flood_is_a_few_lines_and_one_sum_and_hides_nobody_elses() {
        let mut counts = RefusalCounts::default();
        let start = Nanos::from_secs(1000);
        assert_eq!(counts.end_period(start), None);
        let logged = (0..1000).filter(|_| counts.count(7)).count();
        assert_eq!(logged as u64, LINES_MAX);
        assert!(counts.count(8), "another user has lines of its own");
        assert_eq!(counts.end_period(start + Nanos::SECOND), None, "the period is not over");
        assert_eq!(counts.end_period(start + PERIOD), Some(1000 - LINES_MAX));
        assert!(counts.count(7));
        assert_eq!(counts.end_period(start + PERIOD + PERIOD), None);
    }

    #[test]
    fn many_users_get_no_more_room() {
        let mut counts = RefusalCounts::default();
        let logged = (0..10_000).filter(|uid| counts.count(*uid)).count();
        assert_eq!((logged, counts.by_user.len()), (USERS_MAX, USERS_MAX));
    }
}
