//! What disks are promised: whether the device can keep it, what of the device that takes, and how it stands beside other processes.

use super::Host;
use crate::devices::Device;
use crate::disk::{NEUTRAL, heeds_weights, ignores_weights, terms_of};
use crate::physical::host_disk;
use anyhow::bail;
use minerva_model::{DiskChange, DiskSettings, Protection};
use std::collections::BTreeMap;
use std::time::Instant;

impl Host {
    /// Promises a disk something else, or says why not.
    pub(super) fn set(&mut self, name: &str, change: &DiskChange) -> anyhow::Result<()> {
        let hosted = &self.disks[name];
        let terms = change.applied_to(hosted.settings.terms);
        for (word, is_set) in [("burst", change.burst_bytes.is_some()), ("delay", change.delay.is_some())] {
            if is_set && terms.rate_bytes_per_second.is_none() {
                bail!("`{word}` without `rate` promises nothing; set `rate` too, the bytes a second that are promised");
            }
        }
        let settings = DiskSettings { terms, ..hosted.settings.clone() };
        // What is refused leaves everything as it was.
        let (physical, device) = (hosted.physical, &self.devices.devices[hosted.physical]);
        let (scheduler, is_new) = (device.physical.scheduler, terms.weight != hosted.settings.terms.weight);
        if is_new && terms.weight != NEUTRAL && !heeds_weights(scheduler) {
            bail!(ignores_weights(scheduler, &device.physical.name, "to give the disk a weight"));
        }
        terms_of(&terms, device.physical.scheduler, hosted.share)?;
        self.admit(physical, &settings)?;
        let (name_of_device, before) = (&device.physical.name, Some(&hosted.settings.terms));
        device.protection.judge(name_of_device, Instant::now(), &settings, before)?;
        self.apply(name, |hosted| hosted.settings.terms = terms)?;
        self.reserve(physical);
        Ok(())
    }

    /// Judges the contracts on a device with this disk as it is to be.
    pub(super) fn admit(&self, physical: usize, disk: &DiskSettings) -> anyhow::Result<()> {
        let others = self.disks.values().filter(|hosted| hosted.physical == physical);
        let others = others.map(|hosted| &hosted.settings).filter(|other| other.name != disk.name);
        self.devices.devices[physical].admit(&others.chain([disk]).collect::<Vec<_>>())
    }

    /// Judges a new contract on a device beside the other processes of this host. On a device of which nobody has told yet it is taken.
    pub(super) fn protected(&self, settings: &DiskSettings, device: u64) -> anyhow::Result<()> {
        let name = host_disk(device).map(|disk| disk.name);
        let is_it = |device: &&Device| Some(&device.physical.name) == name.as_ref();
        let Some(device) = self.devices.devices.iter().find(is_it) else { return Ok(()) };
        device.protection.judge(&device.physical.name, Instant::now(), settings, None)
    }

    /// `minervad` says how contracts stand beside other processes; what it is answered.
    pub(super) fn protect(&mut self, mut said: BTreeMap<String, Protection>) -> String {
        for device in &mut self.devices.devices {
            if let Some(protection) = said.remove(&device.physical.name) {
                device.protection.said(&device.physical.name, Instant::now(), protection);
            }
        }
        String::new()
    }

    /// Notes what the contracts on a device take of its time.
    pub(super) fn reserve(&mut self, physical: usize) {
        let Self { devices, disks, .. } = self;
        let here = disks.values().filter(|hosted| hosted.physical == physical).map(|hosted| &hosted.settings);
        devices.devices[physical].reserve(&here.collect::<Vec<_>>());
    }
}
