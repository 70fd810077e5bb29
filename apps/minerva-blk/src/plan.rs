//! From the operator's file to what is served: images opened and locked, each with the disk that it lies on, and promises that
//! the disk and its scheduler can keep.

use crate::devices::Devices;
use crate::disk::{NEUTRAL, settings_of, tell_hang_up, terms_of};
use crate::physical::host_disk;
use anyhow::Context;
use minerva_blk::{Image, ImageOptions, VmDisk};
use minerva_config::BlkConfig;
use minerva_model::DiskSettings;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is served.
pub(crate) struct Plan {
    pub(crate) devices: Devices,
    pub(crate) disks: Vec<Planned>,
}

/// A disk, ready to be served.
pub(crate) struct Planned {
    pub(crate) settings: DiskSettings,
    pub(crate) disk: VmDisk,
}

/// Opens and locks every image, and judges every contract.
pub(crate) fn open(config: &BlkConfig, request_logs: Option<&Path>) -> anyhow::Result<Plan> {
    let mut plan =
        Plan { devices: Devices::new(config.devices.clone(), request_logs.map(Path::to_owned)), disks: Vec::new() };
    for (name, disk) in &config.disks {
        let settings = settings_of(name, disk);
        let image =
            || Ok(Image::open(&disk.image, ImageOptions { is_read_only: disk.read_only, is_direct: disk.direct })?);
        let planned = image().and_then(|image| planned(&mut plan.devices, settings, image));
        plan.disks.push(planned.with_context(|| format!("{}: disk `{name}`", disk.place))?);
    }
    for (number, device) in plan.devices.devices.iter().enumerate() {
        let on_it = plan.disks.iter().filter(|planned| planned.disk.physical == number);
        device.admit(&on_it.map(|planned| &planned.settings).collect::<Vec<_>>())?;
    }
    Ok(plan)
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
    Ok(Planned { settings, disk })
}
