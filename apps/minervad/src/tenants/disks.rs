//! Which disk a tenant names, and what people call it. Where it names none the engine chooses.

use crate::slice_loop::Driver;
use minerva_model::{DeviceId, RefusalKind, TenantId};
use minerva_tenant_server::request::{Refusal, WantedDisk};

impl Driver {
    /// The watched disk that a number names; a partition stands for its disk.
    pub(crate) fn disk_named(&mut self, device: DeviceId) -> Result<DeviceId, Refusal> {
        let whole =
            if self.devices.contains_key(&device) { Some(device) } else { self.watch.observer.whole_disk(device) };
        whole.filter(|whole| self.devices.contains_key(whole)).ok_or_else(|| {
            let message = format!("There is no disk {device} that Minerva watches; there are {}.", self.disks());
            Refusal::new(RefusalKind::UnknownDevice, message)
        })
    }

    /// The watched disk on which a block device lies; none if it lies on none, or on several.
    pub(crate) fn disk_below(&mut self, device: DeviceId) -> Option<DeviceId> {
        let below = self.watch.observer.disks_below(device);
        let mut watched = below.into_iter().filter(|disk| self.devices.contains_key(disk));
        // A device that is watched itself is steered itself, whatever is below it.
        watched.next()
    }

    /// The disk that a tenant means, if it means one.
    pub(crate) fn disk_wanted(&mut self, tenant: TenantId, disk: WantedDisk) -> Result<Option<DeviceId>, Refusal> {
        Ok(match disk {
            WantedDisk::Named(device) => Some(self.disk_named(device)?),
            WantedDisk::Below(device) => self.disk_below(device),
            // A guest's own path says nothing here: its disks are in its images.
            WantedDisk::Usual(like) => {
                self.watch.observer.image_device(tenant, &like).and_then(|device| self.disk_below(device))
            }
        })
    }

    /// The kernel name of a disk, by which the operator knows it; its number where it is gone. Tenants are told numbers, as they name disks by
    /// them: a guest has names of its own.
    pub(crate) fn disk_called(&self, device: DeviceId) -> String {
        self.devices.get(&device).map_or_else(|| device.to_string(), |disk| disk.name.clone())
    }

    pub(crate) fn disks(&self) -> String {
        let disks: Vec<String> = self.devices.values().map(|disk| format!("{} ({})", disk.id, disk.name)).collect();
        if disks.is_empty() { "none".to_owned() } else { disks.join(", ") }
    }
}
