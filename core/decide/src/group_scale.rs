//! From use to a position among the priority groups (docs/adr/0015).
//!
//! Linear: `groups * own / heaviest`; the paper gives no other. Everyone below a tenth of the heaviest is in the first of ten groups,
//! whether it moves 9 MB/s or 10 kB/s beside one of 100.
//!
//! By decades: the first group up to a hundredth of the heaviest, the second up to a tenth, and the others in equal steps above it.
//! Ranks among tenants of one size stay about as fine, and orders of magnitude are told apart.

use minerva_model::GroupScale;

/// Parts of the heaviest's use at which the first and the second group end.
const DECADES: [f64; 2] = [0.01, 0.1];
/// With fewer groups there is no room for decades.
const GROUPS_MIN: u8 = 4;

/// The position, 0 to `groups`, of who uses `part` of what the heaviest does, times `weight`.
pub(crate) fn position(scale: GroupScale, groups: u8, part: f64, weight: f64) -> f64 {
    let [first, second] = DECADES;
    match scale {
        GroupScale::Decades if groups >= GROUPS_MIN => {
            let position = match part {
                part if part < first => part / first,
                part if part < second => 1.0 + (part - first) / (second - first),
                part => 2.0 + (f64::from(groups) - 2.0) * (part - second) / (1.0 - second),
            };
            weight * position
        }
        // In this order, so that recordings replay to the last bit.
        GroupScale::Decades | GroupScale::Linear => f64::from(groups) * (weight * part),
    }
}

#[cfg(test)]
mod tests {
    use super::position;
    use minerva_model::GroupScale;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn orders_of_magnitude_are_told_apart() {
        let groups = |scale, groups: u8, uses: &[f64]| -> Vec<u8> {
            let group = |own: &f64| (position(scale, groups, own / uses[0], 1.0) as u8).min(groups - 1);
            uses.iter().map(group).collect()
        };
        /// Uses, number of groups, groups by linear scale and by decades.
        type Case<'a> = (&'a [f64], u8, &'a [u8], &'a [u8]);
        let table: [Case<'_>; 4] = [
            (&[100.0, 9.0, 0.01], 10, &[9, 0, 0], &[9, 1, 0]),
            (&[1.0, 0.9, 0.7, 0.5, 0.3, 0.15, 0.05], 10, &[9, 9, 7, 5, 3, 1, 0], &[9, 9, 7, 5, 3, 2, 1]),
            (&[1.0, 0.4, 0.05, 0.005], 4, &[3, 1, 0, 0], &[3, 2, 1, 0]),
            (&[1.0, 0.4, 0.05], 3, &[2, 1, 0], &[2, 1, 0]),
        ];
        for (uses, count, linear, decades) in table {
            assert_eq!(groups(GroupScale::Linear, count, uses), linear, "{uses:?}");
            assert_eq!(groups(GroupScale::Decades, count, uses), decades, "{uses:?}");
        }
    }

    proptest! {
        #[test]
        fn who_uses_more_is_never_before_who_uses_less(less in 0.0..1.0_f64, more in 0.0..1.0_f64, groups in 1..=255_u8) {
            let (less, more) = (less.min(more), less.max(more));
            for scale in [GroupScale::Linear, GroupScale::Decades] {
                prop_assert!(position(scale, groups, less, 0.5) <= position(scale, groups, more, 0.5));
                prop_assert!((position(scale, groups, 1.0, 1.0) - f64::from(groups)).abs() < 1e-9, "the heaviest is in the last");
            }
        }
    }
}
