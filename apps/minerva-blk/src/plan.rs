//! From the operator's file to what is served: images opened and locked, each with the disk that it lies on, and promises that
//! the disk and its scheduler can keep. A disk that cannot be served is refused with the reason, and the others are served.

use crate::devices::Devices;
use crate::disk::{NEUTRAL, settings_of, tell_hang_up, terms_of};
use crate::physical::host_disk;
use anyhow::{Context, bail};
use minerva_blk::{Image, ImageOptions, LOCK_PATIENCE, VmDisk};
use minerva_config::{BlkConfig, VmDiskSettings};
use minerva_model::{DiskSettings, RefusedDisk};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What is served, and what is not.
pub(crate) struct Plan {
    pub(crate) devices: Devices,
    pub(crate) disks: Vec<Planned>,
    pub(crate) refused: Vec<RefusedDisk>,
}

/// A disk, ready to be served.
pub(crate) struct Planned {
    pub(crate) settings: DiskSettings,
    pub(crate) disk: VmDisk,
    /// Where the operator names it.
    place: String,
}

/// Opens and locks every image, and judges every contract.
pub(crate) fn open(config: &BlkConfig, request_logs: Option<&Path>) -> Plan {
    let devices = Devices::new(config.devices.clone(), request_logs.map(Path::to_owned));
    let mut plan = Plan { devices, disks: Vec::new(), refused: Vec::new() };
    let deadline = Instant::now() + LOCK_PATIENCE;
    for (name, disk) in &config.disks {
        match opened(&mut plan.devices, name, disk, deadline) {
            Ok(planned) => plan.disks.push(planned),
            Err(error) => plan.refuse(name, &disk.place, &error),
        }
    }
    (0..plan.devices.devices.len()).for_each(|device| plan.admit(device));
    plan
}

fn opened(devices: &mut Devices, name: &str, disk: &VmDiskSettings, deadline: Instant) -> anyhow::Result<Planned> {
    let options = ImageOptions { is_read_only: disk.read_only, is_direct: disk.direct };
    let image = Image::open_until(&disk.image, options, deadline)?;
    let planned = planned(devices, settings_of(name, disk), image)?;
    Ok(Planned { place: disk.place.clone(), ..planned })
}

/// A disk of an open image, with what its scheduler is told of it. Whether it fits beside others is not judged yet.
pub(crate) fn planned(devices: &mut Devices, settings: DiskSettings, image: Image) -> anyhow::Result<Planned> {
    let physical = devices.place(host_disk(image.device()))?;
    let scheduler = devices.devices[physical].physical.scheduler;
    let disk = VmDisk {
        name: settings.name.clone(),
        image: Arc::new(image),
        physical,
        socket: PathBuf::from(&settings.socket),
        terms: terms_of(&settings.terms, scheduler, NEUTRAL)?,
        queues: settings.queues,
        tell_hang_up,
    };
    Ok(Planned { settings, disk, place: String::new() })
}

impl Plan {
    fn refuse(&mut self, name: &str, place: &str, error: &anyhow::Error) {
        eprintln!("minerva-blk: {place}: disk `{name}`: {error:#}");
        self.refused.push(RefusedDisk { name: name.to_owned(), why: format!("{error:#}") });
    }

    /// Takes the contracts on a device; where not all can be kept, those that can, in the order of the disks' names.
    fn admit(&mut self, number: usize) {
        let device = &self.devices.devices[number];
        let is_here = |planned: &&Planned| planned.disk.physical == number;
        let all: Vec<&DiskSettings> = self.disks.iter().filter(is_here).map(|planned| &planned.settings).collect();
        if device.admit(&all).is_ok() {
            return;
        }
        // Those that are promised nothing cannot be in the wrong.
        let (mut taken, asking): (Vec<&DiskSettings>, Vec<&DiskSettings>) =
            all.into_iter().partition(|disk| disk.terms.rate_bytes_per_second.is_none());
        let mut refused = Vec::new();
        for disk in asking {
            taken.push(disk);
            if let Err(error) = device.admit(&taken) {
                taken.pop();
                refused.push((disk.name.clone(), error));
            }
        }
        for (name, error) in refused {
            self.remove(&name, &error);
        }
    }

    /// Refuses those that `judge` fails.
    pub(crate) fn check_each(&mut self, judge: impl Fn(&VmDisk) -> anyhow::Result<()>) {
        let judged = self.disks.iter().map(|planned| (planned.disk.name.clone(), judge(&planned.disk)));
        let failed: Vec<_> = judged.filter_map(|(name, result)| Some((name, result.err()?))).collect();
        failed.iter().for_each(|(name, error)| self.remove(name, error));
    }

    /// Listens for the front end of each disk, in the order of the disks; refuses those whose socket cannot be had.
    pub(crate) fn listen(&mut self) -> Vec<UnixListener> {
        let (mut listeners, mut failed) = (Vec::new(), Vec::new());
        for planned in &self.disks {
            match minerva_blk::listen(&planned.disk.socket) {
                Ok(listener) => listeners.push(listener),
                Err(error) => failed.push((planned.disk.name.clone(), anyhow::Error::from(error))),
            }
        }
        failed.iter().for_each(|(name, error)| self.remove(name, error));
        listeners
    }

    fn remove(&mut self, name: &str, error: &anyhow::Error) {
        if let Some(at) = self.disks.iter().position(|planned| planned.disk.name == name) {
            let planned = self.disks.remove(at);
            self.refuse(name, &planned.place, error);
        }
    }

    /// An error where disks are named and none can be served.
    pub(crate) fn has_disks(&self) -> anyhow::Result<()> {
        if self.disks.is_empty() && !self.refused.is_empty() {
            bail!("none of {} disks can be served", self.refused.len());
        }
        Ok(())
    }
}

/// Makes the folder of a disk's socket.
pub(crate) fn make_folder(disk: &VmDisk) -> anyhow::Result<()> {
    let Some(folder) = disk.socket.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make {} for its socket; name another `socket`", folder.display()))
}
