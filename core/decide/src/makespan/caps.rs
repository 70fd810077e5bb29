//! Whether jobs that wait are told caps: only while the first is slower without them.
//!
//! Weights take from the others what the first uses, and no more; caps take the disk from them whatever it uses. A first job that is bound by
//! a processor or a network is as fast beside others, and keeps nobody from a disk that caps leave idle (docs/adr/0082). What says it is the
//! first's own rate, with caps and without, and not how busy the disk is: without caps the others make it busy.

use serde::{Deserialize, Serialize};

/// Of what it has where others are held back, that the first has at least where nobody slows it.
pub(super) const UNSLOWED: f64 = 0.8;
/// Slices for which caps are tried: in the first an elevator still serves others.
const TRIED_SLICES: u32 = 2;
/// Slices until caps are tried again, at least at first and in any case.
const SLICES: u32 = 2;
const SLICES_MAX: u32 = 32;

/// Of one disk, while the same job goes first. Rates are in bytes a second, and 0 where it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum Caps {
    /// As far as is known the first needs them.
    #[default]
    Needed,
    /// For so many slices the first has been as fast without them; `differs` is the most that it had if the last slice was no longer like
    /// that. One such slice is chance.
    Needless { without: f64, differs: Option<f64>, slices: u32, in_vain: u32 },
    /// Whether it still is is tried.
    Tried { without: f64, with: f64, slices: u32, in_vain: u32 },
}

impl Caps {
    /// A slice ended in which nobody was held back and the first had so much; before that, while others were, it had at most `with`.
    pub(super) fn after_lifting(with: f64, without: f64) -> Self {
        let begins = with <= 0.0 && without > 0.0;
        if begins || without < UNSLOWED * with { Self::Needed } else { Self::needless(without, 0) }
    }

    /// A slice ended in which others were held back, and the first had so much.
    pub(super) fn slice(self, now: f64) -> Self {
        match self {
            Self::Needed => Self::Needed,
            // It has computed, and does no more: how fast it is beside others nobody knows.
            Self::Needless { without, .. } if without <= 0.0 && now > 0.0 => Self::Needed,
            Self::Needless { without, differs, slices, in_vain } => {
                let slices = slices + 1;
                let is_due = slices >= SLICES.saturating_mul(1 << in_vain.min(16)).min(SLICES_MAX);
                let is_other = now < UNSLOWED * without || without < UNSLOWED * now;
                match differs.filter(|_| is_other && is_due) {
                    Some(before) => Self::tried(before.max(now), in_vain),
                    None if slices >= SLICES_MAX => Self::tried(without, in_vain),
                    None => Self::Needless { without, differs: is_other.then_some(now), slices, in_vain },
                }
            }
            Self::Tried { without, with, slices, in_vain } => {
                let (with, slices) = (with.max(now), slices + 1);
                match slices < TRIED_SLICES {
                    true => Self::Tried { without, with, slices, in_vain },
                    false if without < UNSLOWED * with => Self::Needed,
                    false => Self::needless(with, in_vain.saturating_add(1)),
                }
            }
        }
    }

    pub(super) const fn are_told(&self) -> bool {
        !matches!(self, Self::Needless { .. })
    }

    const fn needless(without: f64, in_vain: u32) -> Self {
        Self::Needless { without, differs: None, slices: 0, in_vain }
    }

    const fn tried(without: f64, in_vain: u32) -> Self {
        Self::Tried { without, with: 0.0, slices: 0, in_vain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In how many of so many slices caps are told, where the first has so much with them and without.
    fn told(caps: &mut Caps, slices: u32, (with, without): (f64, f64)) -> u32 {
        let slice = |_| {
            let are_told = caps.are_told();
            *caps = caps.slice(if are_told { with } else { without });
            u32::from(are_told)
        };
        (0..slices).map(slice).sum()
    }

    #[test]
    fn a_first_job_that_is_as_fast_without_caps_has_them_tried_now_and_then_only() {
        let mut caps = Caps::after_lifting(200.0, 190.0);
        assert!(!caps.are_told());
        assert_eq!(told(&mut caps, 340, (200.0, 190.0)), 20, "two slices of 34");
        assert!(Caps::after_lifting(200.0, 100.0).are_told());
        assert!(Caps::after_lifting(200.0, 0.0).are_told(), "it was starved, or began to compute");
    }

    #[test]
    fn caps_are_back_soon_once_the_first_needs_them() {
        for without in [100.0, 400.0] {
            let mut caps = Caps::after_lifting(200.0, 200.0);
            // It falls, or would read more than it did.
            let needed = (0..5).filter(|_| told(&mut caps, 1, (1_000.0, without)) == 1).count();
            assert_eq!((needed, caps), (3, Caps::Needed), "{without}");
        }
        let mut unsteady = Caps::after_lifting(200.0, 200.0);
        let rates = [100.0, 200.0];
        let tried: u32 = (0..400).map(|slice| told(&mut unsteady, 1, (rates[slice % 2], rates[slice % 2]))).sum();
        assert!(tried < 60, "an unsteady one is not tried again and again: {tried}");
    }

    #[test]
    fn one_that_computes_has_caps_again_as_soon_as_it_reads() {
        let mut caps = Caps::after_lifting(0.0, 0.0);
        assert_eq!(told(&mut caps, 20, (0.0, 0.0)), 0);
        assert_eq!((told(&mut caps, 1, (0.0, 50.0)), caps), (0, Caps::Needed));
        assert_eq!(Caps::after_lifting(0.0, 50.0), Caps::Needed, "it read in the slice in which that was tried");
    }
}
