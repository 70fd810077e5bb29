//! What shares those have together who use the disk beside a server of ours.

use super::{Claim, Deciding, Disk};
use crate::compose;
use minerva_model::Share;

impl Disk {
    /// Sums them, where a policy has to know; before everyone is raised, as the server is raised with them. Work that goes before others in
    /// stretches may begin one within any slice, so it counts in those too in which it had none.
    pub(super) fn update_beside(&mut self, by: Deciding<'_>) {
        self.beside = 0;
        let Some(policy) = by.policies.iter().find(|policy| policy.weighs_others(by.device)) else { return };
        let others = self.claims.iter().filter(|claim| policy.is_other(claim.tenant, by.device));
        let share = |claim: &Claim| match claim.excluded {
            true => Share::NEUTRAL,
            false => compose::share(by.policies, &self.pair(by, &self.usage(claim.key), claim)),
        };
        let counts = |claim: &&Claim| self.is_present(by, claim) || by.stands_apart(claim.tenant);
        let sum: u32 = others.filter(counts).map(|claim| share(claim).get()).sum();
        self.beside = sum / self.room.times();
    }
}
