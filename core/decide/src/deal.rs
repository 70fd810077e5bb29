//! Shares that are dealt anew among some tenants of a disk.
//!
//! A policy that acts on what is foreseen may be wrong, so it moves no more of a share than the forecast has earned. Each tenant
//! of which something is foreseen puts down a stake: a part of its share, as large as the skill of its own forecast. All stakes
//! together are dealt out by claims. Hence, whatever is foreseen:
//!
//! - the shares on a disk add up to what they were, and who has no stake has the part of the disk that it had;
//! - who has one keeps all of its share but the stake (Purohit, Svitkina and Kumar 2018 mix round robin and
//!   shortest job first by predictions in this way);
//! - without skill there is no stake, and who has the only one gets it back.
//!
//! **Past use.** Who goes first transfers most, so that by its history it would soon be behind those who are to wait, and what was
//! dealt to it would be taken from it again. Past use is a guess of who will use much; what a session has transferred says nothing against one
//! whose size is known. So of what each keeps, the same part is dealt by shares as they would be if the sessions under way were no past:
//! as far as the forecasts have earned it, and among those who have stakes only. Who has a stake keeps all of its share but that part
//! twice over. A session that outgrew its forecast counts as past use again.

use minerva_model::{ForecastSettings, Nanos};
use serde::{Deserialize, Serialize};

/// No forecast is trusted with more of a share than this.
pub(crate) const PART_MAX: f64 = 0.9;

/// A forecast is stale after so many slices, and not before this time: shorter slices are summed before they are forecast from.
const STALE_SLICES: u64 = 2;
const STALE_LEAST: Nanos = Nanos::from_secs(3);

/// Whether a forecast is young enough to act on, at the end of a slice of this length.
pub(crate) fn is_fresh(made_at: Nanos, now: Nanos, slice: Nanos) -> bool {
    now.since(made_at) <= Nanos(slice.0.saturating_mul(STALE_SLICES)).max(STALE_LEAST)
}

/// How stakes are dealt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dealing {
    /// See [`ForecastSettings::waiting_take_part`].
    pub(crate) waiting_take_part: bool,
    /// See [`ForecastSettings::sessions_are_no_past`].
    pub(crate) sessions_are_no_past: bool,
}

impl Dealing {
    pub(crate) fn of(settings: &ForecastSettings) -> Self {
        let ForecastSettings { waiting_take_part, sessions_are_no_past, .. } = *settings;
        Self { waiting_take_part, sessions_are_no_past }
    }
}

/// Which stakes are dealt among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DealKind {
    /// By what is left of I/O sessions.
    Session,
    /// By what the next slice will bring.
    NextSlice,
    /// To whose burst goes first.
    Burst,
}

/// What a tenant puts down, and what it is dealt by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stake {
    pub(crate) kind: DealKind,
    /// The part of its share that it puts in, 0 to [`PART_MAX`].
    pub(crate) part: f64,
    /// Against the claims of the others; at least 0.
    pub(crate) claim: f64,
    /// Its share without the use that is under way, to its share with it; 1 where that use is past use as any other.
    pub(crate) past: f64,
    /// It used the disk in the last slice or waits for it. Who does not is told what it would be dealt, and takes nothing from the others.
    pub(crate) present: bool,
}

impl Stake {
    /// The part of the share that is kept and dealt by what was before.
    fn kept(&self) -> f64 {
        self.part * (1.0 - self.part)
    }
}

/// One kind's stakes on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Deal {
    shares: f64,
    claims: f64,
    stakes: u32,
    /// Of what is kept, the part that is dealt by shares as they would be without the use under way; and those shares.
    #[serde(default)]
    kept: f64,
    #[serde(default)]
    kept_claims: f64,
}

/// All stakes on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Deals([Deal; 3]);

impl Deals {
    /// Takes a stake in, of a pair whose share without it is `product`.
    pub(crate) fn put_in(&mut self, stake: &Stake, product: f64) {
        let deal = &mut self.0[stake.kind as usize];
        deal.shares += stake.part * product;
        deal.claims += stake.claim;
        deal.stakes += 1;
        deal.kept += stake.kept() * product;
        deal.kept_claims += stake.kept() * product * stake.past;
    }

    /// Two put something in, so that shares may move.
    pub(crate) fn are_dealt(&self) -> bool {
        self.0.iter().any(|deal| deal.stakes > 1)
    }

    /// The factor on a share of `product`; nothing where it changes nothing.
    pub(crate) fn factor(&self, stake: &Stake, product: f64) -> Option<f64> {
        let mut deals = *self;
        if !stake.present {
            deals.put_in(stake, product);
        }
        let Deal { shares, claims, kept, kept_claims, .. } = deals.0[stake.kind as usize];
        let dealt = if claims > 0.0 { shares * stake.claim / claims } else { stake.part * product };
        let by_past = if kept_claims > 0.0 { stake.past * kept / kept_claims } else { 1.0 };
        let keeps = 1.0 - stake.part + stake.kept() * (by_past - 1.0);
        let factor = keeps + dealt / product.max(f64::MIN_POSITIVE);
        // Who has the only stake gets it back, but for rounding.
        (factor.is_finite() && (factor - 1.0).abs() > 1e-6).then_some(factor)
    }
}
