//! One disk's least share: which is needed for the guarantee, and when it changes.

use serde::{Deserialize, Serialize};

/// Slices in which a lower floor would do before it is lowered. Tenants come and go within seconds; raising is for them,
/// lowering only saves a little of the others' share and costs a write for everyone on the floor.
const SLICES_BEFORE_LOWERING: u32 = 10;

/// The parts of one disk's shares that the floor must know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Active {
    /// Shares that the floor can raise.
    pub(crate) steered: Vec<u32>,
    /// Tenants whose share nobody changes, each at the neutral share.
    pub(crate) excluded: u32,
}

/// One disk's floor: no steered share is below `level`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Floor {
    /// The least share.
    pub(crate) level: u32,
    /// What it guarantees, in thousandths of the disk.
    pub(crate) permille: u32,
    lower_would_do: u32,
    highest_needed: u32,
}

impl Active {
    /// The guaranteed part, in millionths of the disk.
    pub(crate) fn guarantee_ppm(&self, floor_permille: u32) -> u64 {
        let count = self.steered.len() as u64 + u64::from(self.excluded);
        if count == 0 {
            return 0;
        }
        (u64::from(floor_permille) * 1_000).min(500_000 / count)
    }

    /// The least share `level` such that, once every smaller share is raised to it, it is at least the guaranteed part of
    /// the sum.
    ///
    /// With `below` shares raised and the others summing to `others`, that is `level >= ppm (others + below * level)`,
    /// so `level = ppm * others / (1 - ppm * below)`, rounded up. Raising may lift the level above a further share, so it
    /// is taken again until nothing changes; `below` only grows. As `ppm * below` is at most a half, it ends and divides.
    pub(crate) fn level_needed(&self, ppm: u64) -> u32 {
        let excluded = u64::from(self.excluded) * 100;
        let mut level = 0;
        loop {
            let (mut below, mut others) = (0_u64, excluded);
            for share in self.steered.iter().map(|share| u64::from(*share)) {
                match share < level {
                    true => below += 1,
                    false => others += share,
                }
            }
            let needed = (ppm * others).div_ceil(1_000_000 - ppm * below);
            if needed <= level {
                return level.min(u64::from(u32::MAX)) as u32;
            }
            level = needed;
        }
    }
}

impl Floor {
    /// Takes the level of this slice into account. A higher one is in force at once, with an eighth to spare so that one
    /// more tenant does not raise it again; a clearly lower one when it has done for some slices. Any level above the
    /// needed one keeps the guarantee too, because a raised share grows faster than its part of the sum.
    pub(crate) fn update(&mut self, needed: u32, ppm: u64) {
        let lower_would_do = u64::from(needed) * 4 < u64::from(self.level) * 3;
        if needed > self.level {
            *self =
                Self { level: needed.saturating_add(needed / 8), permille: (ppm / 1_000) as u32, ..Self::default() };
        } else if lower_would_do {
            self.lower_would_do += 1;
            self.highest_needed = self.highest_needed.max(needed);
            if self.lower_would_do >= SLICES_BEFORE_LOWERING {
                let level = self.highest_needed + self.highest_needed / 8;
                *self = Self { level, permille: (ppm / 1_000) as u32, ..Self::default() };
            }
        } else {
            self.lower_would_do = 0;
            self.highest_needed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Active, Floor};
    use proptest::prelude::{prop_assert, proptest};

    fn active(steered: &[u32], excluded: u32) -> Active {
        Active { steered: steered.to_vec(), excluded }
    }

    #[test]
    fn levels_by_hand() {
        // (steered, excluded, permille, level)
        let cases: [(&[u32], u32, u32, u32); 7] = [
            (&[], 0, 10, 0),
            (&[2], 0, 10, 1),
            (&[100, 2], 0, 10, 2),
            (&[100, 100, 2, 2], 0, 10, 3),
            (&[10_000, 1], 0, 10, 102),
            (&[1], 3, 100, 34),
            // 500 / 2 = 250 thousandths at most, whatever was asked for.
            (&[300, 1], 0, 900, 100),
        ];
        for (steered, excluded, permille, level) in cases {
            let active = active(steered, excluded);
            let ppm = active.guarantee_ppm(permille);
            assert_eq!(active.level_needed(ppm), level, "{steered:?} + {excluded} at {permille}");
        }
    }

    #[test]
    fn the_floor_rises_at_once_and_sinks_late() {
        let mut floor = Floor::default();
        floor.update(3, 10_000);
        assert_eq!(floor.level, 3);
        for turn in 0..9 {
            floor.update(if turn % 2 == 0 { 2 } else { 1 }, 10_000);
            assert_eq!(floor.level, 3, "turn {turn}");
        }
        floor.update(1, 10_000);
        assert_eq!(floor.level, 2);
        floor.update(16, 10_000);
        assert_eq!(floor.level, 18);
        floor.update(14, 10_000);
        assert_eq!((floor.level, floor.lower_would_do), (18, 0));
    }

    proptest! {
        #[test]
        fn the_needed_level_and_every_higher_one_keep_the_floor_and_no_lower_one_does(
            steered in proptest::collection::vec(1..10_000_u32, 1..60),
            excluded in 0..5_u32,
            permille in 0..1_000_u32,
            higher in 0..500_u32,
        ) {
            let active = active(&steered, excluded);
            let ppm = u128::from(active.guarantee_ppm(permille));
            let keeps = |level: u32| {
                let raised: Vec<u128> = steered.iter().map(|share| u128::from((*share).max(level))).collect();
                let sum = raised.iter().sum::<u128>() + u128::from(excluded) * 100;
                raised.iter().all(|share| share * 1_000_000 >= ppm * sum)
            };
            let level = active.level_needed(ppm as u64);
            prop_assert!(level <= 10_000);
            prop_assert!(keeps(level) && keeps(level + higher));
            let least = steered.iter().copied().min().unwrap_or(0);
            prop_assert!(level <= least || !keeps(level - 1));
        }
    }
}
