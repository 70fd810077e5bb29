//! What becomes of the state of tenants and disks that are no more, and of what else is over.

use super::{Forecaster, Key};
use minerva_model::{DeviceId, TenantId};

impl Forecaster {
    /// The tenant is gone: its sessions are over, and nothing of it is kept but what they taught.
    pub fn tenant_gone(&mut self, id: TenantId) {
        self.keys_of(id).into_iter().for_each(|key| self.end(key));
    }

    /// The tenant goes on, but is no longer forecast: nothing of it is kept, and its sessions teach nothing, as they are not over.
    pub fn forget(&mut self, id: TenantId) {
        for key in self.keys_of(id) {
            self.tenants_change();
            self.tenants.remove(&key);
        }
    }

    fn keys_of(&self, id: TenantId) -> Vec<Key> {
        self.devices_of(id).map(|device| (id, device)).collect()
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
