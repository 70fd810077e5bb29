//! The policies' factors joined to a share: one ordered list, multiplied for the share and collected for the explanation.
//!
//! A policy is a file with a type `Rule` that implements [`SharePolicy`], and a line in the list in `lib.rs` (`mod` and name).

use crate::deal::{Deals, Stake};
use crate::equal_part::Everyone;
use crate::floor_level::Floor;
use crate::past_use::Fennel;
use crate::stance::Stance;
use crate::usage::Usage;
use minerva_model::{Decision, DeviceId, Factor, Nanos, Outlook, PolicyName, Reason, Share, Signals, TenantId};

/// What a slice is decided from.
#[derive(Clone, Debug)]
pub struct DecideInput<'a> {
    /// What happened in the slice that ended.
    pub signals: &'a Signals,
    /// What is expected of the next. It stands until the next slice.
    pub outlook: Outlook,
}

/// One policy: what it says of a pair, and what it keeps from slice to slice in its fields.
pub(crate) trait SharePolicy {
    /// The word people see.
    fn name(&self) -> PolicyName;

    /// A slice ended. Called once a slice, before any factor is asked for.
    fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
        let _ = (now, input);
    }

    /// What the share is multiplied by; nothing where it says nothing. `product` is the share so far, neither rounded nor
    /// brought into range.
    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64>;

    /// The share with the factor.
    fn apply(&self, pair: &Pair<'_>, product: f64, factor: f64) -> f64 {
        let _ = pair;
        product * factor
    }

    /// Why, where there is a factor. Asked for only when a decision is told.
    fn reason(&self, pair: &Pair<'_>, product: f64) -> Reason;

    /// Whether it ever has a stake.
    fn has_stakes(&self) -> bool {
        false
    }

    /// What the pair puts down to be dealt anew, and what it is dealt by.
    fn stake(&self, pair: &Pair<'_>) -> Option<Stake> {
        let _ = pair;
        None
    }

    /// Whether it has to know what shares others have on the disk.
    fn weighs_others(&self, device: DeviceId) -> bool {
        let _ = device;
        false
    }

    /// Whether the share of this tenant there is one of theirs ([`Pair::beside`]).
    fn is_other(&self, tenant: TenantId, device: DeviceId) -> bool {
        let _ = (tenant, device);
        true
    }

    /// Whether the tenant goes before others there in a part of the time, and is stopped for the rest of it.
    fn stands_apart(&self, tenant: TenantId, device: DeviceId) -> bool {
        let _ = (tenant, device);
        false
    }

    /// What people are to be told of when it changes, though the share may be the same.
    fn mark(&self, pair: &Pair<'_>) -> u8 {
        let _ = pair;
        0
    }
}

/// One among others.
pub(crate) fn any(policy: &dyn SharePolicy) -> &dyn SharePolicy {
    policy
}

/// What the policies can know of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) tenant: TenantId,
    pub(crate) device: DeviceId,
    pub(crate) now: Nanos,
    pub(crate) fennel: &'a Fennel,
    pub(crate) usage: &'a Usage,
    /// All histories on the disk.
    pub(crate) everyone: Everyone,
    pub(crate) stance: Stance,
    pub(crate) weight_percent: u32,
    /// Everyone on the disk is raised so many times.
    pub(crate) room: u32,
    /// Absent where the share without it is asked for.
    pub(crate) floor: Option<&'a Floor>,
    // Not `expect`: the sample policy reads them here, and so may one that is added.
    #[cfg_attr(not(test), allow(dead_code, reason = "policies that act on forecasts now take them with all signals"))]
    pub(crate) outlook: &'a Outlook,
    /// What those who are present beside a server of ours have together, before everyone is raised.
    pub(crate) beside: u32,
    /// What those on the disk put in to be dealt anew.
    pub(crate) deals: &'a Deals,
    /// It used the disk in the last slice, or may be waiting for it.
    pub(crate) present: bool,
    /// The group before the use that is under way began; nothing where that use counts as any other.
    pub(crate) before: Option<Option<u8>>,
}

impl Pair<'_> {
    /// The factor of past use, for policies that count in its place.
    pub(crate) fn history(&self) -> f64 {
        self.fennel.factor(self.usage.group)
    }

    /// The factor of past use without the use that is under way, to the one with it.
    pub(crate) fn past(&self) -> f64 {
        self.before.map_or(1.0, |before| self.fennel.factor(before) / self.history().max(f64::MIN_POSITIVE))
    }
}

/// What one policy said: the explanation is made from it only when it is wanted.
pub(crate) struct Said<'a> {
    policy: &'a dyn SharePolicy,
    value: f64,
    /// The share before and with it, neither rounded nor brought into range.
    before: f64,
    product: f64,
}

/// Every factor of a pair, in the order of multiplication.
pub(crate) fn factors<'a>(policies: &[&'a dyn SharePolicy], pair: &Pair<'_>) -> impl Iterator<Item = Said<'a>> {
    let mut product = f64::from(Share::NEUTRAL.get());
    policies.iter().filter_map(move |policy| {
        let before = product;
        let value = policy.factor(pair, before)?;
        product = policy.apply(pair, before, value);
        Some(Said { policy: *policy, value, before, product })
    })
}

/// The share by these policies, neither rounded nor brought into range.
pub(crate) fn product(policies: &[&dyn SharePolicy], pair: &Pair<'_>) -> f64 {
    factors(policies, pair).last().map_or(f64::from(Share::NEUTRAL.get()), |said| said.product)
}

/// What all `pairs` put in to be dealt anew, policy by policy, as each sees the shares that the ones before it left.
pub(crate) fn deals<'a>(policies: &[&dyn SharePolicy], pairs: impl Iterator<Item = Pair<'a>> + Clone) -> Deals {
    let mut deals = Deals::default();
    for (index, policy) in policies.iter().enumerate().filter(|(_, policy)| policy.has_stakes()) {
        let before = deals;
        for pair in pairs.clone() {
            let pair = Pair { deals: &before, ..pair };
            if let Some(stake) = policy.stake(&pair).filter(|stake| stake.present) {
                deals.put_in(&stake, product(&policies[..index], &pair));
            }
        }
    }
    deals
}

/// The share.
pub(crate) fn share(policies: &[&dyn SharePolicy], pair: &Pair<'_>) -> Share {
    Share::from_f64(product(policies, pair))
}

/// The share with every reason.
pub(crate) fn decision(policies: &[&dyn SharePolicy], pair: &Pair<'_>) -> Decision {
    let factor = |said: Said<'_>| Factor {
        policy: said.policy.name(),
        value: said.value,
        reason: said.policy.reason(pair, said.before),
    };
    let mut factors: Vec<Factor> = factors(policies, pair).map(factor).collect();
    // The operator's weight is multiplied early, as use counts per weight. People read first what the tenant itself did.
    factors.sort_by_key(|factor| match factor.reason {
        Reason::OperatorWeight { .. } => 1,
        Reason::Room { .. } | Reason::Floor { .. } => 2,
        _ => 0,
    });
    Decision { tenant: pair.tenant, device: pair.device, share: share(policies, pair), factors }
}

/// Everything that people are to be told of when it changes, as one number.
pub(crate) fn marks(policies: &[&dyn SharePolicy], pair: &Pair<'_>) -> u128 {
    // One more than a mark can be, so that up to fifteen policies cannot be taken for each other.
    policies.iter().fold(0, |marks: u128, policy| marks.wrapping_mul(257).wrapping_add(policy.mark(pair).into()))
}
