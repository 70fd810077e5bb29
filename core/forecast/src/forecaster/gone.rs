//! What becomes of the state of tenants and disks that are no more, and of what else is over.

use super::{Forecaster, Key};
use minerva_model::{DeviceId, TenantId};

impl Forecaster {
    /// A session without bytes and a rate that has shifted leave nothing behind, and what sessions are worth is told of each account by its
    /// own. In earlier versions it was not so.
    pub fn set_only_its_own(&mut self, only_its_own: bool) {
        self.sessions.only_its_own = only_its_own;
    }

    /// The tenant is gone: its sessions are over, and nothing of it is kept but what they taught.
    pub fn tenant_gone(&mut self, id: TenantId) {
        const FIRST: DeviceId = DeviceId { major: 0, minor: 0 };
        const LAST: DeviceId = DeviceId { major: u32::MAX, minor: u32::MAX };
        let keys: Vec<Key> = self.tenants.range((id, FIRST)..=(id, LAST)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.end(key));
    }

    /// The disk is gone: its number may come back as another disk.
    pub fn device_gone(&mut self, id: DeviceId) {
        let keys: Vec<Key> = self.tenants.keys().filter(|(_, device)| *device == id).copied().collect();
        keys.into_iter().for_each(|key| self.end(key));
    }

    fn end(&mut self, key: Key) {
        self.tenants_change();
        if let Some(tenant) = self.tenants.remove(&key) {
            tenant.end(&mut self.sessions, &mut self.families);
        }
    }
}
