//! What tenants were answered, so that a request that comes again is not done again.

use minerva_model::{Effect, Granted, RefusalKind, Refused, RequestId, TenantId, TenantRequest, Wish};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Answers that are kept for each tenant. Purchases are known for as long as credits last, whatever else was asked.
const ANSWERS_KEPT: usize = 32;

/// The last answers, for requests that come again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    /// The answer is absent while it waits for a commit.
    by_tenant: BTreeMap<TenantId, VecDeque<(RequestId, Wish, Option<Effect>)>>,
}

impl Answers {
    pub(crate) fn find(&self, tenant: TenantId, id: &RequestId) -> Option<&(RequestId, Wish, Option<Effect>)> {
        self.by_tenant.get(&tenant)?.iter().find(|(known, _, _)| known == id)
    }

    pub(crate) fn keep(&mut self, request: TenantRequest, answer: Option<Effect>) {
        let kept = self.by_tenant.entry(request.tenant).or_default();
        if kept.len() == ANSWERS_KEPT {
            kept.pop_front();
        }
        kept.push_back((request.id, request.wish, answer));
    }

    /// Answers that came later.
    pub(crate) fn note(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Granted(Granted { id, tenant, .. }) = effect else { continue };
            let kept =
                self.by_tenant.get_mut(tenant).and_then(|kept| kept.iter_mut().find(|(known, _, _)| known == id));
            if let Some((_, _, answer)) = kept {
                *answer = Some(effect.clone());
            }
        }
    }

    /// As if the request had never come.
    pub(crate) fn forget(&mut self, tenant: TenantId, id: &RequestId) {
        if let Some(kept) = self.by_tenant.get_mut(&tenant) {
            kept.retain(|(known, _, _)| known != id);
        }
    }

    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.by_tenant.remove(&tenant);
    }
}

/// Refused because the key stands for another request.
pub(crate) fn key_reused(tenant: TenantId, id: &RequestId) -> Effect {
    let message = format!("The key {id} stands for another request; choose a new key for a new request.");
    Effect::Refused(Refused { id: id.clone(), tenant, kind: RefusalKind::KeyReused, message })
}
