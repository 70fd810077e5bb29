//! From the operator's file to what is served: images opened and locked, each with the disk that it lies on, and promises that
//! the disk's scheduler understands.

use crate::physical::{HostDisk, host_disk};
use anyhow::{Context, bail};
use minerva_blk::tag::TagBounds;
use minerva_blk::{Image, ImageOptions, PhysicalDisk, VmDisk};
use minerva_blocksched::{BuildOptions, FlowParameters, Promise, SchedulerName, UNIT_BYTES};
use minerva_config::{BlkConfig, BlkDeviceSettings, DEVICE_OTHER, VmDiskSettings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where sockets are that the file does not name.
const SOCKETS: &str = "/run/minerva-blk";

/// What is served.
pub(crate) struct Plan {
    pub(crate) physical: Vec<PhysicalDisk>,
    pub(crate) disks: Vec<VmDisk>,
}

/// Where QEMU connects for a disk.
pub(crate) fn socket_of(name: &str, disk: &VmDiskSettings) -> PathBuf {
    disk.socket.clone().unwrap_or_else(|| Path::new(SOCKETS).join(format!("{name}.sock")))
}

/// Opens and locks every image.
pub(crate) fn open(config: &BlkConfig) -> anyhow::Result<Plan> {
    let mut plan = Plan { physical: Vec::new(), disks: Vec::new() };
    for (name, disk) in &config.disks {
        plan.add(config, name, disk).with_context(|| format!("{}: disk `{name}`", disk.place))?;
    }
    Ok(plan)
}

impl Plan {
    fn add(&mut self, config: &BlkConfig, name: &str, disk: &VmDiskSettings) -> anyhow::Result<()> {
        let options = ImageOptions { is_read_only: disk.read_only, is_direct: disk.direct };
        let image = Image::open(&disk.image, options)?;
        let host = host_disk(image.device());
        let (physical, settings) = self.physical_of(config, host);
        let parameters = promises(disk, settings.scheduler)?;
        self.disks.push(VmDisk {
            name: name.to_owned(),
            image: Arc::new(image),
            physical,
            socket: socket_of(name, disk),
            parameters,
            tags: TagBounds { default: disk.tag_default, max: disk.tag_max },
            queues: disk.queues,
        });
        Ok(())
    }

    /// The disk's place among those that are served, and its settings.
    fn physical_of(&mut self, config: &BlkConfig, host: Option<HostDisk>) -> (usize, BlkDeviceSettings) {
        let host = host.unwrap_or(HostDisk { name: DEVICE_OTHER.to_owned(), is_rotational: false });
        let settings = config.devices.get(&host.name).cloned().unwrap_or_default();
        if let Some(found) = self.physical.iter().position(|disk| disk.name == host.name) {
            return (found, settings);
        }
        let is_rotational = settings.rotational.unwrap_or(host.is_rotational);
        self.physical.push(PhysicalDisk {
            name: host.name,
            scheduler: settings.scheduler,
            build: BuildOptions::for_disk(is_rotational, settings.depth),
            is_pool_wanted: false,
        });
        (self.physical.len() - 1, settings)
    }
}

/// What a scheduler is told of a disk; an error where it would not keep it.
fn promises(disk: &VmDiskSettings, scheduler: SchedulerName) -> anyhow::Result<FlowParameters> {
    let unit = f64::from(UNIT_BYTES);
    let mut parameters = FlowParameters {
        weight: disk.weight,
        tag_default: disk.tag_default,
        tag_max: disk.tag_max,
        ..FlowParameters::default()
    };
    if let Some(rate) = disk.rate_bytes_per_second {
        if !scheduler.keeps(Promise::Contract) && !scheduler.keeps(Promise::Reservation) {
            bail!(
                "`rate` is promised, and the scheduler `{scheduler}` of its device keeps no contracts; {}",
                keepers()
            );
        }
        let contract = scheduler.contract(rate as f64, disk.burst_bytes as f64, disk.delay, UNIT_BYTES);
        parameters.contract = Some(contract);
        parameters.reservation_per_second = rate as f64 / unit;
    }
    if let Some(limit) = disk.limit_bytes_per_second {
        if !scheduler.keeps(Promise::Limit) {
            bail!(
                "`limit` is set, and the scheduler `{scheduler}` of its device knows none; set `scheduler = \"mclock\"`"
            );
        }
        parameters.limit_per_second = limit as f64 / unit;
    }
    Ok(parameters)
}

fn keepers() -> String {
    let keeps = |name: &&SchedulerName| name.keeps(Promise::Contract) || name.keeps(Promise::Reservation);
    let names: Vec<String> = SchedulerName::ALL.iter().filter(keeps).map(|name| format!("`{name}`")).collect();
    format!("set its `scheduler` to one of {}", names.join(", "))
}
