//! Whether a disk is short of time: only then is anybody held back on it.
//!
//! A disk can be idle because jobs are held back: while the first computes for a moment, an elevator waits for it rather than serve another. So
//! that a disk is not busy says little while somebody is held back. What says it is whether the first is as fast when nobody is. That is tried
//! after two slices, and if the disk was short after all, after twice as many the next time, for as long as the same job goes first
//! (docs/adr/0061). If the disk was busy then and the first as fast, places stay and caps go (`caps`).

use super::Rule;
use super::caps::{Caps, UNSLOWED};
use minerva_model::{DeviceId, IoSignals, Signals, TenantId};
use serde::{Deserialize, Serialize};

/// A disk that is less busy is not short.
const BUSY_PERMILLE: u32 = 800;
/// Slices in which a disk is not busy until nobody is held back on it any more.
const SLICES: u32 = 2;
/// The most that this grows to.
const SLICES_MAX: u32 = 32;

/// Of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub(super) struct Lifting {
    /// Slices in a row in which it was not short.
    slack: u32,
    /// How often in a row the disk was short after all when nobody was held back.
    in_vain: u32,
    /// Who went first last, and the most bytes a second that it had meanwhile; where caps are tried, since the disk was last busy.
    first: Option<(TenantId, f64)>,
    caps: Caps,
}

/// As it is in a snapshot. Those of earlier versions have the number of slices alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Slices(u32),
    Whole {
        slack: u32,
        in_vain: u32,
        first: Option<(TenantId, f64)>,
        #[serde(default)]
        caps: Caps,
    },
}

impl From<Stored> for Lifting {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Slices(slack) => Self { slack, ..Self::default() },
            Stored::Whole { slack, in_vain, first, caps } => Self { slack, in_vain, first, caps },
        }
    }
}

impl Lifting {
    /// A slice ended in which the disk was not busy (`is_slack`) and this job went first, if any did; `rate` says how many bytes a second
    /// one had. Whether the disk is short.
    pub(super) fn slice(&mut self, is_slack: bool, first: Option<TenantId>, rate: impl Fn(TenantId) -> f64) -> bool {
        self.note_first(first);
        let is_tried = self.is_lifted();
        let mut is_slack = is_slack;
        if let Some((of, most)) = &mut self.first {
            let now = rate(*of);
            if is_tried {
                let is_slowed = now > 0.0 && now < UNSLOWED * *most;
                is_slack &= !is_slowed;
                self.in_vain += u32::from(!is_slack);
            } else {
                *most = most.max(now);
            }
        }
        self.slack = if is_slack { self.slack.saturating_add(1) } else { 0 };
        !self.is_lifted()
    }

    /// The same, where caps are tried; a job that computes has no rate.
    pub(super) fn slice_with_caps(
        &mut self,
        is_slack: bool,
        first: Option<TenantId>,
        rate: impl Fn(TenantId) -> f64,
    ) -> bool {
        self.note_first(first);
        let is_lifted = self.is_lifted();
        let mut is_slack = is_slack;
        if let Some((of, most)) = &mut self.first {
            let now = rate(*of);
            if is_lifted {
                is_slack &= now <= 0.0 || now >= UNSLOWED * *most;
                if !is_slack {
                    self.in_vain += 1;
                    self.caps = Caps::after_lifting(*most, now);
                    *most = 0.0;
                }
            } else {
                self.caps = self.caps.slice(now);
                // What it had while the disk was busy, it may not want any more.
                *most = if is_slack { most.max(now) } else { 0.0 };
            }
        }
        self.slack = if is_slack { self.slack.saturating_add(1) } else { 0 };
        !self.is_lifted()
    }

    /// Those who wait are told caps.
    pub(super) const fn tells_caps(&self) -> bool {
        self.caps.are_told()
    }

    fn note_first(&mut self, first: Option<TenantId>) {
        if let Some(new) = first.filter(|new| self.first.is_none_or(|(known, _)| known != *new)) {
            *self = Self { first: Some((new, 0.0)), ..Self::default() };
        }
    }

    /// Who went first is gone: what was found out of it is worth nothing for the next.
    pub(super) fn gone(&mut self, is_there: impl Fn(TenantId) -> bool) {
        if self.first.is_some_and(|(first, _)| !is_there(first)) {
            *self = Self::default();
        }
    }

    /// It went first when anybody last did.
    pub(super) fn went_first(&self, job: TenantId) -> bool {
        self.first.is_some_and(|(first, _)| first == job)
    }

    fn is_lifted(&self) -> bool {
        self.slack >= SLICES.saturating_mul(1 << self.in_vain.min(16)).min(SLICES_MAX)
    }
}

impl Rule {
    /// Whether jobs are to go one before the other on a disk: where nothing is known of it, too.
    pub(super) fn is_short(&mut self, signals: &Signals, device: DeviceId) -> bool {
        let row = signals.devices.iter().find(|row| row.device == device);
        let is_slack = row.is_some_and(|row| row.busy_permille < BUSY_PERMILLE);
        let of_disk = (device, TenantId(0))..=(device, TenantId(u64::MAX));
        let first = self.places.range(of_disk).find(|(_, position)| position.place == 0);
        let first = first.map(|((_, tenant), _)| *tenant);
        let mut lifting = self.lifting.remove(&device).unwrap_or_default();
        let rate = |of: TenantId| {
            let row = signals.io.iter().find(|row| row.device == device && row.tenant == of);
            row.map_or(0.0, IoSignals::bytes_per_second)
        };
        let is_short =
            if !self.settings.in_order_within_slices {
                lifting.slice(is_slack, None, |_| 0.0)
            } else if !self.settings.caps_are_tried {
                lifting.slice(is_slack, first, rate)
            } else {
                lifting.slice_with_caps(is_slack, first, |of| {
                    if self.computes(device, of, signals) { 0.0 } else { rate(of) }
                })
            };
        self.lifting.insert(device, lifting);
        is_short
    }
}

#[cfg(test)]
mod tests {
    use super::{Caps, Lifting};
    use minerva_model::TenantId;

    const FIRST: TenantId = TenantId(1);

    /// Slices in each of which the disk is not busy, and the first has so many bytes a second where it goes first and where nobody does.
    fn held(lifting: &mut Lifting, slices: u32, (ahead, beside): (f64, f64)) -> Vec<bool> {
        let mut is_held = true;
        let slice = |_| {
            let first = is_held.then_some(FIRST);
            is_held = lifting.slice(true, first, |_| if first.is_some() { ahead } else { beside });
            is_held
        };
        (0..slices).map(slice).collect()
    }

    #[test]
    fn a_disk_that_is_idle_because_jobs_are_held_back_is_tried_seldom_and_one_that_is_not_short_stays_free() {
        let tried = held(&mut Lifting::default(), 63, (100.0, 50.0)).iter().filter(|held| !**held).count();
        assert_eq!(tried, 4, "after 2, 4, 8, 16 and 32 slices that it goes first");
        let free = held(&mut Lifting::default(), 20, (100.0, 90.0));
        assert_eq!(free.iter().position(|held| !held), Some(1));
        assert!(free[1..].iter().all(|held| !held), "{free:?}");
    }

    #[test]
    fn what_was_found_out_of_one_is_not_held_against_the_next() {
        let mut lifting = Lifting::default();
        held(&mut lifting, 30, (100.0, 50.0));
        lifting.gone(|_| true);
        assert!(lifting.in_vain > 1);
        assert!(lifting.slice(true, Some(TenantId(2)), |_| 1.0) && lifting.in_vain == 0, "another goes first");
        lifting.gone(|tenant| tenant == FIRST);
        assert_eq!(lifting, Lifting::default(), "it is gone");
    }

    #[test]
    fn a_snapshot_of_an_earlier_version_has_slices_alone() {
        let lifting: Lifting = serde_json::from_str("3").unwrap();
        assert_eq!(lifting, Lifting { slack: 3, ..Lifting::default() });
        let lifting = Lifting { slack: 1, in_vain: 2, first: Some((FIRST, 8.0)), caps: Caps::after_lifting(1.0, 1.0) };
        assert_eq!(serde_json::from_str::<Lifting>(&serde_json::to_string(&lifting).unwrap()).unwrap(), lifting);
    }
}
