//! Who earns credits in a slice by stepping back, and by how much of the disk.

use crate::credits::Earning;
use crate::demand::demand_ppm;
use crate::disk::Present;
use crate::participation::{Participation, io};
use minerva_model::Signals;

impl Participation {
    /// What stepping back earned in the slice that ended.
    pub(crate) fn earn(&mut self, signals: &Signals) {
        let Self { levels, boosts, coordination, members, crowd, credits, .. } = self;
        let settings = *credits.settings();
        let mut earnings = Vec::new();
        for (device, all) in crowd.devices() {
            let mut accounts: Vec<usize> = all.iter().map(|one| one.present.key).collect();
            accounts.sort_unstable();
            accounts.dedup();
            let shares: u64 = all.iter().map(|one| u64::from(one.present.in_force.get())).sum();
            let total = signals.devices.iter().find(|row| row.device == *device).map(|row| row.transferred.bytes());
            for Present { tenant, in_force, .. } in all.iter().map(|one| one.present) {
                let level = if settings.earned_by_whole_slices { levels.of_slice(tenant) } else { levels.get(tenant) };
                let Some(meaning) = levels.meaning(level) else { continue };
                let raised = boosts.is_boosted(tenant) || coordination.precedence(tenant, *device).is_some();
                let (false, Some(member), Some(row)) = (raised, members.get(&tenant), io(signals, tenant, *device))
                else {
                    continue;
                };
                if !member.may_earn(settings.earned_by_whole_slices) {
                    continue;
                }
                let total = total.unwrap_or_else(|| row.transferred.bytes());
                let due = u128::from(total) * u128::from(in_force.get()) / u128::from(shares.max(1));
                let own = settings.on(member.terms);
                let earning = Earning {
                    accounts_active: accounts.len() as u32,
                    points: meaning.points,
                    demand_ppm: demand_ppm(row, due),
                    held_max: own.held_max,
                    expiry: own.expiry,
                };
                earnings.push((member.account.as_str(), earning));
            }
        }
        credits.earn(earnings.into_iter());
    }
}
