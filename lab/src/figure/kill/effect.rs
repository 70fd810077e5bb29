//! Whether what equal tenants get is as it was before the first kill, not only what the files say.
//!
//! The same groups race before and after, with nobody else at work, on a disk that is slow enough for the elevator to decide and not
//! the processors. The referee is tried as well: how far two races before the first kill are from their mean, which is what this
//! machine cannot tell from an effect, and whether an effect that was left on purpose is found.

use crate::error::Result;
use crate::figure::knob_files::{own_weight_anew, remove_line, weigh};
use crate::figure::race::Race;
use crate::workload::TenantCgroup;
use minerva_model::Nanos;
use serde::Serialize;

/// BFQ learns a fresh disk's peak rate meanwhile.
const WARM_UP: Nanos = Nanos::from_secs(4);
/// The weight whose effect is left on purpose, where others have 100.
const CONTROL_WEIGHT: u32 = 300;
const CONTROL_WINDOW: Nanos = Nanos::from_secs(2);

/// What was measured of effects.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EffectResult {
    /// Kills after which it was measured what tenants of equal weight get.
    pub checked: u32,
    /// The largest deviation of a tenant's part of the disk from what it was before the first kill, as a part of that.
    pub error_max: f64,
    /// The same between two races before the first kill.
    pub noise: f64,
    /// The same when one tenant was left a weight that its file does not show.
    pub control: f64,
}

/// How long to look, and what is too far off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// How long tenants race. Each of five has some twenty-five turns of the disk in 16 s.
    pub window: Nanos,
    /// How far a tenant's part of the disk may be from what it was before the first kill, as a part of that.
    pub error_max: f64,
}

/// What each tenant got before the first kill.
pub(super) struct Referee<'a> {
    race: Race<'a>,
    groups: Vec<&'a TenantCgroup>,
    before: Vec<f64>,
    bounds: Bounds,
}

impl<'a> Referee<'a> {
    /// Races before the first kill. Whoever else uses the disk must rest. What is farther off than it may be is looked at twice.
    pub(super) fn new(race: Race<'a>, groups: Vec<&'a TenantCgroup>, bounds: Bounds) -> Result<(Self, EffectResult)> {
        race.run(&groups, WARM_UP)?;
        let (first, second) = (race.run(&groups, bounds.window)?, race.run(&groups, bounds.window)?);
        let before: Vec<f64> = first.iter().zip(&second).map(|(one, other)| (one + other) / 2.0).collect();
        let noise = worst(&deviations(&first, &before));
        let referee = Self { race, groups, before, bounds };
        let control = referee.control()?;
        Ok((referee, EffectResult { noise, control, ..EffectResult::default() }))
    }

    /// How far the worst is from what it got before. What exceeds the bound is raced once more, and the mean of both counts: what
    /// stays stays, what was chance becomes less.
    pub(super) fn error(&self) -> Result<f64> {
        let first = self.race.run(&self.groups, self.bounds.window)?;
        let error = worst(&deviations(&first, &self.before));
        if error <= self.bounds.error_max {
            return Ok(error);
        }
        let second = self.race.run(&self.groups, self.bounds.window)?;
        let both: Vec<f64> = first.iter().zip(&second).map(|(one, other)| (one + other) / 2.0).collect();
        Ok(worst(&deviations(&both, &self.before)))
    }

    /// Removes one tenant's weight the way that leaves its effect, which must be found, and then the effect.
    fn control(&self) -> Result<f64> {
        let Some(group) = self.groups.first() else { return Ok(0.0) };
        weigh(group, self.race.disk, CONTROL_WEIGHT)?;
        // The kernel leaves what was in force, which is what the group was last served with.
        self.race.run(&self.groups, CONTROL_WINDOW)?;
        remove_line(group, self.race.disk)?;
        let error = self.error();
        own_weight_anew(group)?;
        error
    }
}

/// How far each part is from what it was, as a part of that.
fn deviations(parts: &[f64], before: &[f64]) -> Vec<f64> {
    parts.iter().zip(before).map(|(part, before)| part / before.max(f64::MIN_POSITIVE) - 1.0).collect()
}

fn worst(deviations: &[f64]) -> f64 {
    deviations.iter().map(|deviation| deviation.abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{deviations, worst};

    #[test]
    fn the_worst_counts_whichever_way_it_is_off() {
        let off = |parts: &[f64]| worst(&deviations(parts, &[0.2, 0.4, 0.4]));
        assert!((off(&[0.2, 0.4, 0.4])).abs() < 1e-9);
        assert!((off(&[0.1, 0.45, 0.45]) - 0.5).abs() < 1e-9);
        assert!((off(&[0.3, 0.35, 0.35]) - 0.5).abs() < 1e-9);
    }
}
