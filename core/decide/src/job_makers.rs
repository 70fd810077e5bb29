//! What is remembered of whoever may make groups, beyond each group: else another one would be a clean slate.
//!
//! - *Who moved more than it declared* is not believed in any group for a while, also not in those that declared before: any number of them
//!   may have been made in advance, each for one lie. Jobs beside it that are honest are sorted by what else is known of them meanwhile.
//! - *What was moved as jobs that are over* counts for a group when it declares its first job, as if it went on where one before it left
//!   off: the one that had moved most. It is not the sum of all, and counts for no group that has declared already: jobs of unknown size
//!   that run beside each other do not lengthen each other, however many they are. It counts half as much after each quarter of an hour, so
//!   that jobs of one after the other, each in a group of its own, do not add up for days.
//!
//! Both end by themselves, as the maker's groups may be there for months. Of a tenant whose group is its maker's only one its own record
//! is enough ([`crate::jobs::Named`]).

use minerva_model::{Nanos, Tenant, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was moved counts half as much after it.
const HALF_LIFE: Nanos = Nanos::from_secs(900);
/// For so long after the last of it; of what was moved for up to a half-life less.
const REMEMBERED: Nanos = Nanos::from_secs(3_600);
/// Of more makers those are forgotten of whom it would end first.
const MAKERS_MAX: usize = 1_000;

/// See the file's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Makers {
    now: Nanos,
    of: BTreeMap<TenantId, String>,
    remembered: BTreeMap<String, Maker>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Maker {
    overrun_until: Nanos,
    /// The most that a tenant of it had moved as jobs that are over, at the last half-life's end before the last of them ended, or when that ended
    /// where nothing fades.
    past_bytes: u64,
    past_at: Option<Nanos>,
}

impl Maker {
    fn until(&self) -> Nanos {
        self.overrun_until.max(self.past_at.map_or(Nanos::ZERO, |at| at + REMEMBERED))
    }

    /// How many half-lives are over, and when the last of them was; nothing where nothing is remembered.
    fn half_lives(&self, now: Nanos) -> Option<(u64, Nanos)> {
        let at = self.past_at.filter(|at| now.since(*at) < REMEMBERED)?;
        let over = now.since(at).0 / HALF_LIFE.0;
        Some((over, at + Nanos(over * HALF_LIFE.0)))
    }

    fn past(&self, now: Nanos) -> u64 {
        self.half_lives(now).map_or(0, |(over, _)| self.past_bytes >> over)
    }

    /// What is remembered is from now on so much. Where it `fades` the half-life that is under way goes on, whoever ends jobs in it: else it would
    /// never be over where they end one soon after the other, as in recordings of earlier versions.
    fn ended(&mut self, now: Nanos, bytes: u64, fades: bool) {
        let begun = self.half_lives(now).filter(|_| fades).map_or(now, |(_, begun)| begun);
        (self.past_bytes, self.past_at) = (bytes, Some(begun));
    }
}

impl Makers {
    /// A tenant appeared, or its rule changed.
    pub(crate) fn tenant_seen(&mut self, tenant: &Tenant) {
        let maker = tenant.maker();
        if maker != tenant.cgroup.path {
            self.of.insert(tenant.id, maker.to_owned());
        }
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.of.remove(&tenant);
    }

    /// A slice ended.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = now;
        self.remembered.retain(|_, maker| maker.until() > now);
    }

    /// A tenant moves more than it declared.
    pub(crate) fn overrun(&mut self, tenant: TenantId) {
        let until = self.now + REMEMBERED;
        self.note(tenant, |maker| maker.overrun_until = until);
    }

    /// Whether somebody of the tenant's maker did.
    pub(crate) fn is_overrun(&self, tenant: TenantId) -> bool {
        self.maker(tenant).is_some_and(|maker| maker.overrun_until > self.now)
    }

    /// A job of the tenant is over, and with those before it has moved so much. `fades`: that counts less and less, however often jobs end.
    pub(crate) fn ended(&mut self, tenant: TenantId, bytes: u64, fades: bool) {
        let now = self.now;
        self.note(tenant, |maker| {
            if bytes >= maker.past(now) {
                maker.ended(now, bytes, fades);
            }
        });
    }

    /// Where a tenant goes on that declares its first job.
    pub(crate) fn past(&self, tenant: TenantId) -> u64 {
        self.maker(tenant).map_or(0, |maker| maker.past(self.now))
    }

    fn maker(&self, tenant: TenantId) -> Option<&Maker> {
        self.remembered.get(self.of.get(&tenant)?)
    }

    fn note(&mut self, tenant: TenantId, change: impl FnOnce(&mut Maker)) {
        let Some(name) = self.of.get(&tenant) else { return };
        change(self.remembered.entry(name.clone()).or_default());
        if self.remembered.len() > MAKERS_MAX {
            let first = self.remembered.iter().min_by_key(|(_, maker)| maker.until()).map(|(name, _)| name.clone());
            first.map(|name| self.remembered.remove(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minerva_model::{CgroupRef, Origin, TenantKind, Terms};

    fn tenant(number: u64, maker: &str) -> Tenant {
        let cgroup = |path: String| CgroupRef { path, inode: number };
        Tenant {
            id: TenantId(number),
            name: number.to_string(),
            kind: TenantKind::Cgroup,
            cgroup: cgroup(format!("{maker}/{number}")),
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
            origin: Origin { delegated_from: Some(cgroup(maker.to_owned())), ..Origin::default() },
        }
    }

    #[test]
    fn makers_are_remembered_for_an_hour_and_no_more_than_a_thousand() {
        let mut makers = Makers::default();
        for number in 0..=MAKERS_MAX as u64 {
            makers.advance(Nanos::from_secs(number));
            makers.tenant_seen(&tenant(number, &format!("user-{number}")));
            makers.overrun(TenantId(number));
            makers.ended(TenantId(number), 64, true);
            makers.tenant_gone(TenantId(number));
        }
        assert!(makers.of.is_empty() && makers.remembered.len() == MAKERS_MAX);
        let known = |makers: &mut Makers, maker: u64| {
            makers.tenant_seen(&tenant(5_000, &format!("user-{maker}")));
            (makers.is_overrun(TenantId(5_000)), makers.past(TenantId(5_000)))
        };
        assert_eq!([0, 1, 1_000].map(|maker| known(&mut makers, maker)), [(false, 0), (true, 32), (true, 64)]);
        makers.advance(Nanos::from_secs(3_601));
        assert_eq!([1, 2].map(|maker| known(&mut makers, maker)), [(false, 0), (true, 8)]);
        makers.advance(Nanos::from_secs(4_600));
        assert!(makers.remembered.is_empty());
    }

    #[test]
    fn jobs_of_one_after_the_other_in_groups_of_their_own_do_not_add_up() {
        // Of 3,000 each.
        let past_after = |seconds: u64, fades: bool| {
            let mut makers = Makers::default();
            let mut past = 0;
            for number in 0..100 {
                makers.advance(Nanos::from_secs(number * seconds));
                makers.tenant_seen(&tenant(number, "user"));
                past = makers.past(TenantId(number));
                makers.ended(TenantId(number), past + 3_000, fades);
                makers.tenant_gone(TenantId(number));
            }
            past
        };
        assert_eq!(past_after(1_800, true), 999, "each half an hour");
        let often = past_after(600, true);
        assert!((3_000..10_000).contains(&often), "each ten minutes: {often}");
        assert_eq!(past_after(600, false), 99 * 3_000, "as in recordings of earlier versions");
    }
}
