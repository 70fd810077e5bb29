//! All that was served, between two servers.

use crate::devices::Devices;
use crate::disk::{parameters_of, tags_of};
use crate::host::{About, Host, Hosted};
use anyhow::Context;
use minerva_blk::{Resumption, SuspendedDisk, VmDisk};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Nobody is served; what is said of each disk, and how to go on with it.
pub(crate) struct Suspended {
    pub(crate) about: About,
    pub(crate) devices: Devices,
    pub(crate) disks: BTreeMap<String, Hosted>,
    pub(crate) left: Vec<SuspendedDisk>,
}

/// The same, with workers that wait for the word.
pub(crate) struct Resuming {
    about: About,
    devices: Devices,
    disks: BTreeMap<String, Hosted>,
    resumption: Resumption,
}

impl Suspended {
    /// How to go on with each disk, in the order in which the old server offered them.
    pub(crate) fn disks(&self) -> &[SuspendedDisk] {
        &self.left
    }

    /// The same, to be filled.
    pub(crate) fn disks_mut(&mut self) -> &mut [SuspendedDisk] {
        &mut self.left
    }

    /// Makes all ready to be served.
    pub(crate) fn resume(self) -> anyhow::Result<Resuming> {
        let Self { about, devices, disks, left } = self;
        let physical: Vec<_> = devices.devices.iter().map(|device| device.physical.clone()).collect();
        let mut resumption = Resumption::prepare(&physical).context("failed to start")?;
        for suspended in left {
            let hosted = disks.get(&suspended.name).context("a disk that nobody knows")?;
            let (settings, terms) = (&hosted.settings, &hosted.settings.terms);
            let scheduler = physical[hosted.physical].scheduler;
            let disk = VmDisk {
                name: suspended.name.clone(),
                image: Arc::clone(&suspended.image),
                physical: hosted.physical,
                socket: PathBuf::from(&settings.socket),
                parameters: parameters_of(terms, scheduler, hosted.share)?,
                tags: tags_of(terms),
                queues: settings.queues,
            };
            resumption.add(disk, suspended)?;
        }
        Ok(Resuming { about, devices, disks, resumption })
    }

    /// Serves again.
    pub(crate) fn go_on(self) -> anyhow::Result<Host> {
        self.resume()?.go_on()
    }
}

impl Resuming {
    /// Serves.
    pub(crate) fn go_on(self) -> anyhow::Result<Host> {
        let server = self.resumption.go_on().context("failed to start")?;
        Ok(Host::new(self.about, self.devices, self.disks, server))
    }
}
