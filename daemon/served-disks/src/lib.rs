//! Servers of ours: which disks of guests they serve, whose those are, and what their guests transferred.
//!
//! A server is found by its socket, asked once a slice, and told to the engine; a disk is the tenant's whose process is its front
//! end. What a guest transfers, the kernel counts for the server: `account` gives it to the guest and takes it off the server.

mod account;
mod contracts;
mod metrics;

pub use metrics::ServedMetrics;

use account::Account;
use minerva_linux_actuate::{ask_server, server_names, server_socket};
use minerva_model::{
    ControlRequest, DeviceId, Event, Nanos, Protection, Sample, ServedContracts, ServedDisk, ServedDisks, ServerAnswer,
    ServerReport, TenantId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

/// A server answers at once; the slice loop does not wait for one that hangs.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long one that did not answer is left alone.
const REST: Nanos = Nanos::from_secs(5);

/// All servers.
#[derive(Debug)]
pub struct Servers {
    runtime_dir: PathBuf,
    known: BTreeMap<String, Known>,
    /// Those that did not answer, and since when.
    silent: BTreeMap<String, Nanos>,
    account: Account,
    metrics: ServedMetrics,
}

/// One that answered.
#[derive(Debug)]
struct Known {
    report: ServerReport,
    /// Whose a disk is: its front end's, and after that is gone still, until another comes.
    owners: BTreeMap<String, Owner>,
    /// What the engine was told.
    told: BTreeMap<DeviceId, Vec<ServedDisk>>,
    /// What the engine was told of its contracts.
    contracts: BTreeMap<DeviceId, ServedContracts>,
    /// What it was told itself, and when.
    protections: Option<(Nanos, BTreeMap<String, Protection>)>,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    process: u32,
    tenant: TenantId,
}

impl Servers {
    /// None yet.
    pub fn new(runtime_dir: PathBuf, metrics: ServedMetrics) -> Self {
        Self { runtime_dir, known: BTreeMap::new(), silent: BTreeMap::new(), account: Account::default(), metrics }
    }

    /// Asks all, and says what the engine is to hear. `tenant_of` says whose a process is, `is_known` whether a disk is looked at.
    pub fn look(
        &mut self,
        now: Nanos,
        tenant_of: impl Fn(u32) -> Option<TenantId>,
        is_known: impl Fn(DeviceId) -> bool,
    ) -> Vec<Event> {
        let names: BTreeSet<String> = server_names(&self.runtime_dir).into_iter().collect();
        let mut events = Vec::new();
        let vanished: Vec<String> = self.known.keys().filter(|name| !names.contains(*name)).cloned().collect();
        vanished.iter().for_each(|name| events.extend(self.gone(name)));
        self.silent.retain(|name, since| names.contains(name) && now.since(*since) < REST);
        for name in names.into_iter().filter(|name| !self.silent.contains_key(name)).collect::<Vec<_>>() {
            match self.ask(&name) {
                Ok(report) => events.extend(self.answered(&name, report, &tenant_of, &is_known)),
                // The socket outlives its server.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => events.extend(self.gone(&name)),
                Err(error) => {
                    tracing::warn!(server = name, %error, "a server does not answer; asked again later");
                    self.silent.insert(name, now);
                }
            }
        }
        let reports = self.known.iter().map(|(name, known)| (name.as_str(), &known.report));
        self.metrics.note(reports);
        events
    }

    /// What guests transferred, as the kernel would have counted it had they done it themselves.
    pub fn add_to(&mut self, sample: &mut Sample, tenant_of: impl Fn(u32) -> Option<TenantId>) {
        for (name, known) in &self.known {
            let device_of: BTreeMap<&str, DeviceId> = known.devices().collect();
            let owned = known.report.disks.iter().filter_map(|disk| {
                let device = *device_of.get(disk.device.as_str())?;
                let owner = known.owners.get(&disk.settings.name).map(|owner| owner.tenant);
                Some((disk, device, owner))
            });
            self.account.take(name, &known.report, owned);
        }
        self.account.add_to(sample, |server| tenant_of(self.known.get(server)?.report.process));
    }

    /// A tenant is gone.
    pub fn tenant_gone(&mut self, id: TenantId) {
        self.account.tenant_gone(id);
        for known in self.known.values_mut() {
            known.owners.retain(|_, owner| owner.tenant != id);
        }
    }

    fn ask(&self, name: &str) -> io::Result<ServerReport> {
        let socket = server_socket(&self.runtime_dir, name);
        match ask_server(&socket, &ControlRequest::List, &[], PATIENCE)? {
            ServerAnswer::Holds(text) => serde_json::from_str(&text).map_err(io::Error::other),
            ServerAnswer::Gone => Err(io::Error::other("it says that it is gone")),
            ServerAnswer::Refused(why) => Err(io::Error::other(why)),
        }
    }

    fn gone(&mut self, name: &str) -> Option<Event> {
        let known = self.known.remove(name)?;
        self.account.forget(name);
        let was_told = !known.told.is_empty() || !known.contracts.is_empty();
        was_told.then(|| Event::ServerGone(name.to_owned()))
    }

    fn answered(
        &mut self,
        name: &str,
        report: ServerReport,
        tenant_of: impl Fn(u32) -> Option<TenantId>,
        is_known: impl Fn(DeviceId) -> bool,
    ) -> Vec<Event> {
        let is_another = |known: &Known| (known.report.process, known.report.began) != (report.process, report.began);
        // One that started anew holds nothing of what its predecessor was told.
        let restarted = self.known.get(name).is_some_and(is_another);
        let mut events: Vec<Event> = if restarted { self.gone(name).into_iter().collect() } else { Vec::new() };
        let mut known = match self.known.remove(name) {
            Some(before) => Known { report, ..before },
            None => Known::new(report),
        };
        known.settle_owners(&tenant_of);
        events.extend(known.contracts_changed(name, tenant_of(known.report.process), &is_known));
        let now = known.served(is_known);
        let devices: BTreeSet<DeviceId> = known.told.keys().chain(now.keys()).copied().collect();
        for device in devices {
            let disks = now.get(&device).cloned().unwrap_or_default();
            if known.told.get(&device).map_or(&[][..], Vec::as_slice) != disks {
                events.push(Event::ServerSeen(ServedDisks { server: name.to_owned(), device, disks }));
            }
        }
        known.told = now;
        self.known.insert(name.to_owned(), known);
        events
    }
}

impl Known {
    fn new(report: ServerReport) -> Self {
        Self { report, owners: BTreeMap::new(), told: BTreeMap::new(), contracts: BTreeMap::new(), protections: None }
    }

    /// The numbers of the disks of this host on which it serves something.
    fn devices(&self) -> impl Iterator<Item = (&str, DeviceId)> {
        self.report.devices.iter().filter_map(|device| Some((device.name.as_str(), device.device?)))
    }

    fn settle_owners(&mut self, tenant_of: impl Fn(u32) -> Option<TenantId>) {
        let Self { report, owners, .. } = self;
        owners.retain(|name, _| report.disks.iter().any(|disk| disk.settings.name == *name));
        for disk in &report.disks {
            let name = &disk.settings.name;
            let Some(process) = disk.front_end else { continue };
            // A process keeps its tenant while it runs, so it is looked up once.
            if owners.get(name).is_none_or(|owner| owner.process != process) {
                match tenant_of(process) {
                    Some(tenant) => drop(owners.insert(name.clone(), Owner { process, tenant })),
                    None => drop(owners.remove(name)),
                }
            }
        }
    }

    /// Disks with an owner, by device.
    fn served(&self, is_known: impl Fn(DeviceId) -> bool) -> BTreeMap<DeviceId, Vec<ServedDisk>> {
        let device_of: BTreeMap<&str, DeviceId> = self.devices().filter(|(_, device)| is_known(*device)).collect();
        let mut served: BTreeMap<DeviceId, Vec<ServedDisk>> = BTreeMap::new();
        for disk in &self.report.disks {
            let owner = self.owners.get(&disk.settings.name);
            if let (Some(device), Some(owner)) = (device_of.get(disk.device.as_str()), owner) {
                let disk = ServedDisk { name: disk.settings.name.clone(), tenant: owner.tenant };
                served.entry(*device).or_default().push(disk);
            }
        }
        served
    }
}
