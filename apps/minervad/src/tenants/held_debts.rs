//! Which debts somebody holds.

use minerva_model::{BackgroundId, TenantId};
use minerva_tenant_server::request::Refusal;
use std::collections::BTreeMap;
use tokio::sync::mpsc::{Sender, channel};

/// Where a tenant hears whether it may work.
pub(crate) type Words = Sender<Result<bool, Refusal>>;

/// Who holds what.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    pub(crate) held: BTreeMap<BackgroundId, (TenantId, Words)>,
}

impl Debts {
    /// Those who listen are told that it is in vain: of one tenant, or of all.
    pub(crate) fn give_up(&mut self, only: Option<TenantId>, refusal: &Refusal) {
        for (_, words) in self.held.values_mut().filter(|(tenant, _)| only.is_none_or(|only| only == *tenant)) {
            // Whoever listens may have gone. The next review finds that nobody does.
            let _ = std::mem::replace(words, channel(1).0).try_send(Err(refusal.clone()));
        }
    }
}
