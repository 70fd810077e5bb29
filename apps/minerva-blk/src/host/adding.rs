//! Disks that come while others are served: those that an operator adds, and those whose image was locked.

use super::{Host, Hosted};
use crate::disk::NEUTRAL;
use crate::physical::host_disk;
use crate::plan::planned;
use crate::refused::{Refused, WaitingDisk};
use anyhow::{Context, bail};
use minerva_blk::{Image, ImageOptions};
use minerva_config::{VM_DISK_NAME_FORM, is_vm_disk_name};
use minerva_model::DiskSettings;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

const QUEUES_MAX: u16 = 64;

/// What a disk that an operator adds is made of.
pub(crate) struct OpenedDisk {
    /// Locked.
    image: Image,
    listener: UnixListener,
}

impl OpenedDisk {
    /// Of what came with the request. Locking waits for a process that was killed.
    pub(crate) fn lock(settings: &DiskSettings, opened: Vec<OwnedFd>) -> anyhow::Result<Self> {
        let [image, listener] = <[OwnedFd; 2]>::try_from(opened)
            .map_err(|opened| anyhow::anyhow!("an open image and a socket are needed, and {} came", opened.len()))?;
        Ok(Self { image: image_of(settings, image, None)?, listener: UnixListener::from(listener) })
    }
}

/// Locks an image that another process opened, and serves as so many bytes, if it does.
pub(super) fn image_of(settings: &DiskSettings, file: OwnedFd, served_bytes: Option<u64>) -> anyhow::Result<Image> {
    let options = ImageOptions { is_read_only: settings.read_only, is_direct: settings.direct };
    let (file, path) = (File::from(file), Path::new(&settings.image));
    Ok(match served_bytes {
        Some(bytes) => Image::taken_over(file, path, options, bytes)?,
        None => Image::of(file, path, options)?,
    })
}

impl Host {
    /// Says why there cannot be such a disk, before anything is opened for it.
    pub(crate) fn judge_new(&self, settings: &DiskSettings) -> anyhow::Result<()> {
        let name = &settings.name;
        if !is_vm_disk_name(name) {
            bail!("`{name}` cannot be a disk's name: {VM_DISK_NAME_FORM}");
        }
        if self.disks.contains_key(name) {
            bail!("there is a disk `{name}` already; `minerva-ctl disk set` changes it");
        }
        if !(1..=QUEUES_MAX).contains(&settings.queues) {
            bail!("a guest has 1 to {QUEUES_MAX} rings, not {}", settings.queues);
        }
        Ok(())
    }

    pub(super) fn add(&mut self, settings: DiskSettings, opened: OpenedDisk) -> anyhow::Result<()> {
        self.judge_new(&settings)?;
        let OpenedDisk { image, listener } = opened;
        self.protected(&settings, image.device())?;
        self.serve(settings, image, listener)
    }

    /// Serves a disk that waited for the lock of its image.
    pub(crate) fn serve_waiting(&mut self, disk: WaitingDisk, image: Image) -> anyhow::Result<()> {
        let refused = self.refused.iter_mut().find(|refused| refused.name == disk.settings.name);
        let socket = refused.and_then(Refused::take_socket);
        let socket = socket.context("it has no socket; add it with `minerva-ctl disk add`")?;
        self.serve(disk.settings, image, socket.listen()?)
    }

    /// Whether the device on which an image lies is served by a thread that another image holds up.
    pub(crate) fn is_held_up(&self, image: &Image) -> bool {
        let physical = self.devices.find(host_disk(image.device()).as_ref());
        physical.is_some_and(|physical| self.server.is_held_up(physical))
    }

    fn serve(&mut self, settings: DiskSettings, image: Image, listener: UnixListener) -> anyhow::Result<()> {
        let served = self.try_to_serve(settings, image, listener);
        // A device comes with the first disk that is served there: one whose disk was refused is forgotten, as it has no worker.
        self.devices.devices.truncate(self.server.physical_count());
        served
    }

    fn try_to_serve(&mut self, settings: DiskSettings, image: Image, listener: UnixListener) -> anyhow::Result<()> {
        let name = settings.name.clone();
        let planned = planned(&mut self.devices, settings, image)?;
        let physical = planned.disk.physical;
        self.admit(physical, &planned.settings)?;
        // One more device than workers: it is the first disk there.
        if physical == self.server.physical_count() {
            self.server.add_physical(&self.devices.devices[physical].physical)?;
        }
        self.server.add(planned.disk, Some(listener))?;
        // What was wrong is mended.
        self.refused.retain(|refused| refused.name != name);
        self.disks.insert(name, Hosted { settings: planned.settings, physical, share: NEUTRAL });
        self.reserve(physical);
        Ok(())
    }
}
