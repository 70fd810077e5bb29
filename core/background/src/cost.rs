//! What work costs, learnt while it runs.

use minerva_model::BackgroundCost;
use serde::{Deserialize, Serialize};

/// What was measured before counts for no more than this, so that an estimate follows a disk that changes.
const MEMORY_SECONDS: f64 = 600.0;
/// Less is not enough for a first estimate.
const FIRST_SECONDS: f64 = 1.0;
/// Of the newest measurement in what others lose.
const NEWEST_WEIGHT: f64 = 0.2;
/// Beside work that ran for a smaller part of a slice nothing is learnt of what it costs others; so no second of it costs them more than
/// the inverse.
const RAN_SHARE_MIN: f64 = 0.2;
/// Before it was measured: a second of work takes a second of the others'.
const SLOW_DOWN_ASSUMED: f64 = 1.0;
/// An estimate that moved by this part is worth a new plan, and keeping.
const NEWS_SHARE: f64 = 0.1;
/// What is lost at once leaves this part of what was known to have been done.
const KEPT_SHARE_MIN: f64 = 0.5;
const SECONDS_PER_ITEM_RANGE: (f64, f64) = (1e-12, 1e6);

/// A decaying mean over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    /// Adds a value that held for `seconds`.
    pub(crate) fn add(&mut self, value: f64, seconds: f64, half_life_seconds: f64) {
        self.add_signed(crate::quantity(value), seconds, half_life_seconds);
    }

    /// The same of a value that may be below 0.
    pub(crate) fn add_signed(&mut self, value: f64, seconds: f64, half_life_seconds: f64) {
        let keep = 0.5_f64.powf(seconds / half_life_seconds);
        let value = if value < 0.0 { -crate::quantity(-value) } else { crate::quantity(value) };
        self.sum = self.sum * keep + value * seconds;
        self.weight = self.weight * keep + seconds;
    }

    /// The mean as if the value had been 0 before it was looked at, for so many seconds in all.
    pub(crate) fn over(&self, seconds_min: f64) -> f64 {
        self.sum / self.weight.max(seconds_min)
    }

    pub(crate) fn get(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Estimates of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Learnt {
    pub(crate) cost: BackgroundCost,
    /// Ran, and did, since the estimate was last changed.
    pending: (f64, f64),
    /// What was last told to be kept.
    told: BackgroundCost,
}

impl Learnt {
    /// From what is known, or assumed.
    pub(crate) fn new(cost: BackgroundCost) -> Self {
        let seconds_per_item = match cost.seconds_per_item {
            seconds if seconds.is_finite() && seconds > 0.0 => {
                seconds.clamp(SECONDS_PER_ITEM_RANGE.0, SECONDS_PER_ITEM_RANGE.1)
            }
            _ => 1.0,
        };
        let cost = BackgroundCost { seconds_per_item, ..cost };
        Self { cost, pending: (0.0, 0.0), told: cost }
    }

    /// It ran for so long and did so many items meanwhile.
    pub(crate) fn ran(&mut self, seconds: f64, items: f64) {
        self.pending.0 += crate::quantity(seconds);
        self.pending.1 += crate::quantity(items);
        // Of one that did nothing and lost nothing it is not known what its items cost.
        if self.pending.0 < FIRST_SECONDS || self.pending.1 == 0.0 {
            return;
        }
        let (seconds, items) = std::mem::take(&mut self.pending);
        let before = self.cost.measured_seconds.min(MEMORY_SECONDS);
        let known = before / self.cost.seconds_per_item;
        let all = (known + items).max(known * KEPT_SHARE_MIN);
        if all <= 0.0 {
            return;
        }
        let (low, high) = SECONDS_PER_ITEM_RANGE;
        self.cost.seconds_per_item = ((before + seconds) / all).clamp(low, high);
        self.cost.measured_seconds += seconds;
    }

    /// So many items that were done are to be done once more.
    pub(crate) fn lost(&mut self, items: f64) {
        self.pending.1 -= crate::quantity(items);
    }

    /// It only looked at what there is to do. What ran since it last did anything was spent on that.
    pub(crate) fn looked(&mut self) {
        if self.pending.1 == 0.0 {
            self.pending.0 = 0.0;
        }
    }

    /// Others made so many requests a second beside it, where they make `alone` without it; it ran for this part of the time.
    pub(crate) fn slowed(&mut self, beside: f64, alone: f64, ran_share: f64) {
        if alone <= 0.0 || ran_share < RAN_SHARE_MIN {
            return;
        }
        let lost = ((1.0 - beside / alone) / ran_share).clamp(0.0, 1.0 / RAN_SHARE_MIN);
        let before = self.cost.slow_down.unwrap_or(lost);
        self.cost.slow_down = Some(before + NEWEST_WEIGHT * (lost - before));
    }

    /// Seconds of the others' requests that a second of its work costs them.
    pub(crate) fn slow_down(&self) -> f64 {
        self.cost.slow_down.filter(|lost| lost.is_finite() && *lost >= 0.0).unwrap_or(SLOW_DOWN_ASSUMED)
    }

    /// What is to be kept, once it has changed enough.
    pub(crate) fn take_news(&mut self) -> Option<BackgroundCost> {
        let moved = |a: f64, b: f64| (a - b).abs() > NEWS_SHARE * b.abs().max(f64::MIN_POSITIVE);
        let slow_down = self.cost.slow_down.unwrap_or(0.0);
        let is_news = moved(self.cost.seconds_per_item, self.told.seconds_per_item)
            || (slow_down - self.told.slow_down.unwrap_or(0.0)).abs() > NEWS_SHARE
            || (self.told.measured_seconds <= 0.0 && self.cost.measured_seconds > 0.0);
        is_news.then(|| {
            self.told = self.cost;
            self.cost
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Learnt, Mean};
    use minerva_model::BackgroundCost;

    const ASSUMED: BackgroundCost = BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None };

    #[test]
    fn what_was_assumed_counts_for_nothing_and_what_was_measured_is_followed() {
        let mut learnt = Learnt::new(ASSUMED);
        learnt.ran(0.5, 10.0);
        assert_eq!(learnt.cost, ASSUMED, "half a second is not enough");
        learnt.ran(0.5, 10.0);
        assert_eq!(learnt.cost.seconds_per_item, 0.05);
        assert_eq!(learnt.take_news(), Some(learnt.cost));
        assert_eq!(learnt.take_news(), None);
        // The disk becomes four times as slow.
        (0..3600).for_each(|_| learnt.ran(1.0, 5.0));
        assert!((0.19..=0.2).contains(&learnt.cost.seconds_per_item), "{:?}", learnt.cost);
    }

    #[test]
    fn what_others_lose_is_in_proportion_to_how_long_it_ran() {
        let mut learnt = Learnt::new(ASSUMED);
        learnt.slowed(90.0, 100.0, 0.1);
        assert_eq!(learnt.cost.slow_down, None, "too short");
        learnt.slowed(75.0, 100.0, 0.5);
        assert_eq!(learnt.cost.slow_down, Some(0.5));
        learnt.slowed(120.0, 100.0, 0.5);
        assert_eq!(learnt.cost.slow_down, Some(0.4));
        learnt.slowed(0.0, 0.0, 1.0);
        assert_eq!(learnt.cost.slow_down, Some(0.4));
        // Seeks: a quarter of the time takes three quarters of what others do.
        (0..100).for_each(|_| learnt.slowed(25.0, 100.0, 0.25));
        assert!((learnt.slow_down() - 3.0).abs() < 1e-6, "{:?}", learnt.cost);
        (0..100).for_each(|_| learnt.slowed(1e-9, 1e9, 0.2));
        assert!(learnt.slow_down() <= 5.0, "{:?}", learnt.cost);
    }

    #[test]
    fn no_number_makes_an_estimate_useless() {
        let wild = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300];
        for cost in wild {
            let mut learnt = Learnt::new(BackgroundCost { seconds_per_item: cost, ..ASSUMED });
            for (seconds, items) in wild.iter().flat_map(|a| wild.map(|b| (*a, b))) {
                learnt.ran(seconds, items);
                let estimate = learnt.cost.seconds_per_item;
                assert!(estimate.is_finite() && estimate > 0.0, "{cost} {seconds} {items}: {estimate}");
            }
        }
    }

    #[test]
    fn a_mean_forgets_by_half_in_its_half_life() {
        let mut mean = Mean::default();
        assert_eq!(mean.get(), None);
        mean.add(10.0, 1000.0, 1000.0);
        assert_eq!(mean.get(), Some(10.0));
        mean.add(0.0, 1000.0, 1000.0);
        assert!((mean.get().unwrap_or(0.0) - 10.0 / 3.0).abs() < 1e-9);
    }
}
