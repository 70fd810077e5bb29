//! Coverage of intervals where values repeat.
//!
//! What repeats exactly lies on the edge of its interval again and again. The quantile at an edge then has less than its part strictly
//! beyond it and more with the edge, so that neither counting all of what lies there as within nor none of it is right. As with a
//! randomised probability integral (Brockwell 2007) it counts in part: so much of it that the tail has its part, as far as what came before
//! says; here the expected count in place of a draw.

use crate::online::Interval;

/// What came beyond an edge and on it, and what was to come beyond.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    beyond: f64,
    on: f64,
    promised: f64,
}

impl Edge {
    /// The part of what lies on the edge that is within.
    fn within(&self) -> f64 {
        if self.on > 0.0 { 1.0 - ((self.promised - self.beyond) / self.on).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn take(&mut self, is_beyond: bool, is_on: bool, tail: f64) {
        self.beyond += f64::from(u8::from(is_beyond));
        self.on += f64::from(u8::from(is_on));
        self.promised += tail;
    }
}

/// Both edges of the intervals around one series of forecasts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edges {
    low: Edge,
    high: Edge,
}

impl Edges {
    /// Takes what came, beside an interval that is to hold the part `coverage` of it, 0 to 1: 1 if it lay strictly within, else 0; and how
    /// much of it is within if an edge counts in part, 0 to 1.
    pub fn observe(&mut self, coverage: f64, interval: Interval, came: f64) -> (f64, f64) {
        let Interval { low, high } = interval;
        // Nothing comes below 0: an interval that begins there has one tail only.
        let begins_at_zero = low <= 0.0;
        let (on_low, on_high) = (came == low && !begins_at_zero, came == high);
        let is_within = (low..=high).contains(&came);
        let mut in_part = f64::from(u8::from(is_within));
        if is_within && on_low {
            in_part -= 1.0 - self.low.within();
        }
        if is_within && on_high {
            in_part -= 1.0 - self.high.within();
        }
        let missed = 1.0 - coverage;
        let (tail_low, tail_high) = if begins_at_zero { (0.0, missed) } else { (missed / 2.0, missed / 2.0) };
        self.low.take(came < low, on_low, tail_low);
        self.high.take(came > high, on_high, tail_high);
        let is_strictly = is_within && !on_low && !on_high;
        (f64::from(u8::from(is_strictly)), in_part.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Edges;
    use crate::online::Interval;

    /// Of ten values one lies below, one above, and eight repeat on the edges.
    #[test]
    fn what_lies_on_an_edge_counts_in_part_and_too_wide_an_interval_stays_too_wide() {
        let part = |came: fn(usize) -> f64, interval: Interval| {
            let mut edges = Edges::default();
            (0..10_000).map(|at| edges.observe(0.8, interval, came(at)).1).sum::<f64>() / 10_000.0
        };
        let repeating = |at: usize| [5.0, 5.0, 9.0, 5.0, 5.0, 1.0, 5.0, 5.0, 5.0, 5.0][at % 10];
        let covered = part(repeating, Interval { low: 5.0, high: 5.0 });
        assert!((covered - 0.8).abs() < 0.01, "{covered}");
        let always = part(|_| 5.0, Interval { low: 5.0, high: 5.0 });
        assert!((always - 0.8).abs() < 0.01, "{always}");
        let wide = part(|at| (at % 10) as f64, Interval { low: -1.0, high: 10.0 });
        assert!(wide > 0.99, "{wide}");
        let narrow = part(|at| (at % 10) as f64, Interval { low: 3.0, high: 5.0 });
        assert!(narrow < 0.35, "{narrow}");
    }
}
