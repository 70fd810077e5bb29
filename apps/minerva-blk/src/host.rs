//! What is served now, and how it changes: what `minerva-ctl disk` and `minervad` ask for.

mod adding;
mod contracts;

pub(crate) use adding::OpenedDisk;

use crate::devices::Devices;
use crate::disk::{NEUTRAL, heeds_weights, ignores_weights, terms_of, told};
use crate::privileges::Identity;
use crate::refused::Refused;
use anyhow::{Context, bail};
use minerva_blk::{Image, PhysicalDisk, ReservedSocket, Server, ServerError};
use minerva_model::{
    ControlRequest, DiskFigures, DiskReport, DiskSettings, IoCounters, ServerAnswer, ServerReport, ServerRequest,
    WaitCounters,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A disk that is served.
pub(crate) struct Hosted {
    pub(crate) settings: DiskSettings,
    /// As an index of the devices.
    pub(crate) physical: usize,
    /// What `minervad` set.
    pub(crate) share: u32,
}

/// A disk as a server offers it to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) settings: DiskSettings,
    /// As its guest knows it; older servers do not tell it.
    #[serde(default)]
    pub(crate) length_bytes: Option<u64>,
    /// Neutral, and read by older servers only, which go on with it.
    #[serde(default)]
    share: u32,
}

impl Offer {
    /// Its image, open and locked by the server that offers it.
    pub(crate) fn image(&self, file: OwnedFd) -> anyhow::Result<Image> {
        adding::image_of(&self.settings, file, self.length_bytes)
    }
}

/// What a server says of itself, which does not change.
pub(crate) struct About {
    pub(crate) config: String,
    pub(crate) user: u32,
    pub(crate) socket_group: Option<u32>,
}

impl About {
    /// A server of this file.
    pub(crate) fn of(config: &Path, identity: &Identity) -> Self {
        // Told to who may be in another folder.
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned()).display().to_string();
        Self { config, user: identity.user(), socket_group: identity.socket_group() }
    }
}

/// The server and all that is served.
pub(crate) struct Host {
    about: About,
    began: minerva_model::Nanos,
    devices: Devices,
    disks: BTreeMap<String, Hosted>,
    /// Disks of the operator's file that are not served.
    refused: Vec<Refused>,
    server: Server,
}

/// What a host is made of: what it says of itself, the devices, the disks, those that are not served, and the server below.
pub(crate) struct Parts {
    pub(crate) about: About,
    pub(crate) devices: Devices,
    pub(crate) disks: BTreeMap<String, Hosted>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) server: Server,
}

/// What a request was answered with: a text, or that there is no such disk.
pub(crate) type Answered = anyhow::Result<Option<String>>;

impl Host {
    /// One that serves these disks.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { about, devices, disks, refused, server } = parts;
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let began = minerva_model::Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        let mut host = Self { about, began, devices, disks, refused, server };
        (0..host.devices.devices.len()).for_each(|physical| host.reserve(physical));
        host
    }

    /// All that is served, for the next server: each disk, its image and its socket.
    pub(crate) fn offers(&self) -> Vec<(Offer, &Image, BorrowedFd<'_>)> {
        let offer = |(name, hosted): (&String, &Hosted)| {
            let (image, listener) = self.server.offered(name)?;
            let length_bytes = Some(image.geometry().sectors * minerva_blk::request::SECTOR_BYTES);
            Some((Offer { settings: hosted.settings.clone(), length_bytes, share: NEUTRAL }, image, listener))
        };
        self.disks.iter().filter_map(offer).collect()
    }

    /// The sockets of disks that are tried again, for the next server: another could not take their places if it then came to nothing.
    pub(crate) fn reserved(&self) -> Vec<&ReservedSocket> {
        self.refused.iter().filter_map(Refused::socket).collect()
    }

    /// Lets no front end change anything any more; see [`Server::park`].
    pub(crate) fn park(&self, patience: Duration) -> Result<(), ServerError> {
        self.server.park(patience)
    }

    /// What it is made of.
    pub(crate) fn into_parts(self) -> Parts {
        let Self { about, devices, disks, refused, server, .. } = self;
        Parts { about, devices, disks, refused, server }
    }

    /// Disks of the operator's file that are not served.
    pub(crate) fn refused_mut(&mut self) -> &mut Vec<Refused> {
        &mut self.refused
    }

    /// Ends, with a line for each disk.
    pub(crate) fn stop(self) -> Vec<String> {
        let lines = self.disks.keys().filter_map(|name| self.report(name)).map(|report| told(&report)).collect();
        self.server.stop();
        lines
    }

    /// Tells or sets what `minervad` steers by.
    pub(crate) fn knob(&mut self, request: &ServerRequest) -> ServerAnswer {
        let Some(hosted) = self.disks.get(&request.disk) else { return ServerAnswer::Gone };
        let Some(text) = &request.text else { return ServerAnswer::Holds(hosted.share.to_string()) };
        let Some(share) = text.trim().parse().ok().filter(|share| (1..=10_000).contains(share)) else {
            return ServerAnswer::Refused("weights go from 1 to 10000".to_owned());
        };
        let PhysicalDisk { name, scheduler, .. } = &self.devices.devices[hosted.physical].physical;
        // What is neutral is as if nobody had set it: an undo is never refused.
        if share != NEUTRAL && !heeds_weights(*scheduler) {
            return ServerAnswer::Refused(ignores_weights(*scheduler, name, "to have the disk steered"));
        }
        match self.apply(&request.disk, |hosted| hosted.share = share) {
            Ok(()) => ServerAnswer::Holds(share.to_string()),
            Err(error) => ServerAnswer::Refused(format!("{error:#}")),
        }
    }

    /// Does what an operator asks for; `opened` is what a disk to be added is made of.
    pub(crate) fn control(&mut self, request: ControlRequest, opened: Option<OpenedDisk>) -> Answered {
        let changed = match request {
            ControlRequest::List => return json(&self.list()).map(Some),
            ControlRequest::Add { disk } => {
                let name = disk.name.clone();
                self.add(disk, opened.context("an open image and a socket are needed")?)?;
                name
            }
            ControlRequest::Set { name, change } => {
                if !self.disks.contains_key(&name) {
                    return Ok(None);
                }
                self.set(&name, &change)?;
                name
            }
            ControlRequest::Remove { name, .. } if self.forget_refused(&name) => return Ok(Some("null".to_owned())),
            ControlRequest::Remove { name, force } => {
                let Some(report) = self.report(&name) else { return Ok(None) };
                self.remove(&report, force)?;
                return json(&report).map(Some);
            }
            ControlRequest::Resize { name, bytes } => {
                let Some(grown) = self.server.grow(&name, bytes) else { return Ok(None) };
                grown?;
                name
            }
            ControlRequest::Protect { devices } => return Ok(Some(self.protect(devices))),
        };
        self.report(&changed).map(|report| json(&report)).transpose()
    }

    fn list(&self) -> ServerReport {
        ServerReport {
            program: concat!("minerva-blk ", env!("CARGO_PKG_VERSION")).to_owned(),
            process: std::process::id(),
            began: self.began,
            config: self.about.config.clone(),
            user: self.about.user,
            socket_group: self.about.socket_group,
            devices: self.devices.devices.iter().map(crate::devices::Device::told).collect(),
            disks: self.disks.keys().filter_map(|name| self.report(name)).collect(),
            refused: self.refused.iter().map(|refused| refused.told(Instant::now())).collect(),
        }
    }

    fn report(&self, name: &str) -> Option<DiskReport> {
        let hosted = self.disks.get(name)?;
        let (counters, measures, length_bytes) = self.server.measure(name)?;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(DiskReport {
            settings: hosted.settings.clone(),
            device: self.devices.devices[hosted.physical].physical.name.clone(),
            length_bytes,
            share: hosted.share,
            front_end: self.server.front_end(name),
            under_way: measures.under_way,
            io: IoCounters {
                read_bytes: of(&counters.read_bytes),
                write_bytes: of(&counters.write_bytes),
                read_ops: of(&counters.reads),
                write_ops: of(&counters.writes),
            },
            wait: WaitCounters { read_ns: of(&counters.read_ns), write_ns: of(&counters.write_ns) },
            other_ops: of(&counters.others),
            tagged_ops: of(&counters.tagged),
            failed_ops: of(&counters.failed),
            refused_ops: of(&counters.refused),
            figures: DiskFigures { hung_up: self.server.hang_up(name).map(|why| why.to_string()), ..measures.figures },
        })
    }

    fn remove(&mut self, report: &DiskReport, force: bool) -> anyhow::Result<()> {
        let name = &report.settings.name;
        if let Some(process) = report.front_end.filter(|_| !force) {
            bail!(
                "a guest is connected to `{name}` (process {process}); end it or detach its disk first, or use \
                 `--force` to remove the disk while it is in use"
            );
        }
        self.server.remove(name);
        if let Some(hosted) = self.disks.remove(name) {
            self.reserve(hosted.physical);
        }
        Ok(())
    }

    /// A disk that is not served is not tried again; whether there was one.
    fn forget_refused(&mut self, name: &str) -> bool {
        if self.disks.contains_key(name) {
            return false;
        }
        let Some(at) = self.refused.iter().position(|refused| refused.name == name) else { return false };
        self.refused.remove(at).forget();
        true
    }

    /// Changes a disk, and tells its scheduler.
    fn apply(&mut self, name: &str, change: impl FnOnce(&mut Hosted)) -> anyhow::Result<()> {
        let Some(hosted) = self.disks.get_mut(name) else { return Ok(()) };
        change(hosted);
        let (terms, scheduler) = (&hosted.settings.terms, self.devices.devices[hosted.physical].physical.scheduler);
        self.server.set_terms(name, terms_of(terms, scheduler, hosted.share)?);
        Ok(())
    }
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string(value).context("failed to tell it")
}
