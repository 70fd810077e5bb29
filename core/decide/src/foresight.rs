//! Proactive shares (Malensek et al. 2016, section 4.1): who is expected to be done soon goes ahead, although all start together.
//!
//! Each tenant whose forecast has skill puts down that part of its share, and the stakes are dealt (`deal.rs`) in inverse proportion
//! to the square of what is expected of each: what is left of its I/O session, or, where sessions have no skill, what the next
//! slice brings. So the shortest remaining session goes first as far as the forecasts have earned it, and the rest of each share
//! stays as without them. The square stands between equal shares and the whole disk for the shortest: that would be optimal if
//! sizes were known, and bets everything on the order of two that are nearly equal.
//!
//! The class of a session (idle, light, moderate, heavy) and its size are one scale here: places, each four times the last.
//!
//! **Guards.** A forecast without skill, or older than two slices, counts for nothing. A place and a part move only when they
//! are clearly off, so noise is not followed. Whoever asked for something itself (a level, a boost, an operation) is left alone.
//! And what is foreseen is corrected by what is measured: who has transferred more than was foreseen since it last paused is taken
//! to have as much left as it exceeds that by (near least attained service, Nuyens and Wierman 2008), whatever is foreseen of it
//! by then. So files that look short gain no more than what they look like ahead of the others, once between two pauses.

use crate::compose::{DecideInput, Pair, SharePolicy};
use crate::deal::{DealKind, PART_MAX, Stake, is_fresh};
use crate::presence::PAUSE;
use crate::stance::Stance;
use minerva_model::{DeviceId, Forecast, Horizon, Nanos, Outlook, PolicyName, Reason, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run keeps the part that its forecast had earned for so long after the forecast lost its skill, as one does that has been
/// outgrown. By then the tenant's history speaks.
const HELD: Nanos = Nanos::from_secs(60);
/// The upper end of the first place; from there each is four times as large.
const FIRST_PLACE_BYTES: f64 = 1024.0 * 1024.0;
const FIRST_PLACE_OF_A_SLICE_BYTES: f64 = 64.0 * 1024.0;
/// The last place: 4 TiB and more.
const LAST_PLACE: f64 = 11.0;
/// A place farther means so many halvings of the claim: the square of four.
const CLAIM_EXPONENT: f64 = 4.0;
/// How far beyond the border of a place, in places, the expected size must be before the place changes.
const DEAD_BAND: f64 = 0.25;
/// Forecasts of single slices are trusted with less: an error is paid at once and a gain lasts a slice.
const NEXT_SLICE_PART_MAX: f64 = 0.5;
/// A part is a multiple of this; it falls at once and rises when it would do so by two.
const PART_STEP: f64 = 0.1;

/// Who goes ahead, as a factor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    pairs: BTreeMap<(TenantId, DeviceId), Run>,
}

/// A tenant's use of a disk since it last paused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run {
    used_at: Nanos,
    /// What it has transferred, in bytes.
    attained: f64,
    /// What its first forecast said that it would transfer in all.
    total: Option<f64>,
    skilled_at: Nanos,
    foreseen: Option<Foreseen>,
}

/// What is foreseen of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Foreseen {
    horizon: Horizon,
    expected_bytes: f64,
    outgrown: bool,
    part: f64,
    place: f64,
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::FORESIGHT
    }

    fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
        if input.outlook.is_empty() {
            self.pairs.clear();
            return;
        }
        for row in input.signals.io.iter().filter(|row| row.transferred.bytes() > 0) {
            let pair = (row.tenant, row.device);
            let run = self.pairs.entry(pair).or_insert_with(|| Run::new(now));
            run.take(now, row.transferred.bytes() as f64, skilled(&input.outlook, pair, now, row.elapsed));
        }
        self.pairs.retain(|_, run| now.since(run.used_at) < PAUSE);
    }

    fn has_stakes(&self) -> bool {
        self.pairs.values().any(|run| run.foreseen.is_some())
    }

    fn stake(&self, pair: &Pair<'_>) -> Option<Stake> {
        let foreseen = self.foreseen(pair)?;
        let kind = if foreseen.horizon == Horizon::Session { DealKind::Session } else { DealKind::NextSlice };
        // Bytes that are left count per weight, as bytes that were used do.
        let claim = foreseen.part * f64::from(pair.weight_percent.max(1)) / 100.0
            * libm::exp2(-CLAIM_EXPONENT * foreseen.place);
        let past = if kind == DealKind::Session && !foreseen.outgrown { pair.past() } else { 1.0 };
        Some(Stake { kind, part: foreseen.part, claim, past, present: pair.present })
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        self.stake(pair).and_then(|stake| pair.deals.factor(&stake, product))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let Some(Foreseen { horizon, expected_bytes, outgrown, part, .. }) = self.foreseen(pair) else {
            return Reason::NoHistory;
        };
        Reason::Foreseen { horizon, expected_bytes, outgrown, part_permille: (part * 1e3).round() as u32 }
    }
}

impl Rule {
    fn foreseen(&self, pair: &Pair<'_>) -> Option<Foreseen> {
        let asked_for_nothing = pair.stance == Stance::default();
        self.pairs.get(&(pair.tenant, pair.device)).filter(|_| asked_for_nothing)?.foreseen
    }
}

/// The forecasts of a pair that may be acted on: of its session, and of its next slice.
fn skilled(
    outlook: &Outlook,
    (tenant, device): (TenantId, DeviceId),
    now: Nanos,
    slice: Nanos,
) -> (Option<&Forecast>, Option<&Forecast>) {
    let get = |horizon| {
        let forecast = outlook.get(tenant, device, horizon)?;
        (forecast.skill >= PART_STEP && is_fresh(forecast.made_at, now, slice)).then_some(forecast)
    };
    (get(Horizon::Session), get(Horizon::NextSlice))
}

impl Run {
    fn new(now: Nanos) -> Self {
        Self { used_at: now, attained: 0.0, total: None, skilled_at: Nanos::ZERO, foreseen: None }
    }

    /// Takes a slice in which it used the disk, and what is foreseen.
    fn take(&mut self, now: Nanos, bytes: f64, (session, next): (Option<&Forecast>, Option<&Forecast>)) {
        if now.since(self.used_at) >= PAUSE {
            *self = Self::new(now);
        }
        self.used_at = now;
        self.attained += bytes;
        let before = self.foreseen;
        let held = before.filter(|before| before.horizon == Horizon::Session && now.since(self.skilled_at) < HELD);
        if let Some(session) = session {
            self.skilled_at = now;
            self.total.get_or_insert(self.attained + session.bytes().max(FIRST_PLACE_BYTES));
            self.foreseen = Some(self.session(session.bytes(), part(before, session.skill.min(PART_MAX))));
        } else if let Some(held) = held {
            let left = (held.expected_bytes - bytes).max(0.0);
            self.foreseen = Some(self.session(left, held.part));
        } else if let Some(next) = next {
            // What the last slice brought is measured: a forecast of less must wait until it has come true.
            let expected = next.bytes().max(bytes);
            let part = part(before, next.skill.min(NEXT_SLICE_PART_MAX));
            self.foreseen = Some(self.foreseen(Horizon::NextSlice, expected, false, part));
        } else {
            self.foreseen = None;
        }
        self.foreseen = self.foreseen.filter(|foreseen| foreseen.part > 0.0);
    }

    fn session(&self, left: f64, part: f64) -> Foreseen {
        let exceeded = self.total.map_or(0.0, |total| self.attained - total);
        self.foreseen(Horizon::Session, left.max(exceeded), exceeded > left, part)
    }

    fn foreseen(&self, horizon: Horizon, expected_bytes: f64, outgrown: bool, part: f64) -> Foreseen {
        let first = if horizon == Horizon::Session { FIRST_PLACE_BYTES } else { FIRST_PLACE_OF_A_SLICE_BYTES };
        let before = self.foreseen.filter(|before| before.horizon == horizon).map(|before| before.place);
        Foreseen { horizon, expected_bytes, outgrown, part, place: place(before, expected_bytes / first) }
    }
}

/// The place of a size in units of the first place: the one before unless the size is clearly beyond its borders.
fn place(before: Option<f64>, size: f64) -> f64 {
    let exact = (libm::log2(size.max(1.0)) / 2.0).min(LAST_PLACE);
    let Some(before) = before else { return exact.ceil() };
    before.clamp((exact - DEAD_BAND).ceil().max(0.0), (exact + DEAD_BAND).ceil().min(LAST_PLACE))
}

/// The part that a skill has earned.
fn part(before: Option<Foreseen>, skill: f64) -> f64 {
    // The least that makes 0.3 three steps.
    let earned = (skill / PART_STEP + 1e-9).floor() * PART_STEP;
    let before = before.map_or(0.0, |before| before.part);
    let keeps = before > 0.0 && earned >= before && earned < before + 1.5 * PART_STEP;
    if keeps { before } else { earned }
}

#[cfg(test)]
mod tests {
    use super::{LAST_PLACE, part, place};

    #[test]
    fn places_are_powers_of_four_and_hold_at_their_borders() {
        let places: Vec<f64> = [0.0, 0.5, 1.0, 3.9, 4.1, 64.0, 65.0, 1024.0, 1e12].map(|size| place(None, size)).into();
        assert_eq!(places, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, LAST_PLACE]);
        let held: Vec<f64> = [5.5, 4.0, 3.0, 2.0].map(|size| place(Some(1.0), size)).into();
        assert_eq!(held, [1.0, 1.0, 1.0, 1.0]);
        assert_eq!((place(Some(1.0), 6.0), place(Some(2.0), 2.0)), (2.0, 1.0));
    }

    #[test]
    fn a_part_falls_at_once_and_rises_late() {
        let foreseen = |part| {
            Some(super::Foreseen {
                horizon: minerva_model::Horizon::Session,
                expected_bytes: 0.0,
                outgrown: false,
                part,
                place: 0.0,
            })
        };
        assert!((part(None, 0.3) - 0.3).abs() < 1e-9);
        assert_eq!(part(None, 0.09), 0.0);
        for (skill, expected) in [(0.45, 0.3), (0.51, 0.5), (0.29, 0.2), (0.0, 0.0)] {
            assert!((part(foreseen(0.3), skill) - expected).abs() < 1e-9, "{skill}");
        }
    }
}
