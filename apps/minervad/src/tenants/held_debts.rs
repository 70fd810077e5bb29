//! Which debts somebody holds.

use minerva_api::v1;
use minerva_clock::boottime;
use minerva_model::{BackgroundId, TenantId};
use minerva_tenant_server::request::Refusal;
use std::collections::BTreeMap;
use tokio::sync::mpsc::{Sender, channel};

/// Where a tenant hears whether it may work.
pub(crate) type Words = Sender<Result<v1::HoldDebtResponse, Refusal>>;

/// Who holds what.
#[derive(Debug, Default)]
pub(crate) struct Debts {
    pub(crate) held: BTreeMap<BackgroundId, (TenantId, Words)>,
    last_registration: u64,
}

impl Debts {
    /// Tells a registration from all others of this boot, also from those of an earlier daemon: a program may still go by one of those.
    pub(crate) fn register(&mut self) -> u64 {
        self.last_registration = boottime().0.max(self.last_registration + 1);
        self.last_registration
    }

    /// Those who listen are told that it is in vain: of one tenant, or of all.
    pub(crate) fn give_up(&mut self, only: Option<TenantId>, refusal: &Refusal) {
        for (_, words) in self.held.values_mut().filter(|(tenant, _)| only.is_none_or(|only| only == *tenant)) {
            // Whoever listens may have gone. The next review finds that nobody does.
            let _ = std::mem::replace(words, channel(1).0).try_send(Err(refusal.clone()));
        }
    }
}
