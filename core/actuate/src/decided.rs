//! Decisions, as they come: each slice, and within one where a tenant asked for something.

use crate::Actuator;
use minerva_model::{Decision, Nanos, Signals, TenantId};
use std::collections::BTreeMap;

impl Actuator {
    /// Shares that changed within a slice, because a tenant asked for something. Weights follow at once; caps are dealt with
    /// the next slice, as they are fitted to what was used in it.
    pub fn reshare(&mut self, now: Nanos, decisions: &[Decision]) {
        if decisions.is_empty() {
            return;
        }
        self.take_shares(decisions);
        let Self { disks, ledger, groups, config, .. } = self;
        for decision in decisions {
            if let Some(disk) = disks.get_mut(&decision.device) {
                disk.let_on(decision, ledger);
            }
        }
        for disk in disks.values_mut().filter(|disk| !disk.has_caps()) {
            disk.plan(now, config, groups, &BTreeMap::new(), &Signals::default(), ledger);
        }
    }

    /// What was decided of these tenants counts no more: whoever decides tells it again, but for what is neutral.
    pub(crate) fn forget_decisions(&mut self, is_meant: impl Fn(TenantId) -> bool) {
        self.pairs.iter_mut().filter(|((tenant, _), _)| is_meant(*tenant)).for_each(|(_, pair)| pair.share = None);
        self.idle.values_mut().for_each(|tenants| tenants.retain(|tenant| !is_meant(*tenant)));
        self.waiting_jobs.values_mut().for_each(|tenants| tenants.retain(|tenant, _| !is_meant(*tenant)));
    }

    /// Takes them over: shares, and who is held back.
    pub(crate) fn take_shares(&mut self, decisions: &[Decision]) {
        for decision in decisions {
            if !self.tenants.contains_key(&decision.tenant) {
                continue;
            }
            let idle = self.idle.entry(decision.device).or_default();
            match decision.is_only_when_idle() {
                true => idle.insert(decision.tenant),
                false => idle.remove(&decision.tenant),
            };
            let waiting = self.waiting_jobs.entry(decision.device).or_default();
            match decision.job_waits() {
                Some(wait) => waiting.insert(decision.tenant, wait),
                None => waiting.remove(&decision.tenant),
            };
            let pair = self.pairs.entry((decision.tenant, decision.device)).or_default();
            if pair.share.replace(decision.share) != Some(decision.share) {
                self.enter_pair((decision.tenant, decision.device));
            }
        }
    }
}
