//! The bucket of fixed size, which the paper compares with: cores by how full it is.

/// Debt between two marks of the pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedBucket {
    /// Below this part of the pool nothing is paid.
    pub low_share: f64,
    /// From this part on all cores pay.
    pub high_share: f64,
}

impl FixedBucket {
    /// As published: gentle at 40 % of the pool, most aggressive at 50 %.
    pub const PUBLISHED: Self = Self { low_share: 0.4, high_share: 0.5 };

    /// Cores for the background, of `cores`, at `debt_blocks` in a pool of `capacity_blocks`.
    pub fn cores(&self, cores: f64, debt_blocks: f64, capacity_blocks: f64) -> f64 {
        if debt_blocks.is_nan() || debt_blocks <= 0.0 {
            return 0.0;
        }
        // A pool without capacity is full.
        let share = if capacity_blocks > 0.0 { debt_blocks / capacity_blocks } else { f64::INFINITY };
        let width = (self.high_share - self.low_share).max(f64::MIN_POSITIVE);
        cores * ((share - self.low_share) / width).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::FixedBucket;

    #[test]
    fn nothing_below_the_low_mark_all_from_the_high_one_and_linear_between() {
        let cores = |share: f64| FixedBucket::PUBLISHED.cores(64.0, 1000.0 * share, 1000.0).round();
        assert_eq!([0.0, 0.39, 0.45, 0.5, 0.9].map(cores), [0.0, 0.0, 32.0, 64.0, 64.0]);
        assert_eq!(FixedBucket::PUBLISHED.cores(64.0, 1.0, 0.0), 64.0, "no capacity left");
        assert_eq!(FixedBucket::PUBLISHED.cores(64.0, f64::NAN, 1.0), 0.0);
    }
}
