//! From the operator's file to what is served: images opened and locked, each with the disk that it lies on, and promises that
//! the disk and its scheduler can keep. A disk that cannot be served is refused with the reason, and the others are served; one whose
//! image is locked is tried again.

use crate::devices::Devices;
use crate::disk::{NEUTRAL, heeds_weights, settings_of, tell_failure, tell_hang_up, terms_of};
use crate::physical::host_disk;
use crate::refused::{self, Refused, WaitingDisk};
use anyhow::{Context, anyhow, bail};
use minerva_blk::{Image, ImageError, ImageOptions, ReservedSocket, ServerError, UnlockedImage, VmDisk};
use minerva_config::VmDiskSettings;
use minerva_model::DiskSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What is served, and what is not.
pub(crate) struct Plan {
    pub(crate) devices: Devices,
    pub(crate) disks: Vec<Planned>,
    pub(crate) refused: Vec<Refused>,
}

/// A disk, ready to be served.
pub(crate) struct Planned {
    pub(crate) settings: DiskSettings,
    pub(crate) disk: VmDisk,
    /// Where the operator names it.
    place: String,
}

/// Opens and locks every image but those that are `silent`, as their storage does not answer, waiting for locks until `deadline` at most, and judges every contract beside those of disks that are `served`
/// already, each by the number of its device.
pub(crate) fn open<'a>(
    devices: Devices,
    disks: impl Iterator<Item = (&'a String, &'a VmDiskSettings)>,
    silent: &BTreeSet<PathBuf>,
    deadline: Instant,
    served: &[(usize, &DiskSettings)],
) -> Plan {
    let mut plan = Plan { devices, disks: Vec::new(), refused: Vec::new() };
    for (name, disk) in disks {
        let (settings, place) = (settings_of(name, disk), &disk.place);
        if silent.contains(&disk.image) {
            plan.refuse(name, place, &does_not_answer(name, &disk.image), None);
            continue;
        }
        let options = ImageOptions { is_read_only: disk.read_only, is_direct: disk.direct };
        let image = match UnlockedImage::open(&disk.image, options) {
            Ok(image) => image,
            Err(error) => {
                plan.refuse(name, place, &error.into(), None);
                continue;
            }
        };
        let locked = match image.lock(deadline) {
            Err(error) => {
                let is_locked = matches!(error, ImageError::Locked { .. });
                let waiting = is_locked.then(|| WaitingDisk::new(settings, image));
                plan.refuse(name, place, &error.into(), waiting);
                continue;
            }
            Ok(locked) => locked,
        };
        match planned(&mut plan.devices, settings, locked) {
            Ok(planned) => plan.disks.push(Planned { place: place.clone(), ..planned }),
            Err(error) => plan.refuse(name, place, &error, None),
        }
    }
    (0..plan.devices.devices.len()).for_each(|device| plan.admit(device, served));
    plan
}

fn does_not_answer(name: &str, image: &Path) -> anyhow::Error {
    anyhow!(
        "{}: its storage does not answer; look at its mount and at the server behind it, then use `minerva-ctl disk add {name}` with the \
         disk's settings, or `systemctl reload minerva-blk`",
        image.display()
    )
}

/// A disk of an open image, with what its scheduler is told of it. Whether it fits beside others is not judged yet.
pub(crate) fn planned(devices: &mut Devices, settings: DiskSettings, image: Image) -> anyhow::Result<Planned> {
    let physical = devices.place(host_disk(image.device()))?;
    let host_disk = &devices.devices[physical].physical;
    let scheduler = host_disk.scheduler;
    if settings.terms.weight != NEUTRAL && !heeds_weights(scheduler) {
        eprintln!(
            "minerva-blk: disk `{}`: its weight has no effect, as the scheduler `{scheduler}` of {} ignores weights; promise it a `rate` \
             in place of it, or use `bfq`, `sfq` or `mclock`",
            settings.name, host_disk.name
        );
    }
    let disk = VmDisk {
        name: settings.name.clone(),
        image: Arc::new(image),
        physical,
        socket: PathBuf::from(&settings.socket),
        terms: terms_of(&settings.terms, scheduler, NEUTRAL)?,
        queues: settings.queues,
        tell_hang_up,
        tell_failure,
    };
    Ok(Planned { settings, disk, place: String::new() })
}

impl Plan {
    fn refuse(&mut self, name: &str, place: &str, error: &anyhow::Error, waiting: Option<WaitingDisk>) {
        eprintln!("minerva-blk: {place}: disk `{name}`: {error:#}");
        self.refused.push(Refused::new(name, error, waiting));
    }

    /// Takes the contracts on a device; where not all can be kept, those that can, in the order of the disks' names.
    fn admit(&mut self, number: usize, served: &[(usize, &DiskSettings)]) {
        let device = &self.devices.devices[number];
        let is_here = |planned: &&Planned| planned.disk.physical == number;
        let new: Vec<&DiskSettings> = self.disks.iter().filter(is_here).map(|planned| &planned.settings).collect();
        let mut taken: Vec<_> = served.iter().filter(|(on, _)| *on == number).map(|(_, disk)| *disk).collect();
        if new.is_empty() || device.admit(&[&*taken, &*new].concat()).is_ok() {
            return;
        }
        // Those that are promised nothing cannot be in the wrong.
        let (harmless, asking): (Vec<&DiskSettings>, Vec<&DiskSettings>) =
            new.into_iter().partition(|disk| disk.terms.rate_bytes_per_second.is_none());
        taken.extend(harmless);
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
        let listeners = self.open_each(minerva_blk::listen);
        self.reserve_waiting(ReservedSocket::new);
        listeners
    }

    /// The same of a server that takes over, with the sockets that the one before had reserved: it needs those still where nothing comes of that,
    /// and until then nobody is let wait.
    pub(crate) fn reserve(&mut self, reserved: Vec<ReservedSocket>) -> Vec<ReservedSocket> {
        let with_place = |socket: ReservedSocket| (socket.path().to_owned(), socket);
        let mut reserved: BTreeMap<PathBuf, ReservedSocket> = reserved.into_iter().map(with_place).collect();
        let mut open = |path: &Path| reserved.remove(path).map_or_else(|| ReservedSocket::new(path), Ok);
        let sockets = self.open_each(&mut open);
        self.reserve_waiting(open);
        sockets
    }

    fn open_each<S>(&mut self, mut open: impl FnMut(&Path) -> Result<S, ServerError>) -> Vec<S> {
        let (mut opened, mut failed) = (Vec::new(), Vec::new());
        for planned in &self.disks {
            match open(&planned.disk.socket) {
                Ok(socket) => opened.push(socket),
                Err(error) => failed.push((planned.disk.name.clone(), anyhow::Error::from(error))),
            }
        }
        failed.iter().for_each(|(name, error)| self.remove(name, error));
        opened
    }

    /// Makes the sockets of disks that are tried again: later nobody here could.
    fn reserve_waiting(&mut self, mut open: impl FnMut(&Path) -> Result<ReservedSocket, ServerError>) {
        for refused in &mut self.refused {
            let Some(disk) = refused.waiting() else { continue };
            let socket = Path::new(&disk.settings.socket);
            match make_folder(socket).and_then(|()| Ok(open(socket)?)) {
                Ok(reserved) => refused.reserve(reserved),
                Err(error) => refused.give_up(&error),
            }
        }
    }

    /// Every socket that was made.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let served = self.disks.iter().map(|planned| planned.disk.socket.as_path());
        let waiting = self.refused.iter().filter_map(Refused::socket).map(ReservedSocket::path);
        served.chain(waiting).map(Path::to_owned).collect()
    }

    fn remove(&mut self, name: &str, error: &anyhow::Error) {
        if let Some(at) = self.disks.iter().position(|planned| planned.disk.name == name) {
            let planned = self.disks.remove(at);
            self.refuse(name, &planned.place, error, None);
        }
    }

    /// An error where disks are named and none can be served, nor ever will be.
    pub(crate) fn has_disks(&self) -> anyhow::Result<()> {
        if self.disks.is_empty() && !self.refused.is_empty() && !refused::has_waiting(&self.refused) {
            bail!("none of {} disks can be served", self.refused.len());
        }
        Ok(())
    }
}

/// Makes the folder of a disk's socket.
pub(crate) fn make_folder(socket: &Path) -> anyhow::Result<()> {
    let Some(folder) = socket.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make {} for its socket; name another `socket`", folder.display()))
}
