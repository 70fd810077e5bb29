//! Contracts of servers beside the other processes of the host: what they need is told to the engine, and how they stand to the server.

use crate::{Known, PATIENCE, Servers};
use minerva_linux_actuate::{ask_server, server_socket};
use minerva_model::{
    ControlRequest, DeviceId, DiskReport, Event, Nanos, PROTECTION_TOLD_EVERY, Protection, ServedContracts, TenantId,
};
use std::collections::BTreeMap;

/// A server is told again at once where others' part of the disk has moved by this.
const OTHERS_STEP_PERMILLE: u32 = 20;

impl Servers {
    /// Tells each server how its contracts stand: its name, the device, and how. What it was told lately it is not told again.
    pub fn tell<'a>(&mut self, now: Nanos, all: impl Iterator<Item = (&'a str, DeviceId, Protection)>) {
        let mut by_server: BTreeMap<&str, BTreeMap<DeviceId, Protection>> = BTreeMap::new();
        for (server, device, protection) in all {
            by_server.entry(server).or_default().insert(device, protection);
        }
        for (name, mut protections) in by_server {
            let Some(known) = self.known.get_mut(name).filter(|_| !self.silent.contains_key(name)) else { continue };
            let named = known.devices().filter_map(|(of, device)| Some((of.to_owned(), protections.remove(&device)?)));
            let devices: BTreeMap<String, Protection> = named.collect();
            if known.protections.as_ref().is_some_and(|(at, told)| is_no_news(now.since(*at), told, &devices)) {
                continue;
            }
            known.protections = Some((now, devices.clone()));
            let socket = server_socket(&self.runtime_dir, name);
            match ask_server(&socket, &ControlRequest::Protect { devices }, &[], PATIENCE) {
                // One of an earlier version does not know the request.
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(server = name, %error, "a server was not told how its contracts stand");
                }
            }
        }
    }
}

fn is_no_news(since: Nanos, told: &BTreeMap<String, Protection>, now: &BTreeMap<String, Protection>) -> bool {
    let is_alike = |(name, one): (&String, &Protection)| {
        now.get(name).is_some_and(|other| {
            let others = other.others_permille.abs_diff(one.others_permille) < OTHERS_STEP_PERMILLE;
            others && Protection { others_permille: one.others_permille, ..other.clone() } == *one
        })
    };
    since < PROTECTION_TOLD_EVERY && told.len() == now.len() && told.iter().all(is_alike)
}

impl Known {
    /// What the engine is to hear of its contracts; `tenant` is whose its process is.
    pub(crate) fn contracts_changed(
        &mut self,
        name: &str,
        tenant: Option<TenantId>,
        is_known: impl Fn(DeviceId) -> bool,
    ) -> Vec<Event> {
        let mut now = BTreeMap::new();
        for of in &self.report.devices {
            let Some(device) = of.device.filter(|device| is_known(*device)) else { continue };
            let disks = || self.report.disks.iter().filter(|disk| disk.device == of.name);
            let owner = |disk: &DiskReport| Some(self.owners.get(&disk.settings.name)?.tenant);
            let mut guests: Vec<TenantId> = disks().filter_map(owner).collect();
            guests.sort_unstable();
            guests.dedup();
            let missed = disks().filter_map(|disk| disk.figures.contract.as_ref());
            let missed = missed.map(|contract| contract.late + contract.overdue + contract.seconds_short).sum();
            let (server, reserved_permille) = (name.to_owned(), of.reserved_permille);
            now.insert(device, ServedContracts { server, device, tenant, guests, reserved_permille, missed });
        }
        let changed = now.values().filter(|one| self.contracts.get(&one.device) != Some(one));
        let gone = self.contracts.values().filter(|one| !now.contains_key(&one.device) && one.reserved_permille > 0);
        let gone = gone.map(|one| ServedContracts { reserved_permille: 0, ..one.clone() });
        let events = changed.cloned().chain(gone).map(Event::ContractsSeen).collect();
        self.contracts = now;
        events
    }
}

#[cfg(test)]
mod tests {
    use crate::Known;
    use crate::account::tests::{disk, server};
    use minerva_model::{ContractFigures, DeviceId, Event, Nanos, ServedContracts, ServedDevice, TenantId};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    #[test]
    fn what_contracts_need_is_told_once_and_taken_back() {
        let mut report = server(Nanos(1));
        report.devices = vec![ServedDevice {
            name: "sda".to_owned(),
            device: Some(DISK),
            scheduler: "htbs".to_owned(),
            cpus: Vec::new(),
            reserved_permille: 400,
            protection: None,
        }];
        report.disks = vec![disk(1)];
        report.disks[0].figures.contract = Some(ContractFigures { late: 3, ..ContractFigures::default() });
        let mut known = Known::new(report);
        let of = |reserved_permille| ServedContracts {
            server: "blk".to_owned(),
            device: DISK,
            tenant: Some(TenantId(4)),
            guests: Vec::new(),
            reserved_permille,
            missed: 3,
        };
        let told = |known: &mut Known| known.contracts_changed("blk", Some(TenantId(4)), |_| true);
        assert_eq!(told(&mut known), [Event::ContractsSeen(of(400))]);
        assert!(told(&mut known).is_empty());
        known.report.devices.clear();
        assert_eq!(told(&mut known), [Event::ContractsSeen(of(0))]);
    }
}
