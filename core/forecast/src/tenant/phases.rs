//! When a tenant will use the disk and when not (Malensek et al. 2016, section 4.2), scored as what it is: a probability.

use super::rates::{AHEAD, Rates};
use crate::online::{NAIVE, Naive, SkillMeter};
use serde::{Deserialize, Serialize};

/// Forecasts are scored so many slices ahead: as far as a turn at the disk reaches.
const LEAD: usize = 5;

/// Follows whether a tenant uses the disk. 0.6 kB.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Phases {
    naive: Naive,
    skill: SkillMeter,
    /// What was said of the next slices, and what the naive forecasts were then; by the slice they are of.
    pending: [Option<(f64, [f64; NAIVE])>; LEAD],
    slices: usize,
}

impl Phases {
    /// Takes a slice in, with the series as they are after it.
    pub fn observe(&mut self, is_busy: bool, rates: &[Rates; 2]) {
        let outcome = f64::from(u8::from(is_busy));
        let due = &mut self.pending[self.slices % LEAD];
        if let Some((forecast, naive)) = due.take() {
            self.skill.observe(forecast, &naive, outcome);
        }
        self.naive.observe(outcome);
        *due = busy_ahead(rates).map(|busy| (f64::from(busy[LEAD - 1]), self.naive.forecasts()));
        self.slices = self.slices.wrapping_add(1);
    }

    /// As [`SkillMeter::told`].
    pub fn skill(&self) -> f64 {
        self.skill.told()
    }
}

/// Probability that the tenant reads or writes in each of the next slices; `None` where neither series has a model of it.
pub fn busy_ahead(rates: &[Rates; 2]) -> Option<[f32; AHEAD]> {
    if rates.iter().all(|rates| !rates.foresees_phases()) {
        return None;
    }
    let [reads, writes] = rates.each_ref().map(Rates::busy_ahead);
    Some(std::array::from_fn(|at| 1.0 - (1.0 - reads[at]) * (1.0 - writes[at])))
}

#[cfg(test)]
mod tests {
    use super::{Phases, busy_ahead};
    use crate::arima::{Budget, Workspace};
    use crate::tenant::{AHEAD, Rates};

    /// Skill after twenty minutes of a tenant that reads while `reads` says so.
    fn followed(reads: impl Fn(u64) -> bool) -> (f64, [f32; AHEAD]) {
        let (mut phases, mut rates) = (Phases::default(), [Rates::default(), Rates::default()]);
        let mut buffers = (Vec::new(), Workspace::default());
        for slice in 0..1200 {
            let is_busy = reads(slice);
            rates[0].observe(if is_busy { 5e7 } else { 0.0 }, AHEAD);
            rates[1].observe(0.0, AHEAD);
            if slice % 60 == 59 {
                rates[0].fit(&mut buffers, &mut Budget::default());
            }
            phases.observe(is_busy, &rates);
        }
        (phases.skill(), busy_ahead(&rates).expect("it is fitted"))
    }

    #[test]
    fn a_cycle_is_foreseen_with_skill_and_noise_without() {
        let (skill, busy) = followed(|slice| slice % 12 < 6);
        assert!(skill > 0.5, "{skill}");
        let came: Vec<bool> = (1200..1200 + AHEAD as u64).map(|slice| slice % 12 < 6).collect();
        assert_eq!(busy.map(|busy| busy > 0.5).to_vec(), came);
        let noise = |slice: u64| (slice + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1;
        let mut state = 1_u64;
        let draws: Vec<bool> = (0..1200)
            .map(|slice| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407 + slice);
                noise(state >> 20)
            })
            .collect();
        let (skill, _) = followed(|slice| draws[slice as usize]);
        assert!(skill <= 0.0, "{skill}");
    }
}
