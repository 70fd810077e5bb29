//! All that was served, between two servers.

use crate::devices::Devices;
use crate::disk::{tell_hang_up, terms_of};
use crate::host::{About, Host, Hosted, Offer};
use crate::physical::host_disk;
use anyhow::Context;
use minerva_blk::{Image, Resumption, SuspendedDisk, VmDisk};
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
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
    /// Leaves everything as it is, in the order of [`Host::offers`].
    pub(crate) fn of(host: Host) -> Self {
        let (about, devices, disks, server) = host.into_parts();
        let mut left = server.suspend();
        left.sort_by(|one, other| one.name.cmp(&other.name));
        Self { about, devices, disks, left }
    }

    /// What another server offered, ready to be taken over.
    pub(crate) fn offered(
        offers: Vec<(Offer, Arc<Image>, UnixListener)>,
        mut devices: Devices,
        about: About,
    ) -> anyhow::Result<Self> {
        let (mut disks, mut left) = (BTreeMap::new(), Vec::new());
        for (Offer { settings, share }, image, listener) in offers {
            let name = settings.name.clone();
            let physical = devices.place(host_disk(image.device()))?;
            terms_of(&settings.terms, devices.devices[physical].physical.scheduler, share)
                .with_context(|| format!("disk `{name}`"))?;
            left.push(SuspendedDisk::new(name.clone(), image, listener));
            disks.insert(name, Hosted { settings, physical, share });
        }
        Ok(Self { about, devices, disks, left })
    }

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
            let hosted = disks.get(&suspended.name).context("an unknown disk")?;
            let settings = &hosted.settings;
            let scheduler = physical[hosted.physical].scheduler;
            let disk = VmDisk {
                name: suspended.name.clone(),
                image: Arc::clone(&suspended.image),
                physical: hosted.physical,
                socket: PathBuf::from(&settings.socket),
                terms: terms_of(&settings.terms, scheduler, hosted.share)?,
                queues: settings.queues,
                tell_hang_up,
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
