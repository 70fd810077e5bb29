//! All that was served, between two servers.

use crate::devices::Devices;
use crate::disk::{NEUTRAL, tell_failure, tell_hang_up, terms_of};
use crate::host::{About, Host, Hosted, Offer, Parts};
use crate::physical::host_disk;
use crate::plan::{Plan, Planned};
use crate::refused::Refused;
use anyhow::Context;
use minerva_blk::{Image, ReservedSocket, Resumption, Server, SuspendedDisk, VmDisk};
use minerva_model::DiskSettings;
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

/// Nobody is served; what is said of each disk, and how to go on with it.
pub(crate) struct Suspended {
    pub(crate) about: About,
    pub(crate) devices: Devices,
    pub(crate) disks: BTreeMap<String, Hosted>,
    /// Disks of the operator's file that are not served.
    pub(crate) refused: Vec<Refused>,
    pub(crate) left: Vec<SuspendedDisk>,
    /// Disks that the server before did not serve.
    new: Vec<NewDisk>,
}

/// A disk, and where its front end will be listened for.
type NewDisk = (VmDisk, ReservedSocket);

/// The same, with workers that wait for the word.
pub(crate) struct Resuming {
    about: About,
    devices: Devices,
    disks: BTreeMap<String, Hosted>,
    refused: Vec<Refused>,
    resumption: Resumption,
    new: Vec<NewDisk>,
}

impl Suspended {
    /// Leaves everything as it is, in the order of [`Host::offers`].
    pub(crate) fn of(host: Host) -> Self {
        let Parts { about, devices, mut disks, refused, server } = host.into_parts();
        // To `minervad` whoever goes on is another server, which holds nothing of what this one was told.
        disks.values_mut().for_each(|hosted| hosted.share = NEUTRAL);
        let mut left = server.suspend();
        left.sort_by(|one, other| one.name.cmp(&other.name));
        Self { about, devices, disks, refused, left, new: Vec::new() }
    }

    /// What another server offered, ready to be taken over.
    pub(crate) fn offered(
        offers: Vec<(Offer, Arc<Image>, UnixListener)>,
        mut devices: Devices,
        about: About,
    ) -> anyhow::Result<Self> {
        let (mut disks, mut left) = (BTreeMap::new(), Vec::new());
        for (Offer { settings, .. }, image, listener) in offers {
            let name = settings.name.clone();
            let physical = devices.place(host_disk(image.device()))?;
            let scheduler = devices.devices[physical].physical.scheduler;
            terms_of(&settings.terms, scheduler, NEUTRAL).with_context(|| format!("disk `{name}`"))?;
            left.push(SuspendedDisk::new(name.clone(), image, listener));
            disks.insert(name, Hosted { settings, physical, share: NEUTRAL });
        }
        Ok(Self { about, devices, disks, refused: Vec::new(), left, new: Vec::new() })
    }

    /// Takes what the operator's file has besides: `plan` makes it of the devices and of the disks that are there, each with its device.
    pub(crate) fn take_new(
        mut self,
        plan: impl FnOnce(Devices, &[(usize, &DiskSettings)]) -> (Plan, Vec<ReservedSocket>),
    ) -> Self {
        let served: Vec<_> = self.disks.values().map(|hosted| (hosted.physical, &hosted.settings)).collect();
        let (Plan { devices, disks, refused }, sockets) = plan(self.devices, &served);
        (self.devices, self.refused) = (devices, refused);
        for (Planned { settings, disk, .. }, socket) in disks.into_iter().zip(sockets) {
            let hosted = Hosted { settings, physical: disk.physical, share: NEUTRAL };
            self.disks.insert(disk.name.clone(), hosted);
            self.new.push((disk, socket));
        }
        self
    }

    /// How many disks the server before did not serve.
    pub(crate) fn new_count(&self) -> usize {
        self.new.len()
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
        let Self { about, devices, disks, refused, left, new } = self;
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
                tell_failure,
            };
            resumption.add(disk, suspended)?;
        }
        Ok(Resuming { about, devices, disks, refused, resumption, new })
    }

    /// Serves again.
    pub(crate) fn go_on(self) -> anyhow::Result<Host> {
        self.resume()?.go_on()
    }
}

impl Resuming {
    /// Serves.
    pub(crate) fn go_on(self) -> anyhow::Result<Host> {
        let Self { about, devices, mut disks, mut refused, resumption, new } = self;
        let mut server = resumption.go_on().context("failed to start")?;
        for (disk, socket) in new {
            let name = disk.name.clone();
            // The server before has ended: those that it served are served on, whatever becomes of this one.
            if let Err(error) = serve_new(&mut server, disk, socket) {
                eprintln!("minerva-blk: disk `{name}`: {error:#}");
                disks.remove(&name);
                refused.push(Refused::new(&name, &error, None));
            }
        }
        Ok(Host::new(Parts { about, devices, disks, refused, server }))
    }
}

fn serve_new(server: &mut Server, disk: VmDisk, socket: ReservedSocket) -> anyhow::Result<()> {
    let listener = socket.listen()?;
    Ok(server.add(disk, Some(listener))?)
}
