//! Tenants that are held back on a disk by caps of their own, whatever its back end is, and how those caps are set.

use crate::cap_knobs::wish_cap;
use crate::ledger::Ledger;
use crate::pace::Pace;
use minerva_model::{BackEnd, DeviceId, IoSignals, Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Those of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldBack {
    /// How caps are set here; nothing where they cannot or may not be.
    by: Option<BackEnd>,
    paces: BTreeMap<TenantId, Pace>,
}

impl HeldBack {
    /// Caps are set in this way from now on, or not at all.
    pub(crate) fn cap_by(&mut self, device: DeviceId, by: Option<BackEnd>, ledger: &mut Ledger) {
        if self.by != by {
            self.capped().into_iter().for_each(|tenant| self.lift(device, tenant, ledger));
            self.by = by;
        }
    }

    /// Caps can be set.
    pub(crate) const fn can_cap(&self) -> bool {
        self.by.is_some()
    }

    /// It is held back, or may be in the next slice.
    pub(crate) fn has(&self, tenant: TenantId) -> bool {
        self.paces.contains_key(&tenant)
    }

    /// A slice ended, in which the tenant used the disk as `row` says; `holds_back` and `cap` as in [`Pace::slice`].
    pub(crate) fn slice(
        &mut self,
        now: Nanos,
        (tenant, device): (TenantId, DeviceId),
        row: Option<&IoSignals>,
        (holds_back, cap): (bool, impl FnOnce(u64) -> u64),
        ledger: &mut Ledger,
    ) {
        let Some(by) = self.by else { return };
        let pace = self.paces.entry(tenant).or_insert_with(|| Pace::new(now));
        let was_capped = pace.is_capped();
        pace.slice(now, row, holds_back, cap);
        if was_capped || pace.is_capped() {
            wish_cap(ledger, by, tenant, device, pace.cap());
        }
    }

    /// All others are held back no more.
    pub(crate) fn lift_all_but(&mut self, device: DeviceId, stays: impl Fn(TenantId) -> bool, ledger: &mut Ledger) {
        let others: Vec<TenantId> = self.paces.keys().copied().filter(|tenant| !stays(*tenant)).collect();
        others.into_iter().for_each(|tenant| self.lift(device, tenant, ledger));
    }

    /// The tenant is held back no more.
    pub(crate) fn lift(&mut self, device: DeviceId, tenant: TenantId, ledger: &mut Ledger) {
        let was_capped = self.paces.remove(&tenant).is_some_and(|pace| pace.is_capped());
        if let Some(by) = self.by.filter(|_| was_capped) {
            wish_cap(ledger, by, tenant, device, None);
        }
    }

    /// The tenant's knobs are put back by somebody else, or gone with it.
    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.paces.remove(&tenant);
    }

    /// Who has a cap.
    pub(crate) fn capped(&self) -> Vec<TenantId> {
        self.paces.iter().filter(|(_, pace)| pace.is_capped()).map(|(tenant, _)| *tenant).collect()
    }
}
