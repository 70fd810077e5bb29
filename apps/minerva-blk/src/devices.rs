//! Disks of this host on which VM disks lie.

use crate::admission;
use crate::physical::HostDisk;
use crate::placement;
use crate::protection::DeviceProtection;
use minerva_blk::{PhysicalDisk, RequestLog, TransferKind};
use minerva_blocksched::{BuildOptions, SchedulerName};
use minerva_config::{BlkDeviceSettings, DEVICE_OTHER};
use minerva_model::{DeviceId, DiskSettings, ServedDevice};
use minerva_sim_device::Profile;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// One of them.
pub(crate) struct Device {
    pub(crate) physical: PhysicalDisk,
    /// The kernel's number.
    pub(crate) number: Option<DeviceId>,
    /// As what contracts on it are judged.
    model: Profile,
    /// How they stand beside other processes of this host.
    pub(crate) protection: DeviceProtection,
}

/// All of them, in the order in which the first VM disk of each came.
pub(crate) struct Devices {
    settings: BTreeMap<String, BlkDeviceSettings>,
    request_logs: Option<PathBuf>,
    pub(crate) devices: Vec<Device>,
}

impl Device {
    pub(crate) fn told(&self) -> ServedDevice {
        let PhysicalDisk { name, scheduler, cpus, .. } = &self.physical;
        ServedDevice {
            name: name.clone(),
            device: self.number,
            scheduler: scheduler.to_string(),
            cpus: cpus.clone(),
            reserved_permille: self.protection.reserved_permille,
            protection: self.protection.told(Instant::now()),
        }
    }

    /// Notes what the contracts of these disks, which are all on it, take of its time.
    pub(crate) fn reserve(&mut self, disks: &[&DiskSettings]) {
        let utilisation = admission::utilisation(self.scheduler(), &self.model, disks);
        self.protection.reserved_permille = (1e3 * utilisation).ceil().clamp(0.0, 1e3) as u32;
    }

    /// Its scheduler, and how many requests that gives it at once.
    fn scheduler(&self) -> (SchedulerName, u32) {
        let PhysicalDisk { scheduler, build, .. } = self.physical;
        (scheduler, scheduler.depth(build))
    }

    /// Takes the contracts of all VM disks on it, or says why not.
    pub(crate) fn admit(&self, disks: &[&DiskSettings]) -> anyhow::Result<()> {
        admission::judge(&self.physical.name, self.scheduler(), &self.model, disks)
    }
}

impl Devices {
    /// None yet; `settings` are those of the operator's file. Requests are logged in the folder `request_logs`, where one is given.
    pub(crate) fn new(settings: BTreeMap<String, BlkDeviceSettings>, request_logs: Option<PathBuf>) -> Self {
        Self { settings, request_logs, devices: Vec::new() }
    }

    /// Where a disk of this host is among them; none if nothing lay on it so far.
    pub(crate) fn find(&self, host: Option<&HostDisk>) -> Option<usize> {
        let name = host.map_or(DEVICE_OTHER, |host| &host.name);
        self.devices.iter().position(|device| device.physical.name == name)
    }

    /// The same; the last is new if nothing lay on it so far.
    pub(crate) fn place(&mut self, host: Option<HostDisk>) -> anyhow::Result<usize> {
        if let Some(found) = self.find(host.as_ref()) {
            return Ok(found);
        }
        let unknown = || HostDisk { name: DEVICE_OTHER.to_owned(), number: None, is_rotational: false };
        let host = host.unwrap_or_else(unknown);
        let settings = self.settings.get(&host.name).cloned().unwrap_or_default();
        let is_rotational = settings.rotational.unwrap_or(host.is_rotational);
        let model = admission::model(settings.model.as_deref(), is_rotational)?;
        let cpus: Vec<u16> = settings.cpus.map(|cpus| cpus.numbers().collect()).unwrap_or_default();
        placement::check(&host.name, &cpus)?;
        let request_log = self.request_log(&host.name);
        let physical = PhysicalDisk {
            name: host.name,
            scheduler: settings.scheduler,
            build: BuildOptions {
                tag_depth: settings.tag_depth,
                ..BuildOptions::for_images(is_rotational, settings.depth)
            },
            transfer: TransferKind::Uring,
            poll_max: settings.poll,
            cpus,
            request_log,
        };
        let protection = DeviceProtection::default();
        self.devices.push(Device { physical, number: host.number, model, protection });
        Ok(self.devices.len() - 1)
    }

    /// The log of a device's requests. Once the server has confined itself none can be made, and that is no reason not to serve.
    fn request_log(&self, name: &str) -> Option<RequestLog> {
        let path = self.request_logs.as_ref()?.join(format!("{name}.csv"));
        match RequestLog::create(&path) {
            Ok(log) => Some(log),
            Err(error) => {
                eprintln!(
                    "minerva-blk: requests on {name} are not logged, as {} cannot be made: {error}; a server that is started anew logs those on \
                     all disks of this host that it serves then",
                    path.display()
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Devices, HostDisk};
    use std::collections::BTreeMap;

    #[test]
    fn guests_have_parts_of_their_own_of_any_disk() {
        let mut devices = Devices::new(BTreeMap::new(), None);
        let disk = HostDisk { name: "sda".to_owned(), number: None, is_rotational: true };
        for host in [None, Some(disk)] {
            let number = devices.place(host).unwrap();
            assert!(devices.devices[number].physical.build.flows_lie_apart, "{number}");
        }
    }
}
