//! What the cache moved to its place for a tenant earns as the tenant's own use at level `idle` would (docs/adr/0056).
//!
//! A report is judged by the slice that ended last, so it comes right after it. On each disk:
//!
//! | in that slice | earns |
//! |---|---|
//! | accounts other than the tenant's and the cache's used the disk | what a slice at `idle` is worth beside them, by how much of what it was due was moved |
//! | nobody else did | nothing: what moves on a quiet disk gives up nothing |
//! | a tenant of the account used it too, above `idle` at any time in it or raised | nothing |
//!
//! Of several disks the best counts, and of a slice no more than what the account did not earn in it by itself. An entry stands in the
//! ledger under the report's key, so whoever asks again, after whatever crash, earns nothing more. That no byte is reported twice is
//! the cache's to see to.

use crate::credits::Earning;
use crate::demand::used_ppm;
use crate::disk::Present;
use crate::participation::Participation;
use crate::reported::{Entered, counted};
use minerva_model::{
    DeviceId, Effect, LedgerEntry, Level, MicroCredits, MigrationReason, MigrationReport, Nanos, Share, Signals,
};
use std::collections::{BTreeMap, BTreeSet};

impl Participation {
    /// The entry that a report earns, or the answer that it earns none. `signals` are those of the last slice, and `present` are those who
    /// used each disk in it.
    pub(crate) fn migration_reported(
        &mut self,
        now: Nanos,
        report: MigrationReport,
        signals: &Signals,
        present: &BTreeMap<DeviceId, Vec<Present>>,
    ) -> Vec<Effect> {
        if self.reported.waits(&report) {
            // The answer comes with the commit, for whoever waits for it then.
            return Vec::new();
        }
        let nothing = |report: MigrationReport, reason| counted(report.tenant, report.id, MicroCredits::ZERO, reason);
        let (account, earning) = match self.judge_report(&report, signals, present) {
            Ok(judged) => judged,
            Err(reason) => return vec![nothing(report, reason)],
        };
        let reason = MigrationReason::Beside(earning.accounts_active.saturating_sub(1));
        // As with a boost: what is too old is not there, and takes no room.
        let mut effects: Vec<Effect> = self.credits.expire(now, &account).map(Effect::Ledger).into_iter().collect();
        effects.push(match self.credits.earn_reported(now, &account, earning) {
            None => nothing(report, MigrationReason::NoMore),
            Some(entry) => {
                let MigrationReport { id, tenant, .. } = report;
                let entered = Entered { tenant, id: id.clone(), earned: entry.amount, reason };
                self.reported.add(entry.number, entered);
                Effect::Ledger(LedgerEntry { request: Some(id), ..entry })
            }
        });
        effects
    }

    /// Whose account, and what the best of the disks is worth to it.
    fn judge_report(
        &self,
        report: &MigrationReport,
        signals: &Signals,
        present: &BTreeMap<DeviceId, Vec<Present>>,
    ) -> Result<(String, Earning), MigrationReason> {
        let settings = self.credits.settings();
        let member = self.members.get(&report.tenant);
        let member = member.filter(|member| member.may_earn(settings.earned_by_whole_slices));
        let (Some(member), Some(meaning), true) =
            (member, self.levels.meaning(Level::Idle), self.enforces && settings.enabled)
        else {
            return Err(MigrationReason::NotHere);
        };
        let service = report.service.and_then(|service| self.members.get(&service));
        let service = service.map(|member| member.account.as_str());
        let own = settings.on(member.terms);
        let mut best: Result<Earning, MigrationReason> = Err(MigrationReason::Alone);
        for moved in report.moved.iter().filter(|moved| moved.bytes > 0) {
            let there = present.get(&moved.device).map_or(&[][..], Vec::as_slice);
            let beside = self.beside(&member.account, service, moved.device, there);
            if beside.own_use || beside.accounts == 0 {
                let why = if beside.own_use { MigrationReason::OwnUse } else { MigrationReason::Alone };
                best = best.map_err(|before| if before == MigrationReason::Alone { why } else { before });
                continue;
            }
            let disk = signals.devices.iter().find(|row| row.device == moved.device);
            let total = disk.map_or(moved.bytes, |row| row.transferred.bytes());
            let least = u64::from(Share::MIN.get());
            let due = u128::from(total) * u128::from(least) / u128::from(beside.shares.saturating_add(least));
            let earning = Earning {
                accounts_active: beside.accounts.saturating_add(1),
                points: meaning.points,
                demand_ppm: used_ppm(moved.bytes, due),
                held_max: own.held_max,
                expiry: own.expiry,
            };
            best = Ok(match best {
                Ok(before) if self.credits.worth(before) >= self.credits.worth(earning) => before,
                _ => earning,
            });
        }
        best.map(|earning| (member.account.clone(), earning))
    }

    /// Who of those at a disk is neither of an account nor the cache.
    fn beside(&self, account: &str, service: Option<&str>, device: DeviceId, there: &[Present]) -> Beside {
        let whole_slices = self.credits.settings().earned_by_whole_slices;
        let level = |tenant| if whole_slices { self.levels.of_slice(tenant) } else { self.levels.get(tenant) };
        let (mut accounts, mut shares, mut own_use) = (BTreeSet::new(), 0_u64, false);
        for present in there {
            let Some(member) = self.members.get(&present.tenant) else { continue };
            if member.account == account {
                let raised = self.boosts.is_boosted(present.tenant)
                    || self.coordination.precedence(present.tenant, device).is_some();
                own_use |= raised || level(present.tenant) != Level::Idle;
            } else if service != Some(member.account.as_str()) {
                accounts.insert(member.account.as_str());
                shares = shares.saturating_add(u64::from(present.in_force.get()));
            }
        }
        Beside { accounts: u32::try_from(accounts.len()).unwrap_or(u32::MAX), shares, own_use }
    }
}

struct Beside {
    /// Accounts other than the tenant's and the cache's.
    accounts: u32,
    /// Their shares.
    shares: u64,
    /// The account used it too, and did not step back to `idle` for it.
    own_use: bool,
}
