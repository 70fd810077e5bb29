//! Reports of the cache that wait for their commit, and what they are answered.

use minerva_model::{
    Effect, EntryNumber, MicroCredits, MigrationAnswer, MigrationOutcome, MigrationReason, MigrationReport, RequestId,
    TenantId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Reports whose entry is not committed yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reported(BTreeMap<EntryNumber, Entered>);

/// What was entered for a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entered {
    pub(crate) tenant: TenantId,
    pub(crate) id: RequestId,
    pub(crate) earned: MicroCredits,
    pub(crate) reason: MigrationReason,
}

impl Reported {
    pub(crate) fn add(&mut self, number: EntryNumber, entered: Entered) {
        self.0.insert(number, entered);
    }

    /// The report has no answer yet.
    pub(crate) fn waits(&self, report: &MigrationReport) -> bool {
        self.0.values().any(|one| one.tenant == report.tenant && one.id == report.id)
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.0.retain(|_, one| one.tenant != tenant);
    }

    /// The answer, if the entry is a report's.
    pub(crate) fn committed(&mut self, number: EntryNumber, fresh: bool) -> Option<Effect> {
        let Entered { tenant, id, earned, reason } = self.0.remove(&number)?;
        Some(match fresh {
            true => counted(tenant, id, earned, reason),
            false => counted(tenant, id, MicroCredits::ZERO, MigrationReason::Again),
        })
    }

    /// The same when it could not be committed.
    pub(crate) fn failed(&mut self, number: EntryNumber, detail: &str) -> Option<Effect> {
        let Entered { tenant, id, .. } = self.0.remove(&number)?;
        let outcome = MigrationOutcome::NotCommitted { detail: detail.to_owned() };
        Some(Effect::MigrationCounted(MigrationAnswer { id, tenant, outcome }))
    }
}

/// The answer to a report that is not to be sent again.
pub(crate) fn counted(tenant: TenantId, id: RequestId, earned: MicroCredits, reason: MigrationReason) -> Effect {
    Effect::MigrationCounted(MigrationAnswer { id, tenant, outcome: MigrationOutcome::Counted { earned, reason } })
}
