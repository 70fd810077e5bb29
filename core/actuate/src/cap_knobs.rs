//! A tenant's caps as wishes for its knobs.

use crate::Actuator;
use crate::knob::{self, Holder, KnobKey};
use crate::ledger::Ledger;
use minerva_model::{BackEnd, DeviceId, TenantId};

impl Actuator {
    /// The caps of these knobs are wished for again though they are the same.
    pub(crate) fn deal_afresh(&mut self, keys: impl IntoIterator<Item = KnobKey>) {
        for KnobKey { holder, device, .. } in keys {
            let Holder::Tenant(tenant) = holder else { continue };
            if let Some(disk) = self.disks.get_mut(&device).filter(|_| self.tenants.contains_key(&tenant)) {
                disk.deal_afresh(tenant);
            }
        }
    }
}

/// Wants a tenant to read and write no faster than this, in bytes a second; `None`: as before Minerva.
pub(crate) fn wish_cap(
    ledger: &mut Ledger,
    back_end: BackEnd,
    tenant: TenantId,
    device: DeviceId,
    cap: Option<[u64; 2]>,
) {
    let [read, write] = cap.map_or([None; 2], |cap| cap.map(Some));
    for (file, setting) in knob::cap_settings(back_end, read, write) {
        let key = KnobKey { holder: Holder::Tenant(tenant), device, file };
        match cap {
            Some(_) => ledger.wish(key, setting),
            None => ledger.release(key),
        }
    }
}
