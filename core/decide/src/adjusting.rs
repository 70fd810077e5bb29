//! Adjustments of accounts that wait for their commit, and what they are answered.

use minerva_model::{Effect, EntryNumber, Grant, Granted, RefusalKind, Refused, RequestId, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adjustments that wait for their commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Adjusting(BTreeMap<EntryNumber, (TenantId, RequestId)>);

impl Adjusting {
    pub(crate) fn add(&mut self, number: EntryNumber, tenant: TenantId, id: RequestId) {
        self.0.insert(number, (tenant, id));
    }

    /// An adjustment of the tenant's account under this key has no answer yet.
    pub(crate) fn waits(&self, tenant: TenantId, id: &RequestId) -> bool {
        self.0.values().any(|(of, key)| *of == tenant && key == id)
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.0.retain(|_, (of, _)| *of != tenant);
    }

    /// The answer, if the entry is an adjustment.
    pub(crate) fn committed(&mut self, number: EntryNumber, fresh: bool) -> Option<Effect> {
        let (tenant, id) = self.0.remove(&number)?;
        Some(match fresh {
            true => Effect::Granted(Granted { id, tenant, grant: Grant::Now }),
            false => known(tenant, id, "has an entry under this key already"),
        })
    }

    /// The same when it could not be committed.
    pub(crate) fn failed(&mut self, number: EntryNumber, detail: &str) -> Option<Effect> {
        let (tenant, id) = self.0.remove(&number)?;
        let text = format!("It could not be written to the ledger: {detail}. Nothing was changed; ask again.");
        Some(refused(tenant, id, RefusalKind::NotCommitted, text))
    }
}

/// Refused because the key stands for another entry.
pub(crate) fn known(tenant: TenantId, id: RequestId, why: &str) -> Effect {
    let text = format!("The account {why}, so nothing was changed now; `minerva-ctl audit` shows it.");
    refused(tenant, id, RefusalKind::KeyReused, text)
}

pub(crate) fn refused(tenant: TenantId, id: RequestId, kind: RefusalKind, message: String) -> Effect {
    Effect::Refused(Refused { id, tenant, kind, message })
}
