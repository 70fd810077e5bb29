//! Token buckets and the drift of tags: what pClock and HTBS have in common.
//!
//! Tags are instants. When every backlogged flow is ahead of its contract, all their tags are moved back together (seed
//! 001; pClock's CheckAndAdjustTags). Moving is one addition here: a tag is stored as `instant + drift` where `drift` is the
//! sum of all moves so far, so that raising `drift` moves every stored tag at once.

use crate::{Contract, Cost, Request};
use minerva_model::Nanos;

/// An instant on the caller's clock, or a stored tag, in nanoseconds. Signed, as a moved tag may lie before the epoch; and
/// wide, as the drift grows by 1/rate with every request that is served ahead of its contract: a flow that was promised one
/// a minute and is served 10,000 a second would fill 63 bits in four hours.
pub(crate) type Instant = i128;

/// The contract of a flow that has none, under HTBS: served when nobody who has one is due, apart from its part.
pub(crate) const BACKGROUND: Contract = Contract { rate_per_second: 0.0, burst: 0.0, delay: Nanos::from_secs(3600) };

/// `now` as an [`Instant`].
pub(crate) fn instant(now: Nanos) -> Instant {
    Instant::from(now.0)
}

/// An [`Instant`] as a float. Most fit into 64 bits, for which the processor has an instruction.
pub(crate) fn float(instant: Instant) -> f64 {
    i64::try_from(instant).map_or_else(|_| wide_float(instant), |narrow| narrow as f64)
}

/// Apart, as otherwise both ways are computed and one is chosen.
#[cold]
#[inline(never)]
fn wide_float(instant: Instant) -> f64 {
    instant as f64
}

/// The other way, rounded towards zero.
pub(crate) fn whole(nanos: f64) -> Instant {
    // Below 2^63 in both directions.
    if nanos.abs() < 9e18 { Instant::from(nanos as i64) } else { wide_whole(nanos) }
}

#[cold]
#[inline(never)]
fn wide_whole(nanos: f64) -> Instant {
    nanos as Instant
}

/// A contract's rate; one of zero counts as a unit an hour, so that such a flow is background.
pub(crate) fn rate_per_second(contract: &Contract) -> f64 {
    if contract.rate_per_second > 0.0 { contract.rate_per_second } else { 1.0 / 3600.0 }
}

/// How long a unit lasts at a contract's rate.
pub(crate) fn unit_ns(contract: &Contract) -> f64 {
    1e9 / rate_per_second(contract)
}

/// How long `units` last at a contract's rate, no time if there are none.
pub(crate) fn time_of(contract: &Contract, units: f64) -> Instant {
    whole((unit_ns(contract) * units).clamp(0.0, 1e18))
}

/// How long `units` of `unit_ns` last, at least a nanosecond, so that the tags of a flow's requests differ.
pub(crate) fn spacing(unit_ns: f64, units: u32) -> Instant {
    whole((unit_ns * f64::from(units)).clamp(0.0, 1e18)).max(1)
}

/// One flow's bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// Cost units available; negative when the flow ran ahead of its contract.
    pub(crate) tokens: f64,
    updated: Instant,
    drift_seen: Instant,
    filled: bool,
}

impl Bucket {
    /// Adds what came since the last call. `cap` bounds it above, `floor` below. With `credit_drift`, time by which the
    /// tags were moved back counts as time that passed: a flow that used spare capacity owes nothing for it. The answer is how
    /// much of a debt beyond the floor was forgiven.
    pub(crate) fn refill(&mut self, now: Instant, drift: Instant, rate: f64, fill: Fill) -> f64 {
        if !self.filled {
            *self = Self { tokens: fill.initial, updated: now, drift_seen: drift, filled: true };
        }
        let passed = (now - self.updated).max(0);
        let moved = if fill.credit_drift { (drift - self.drift_seen).max(0) } else { 0 };
        // Of several requests at one instant most find it filled.
        let earned = if passed | moved == 0 { 0.0 } else { rate * (float(passed) + float(moved)) / 1e9 };
        let filled = self.tokens + earned;
        self.tokens = filled.clamp(fill.floor, fill.cap);
        self.updated = now;
        self.drift_seen = drift;
        (fill.floor - filled).max(0.0)
    }

    /// While a flow has nothing queued its tags do not move, so moves in that time are none of its credit.
    pub(crate) fn skip_drift(&mut self, drift: Instant) {
        self.drift_seen = drift;
    }
}

/// Bounds of a bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fill {
    pub(crate) initial: f64,
    pub(crate) cap: f64,
    pub(crate) floor: f64,
    pub(crate) credit_drift: bool,
}

/// What a request costs, as a float.
pub(crate) fn cost_units(cost: Cost, request: &Request) -> f64 {
    cost.of(request) as f64
}
