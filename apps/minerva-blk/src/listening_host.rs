//! A host before its first front end connects.

use crate::devices::Devices;
use crate::disk::NEUTRAL;
use crate::host::{About, Host, Hosted, Parts};
use crate::plan::{Plan, Planned};
use crate::refused::Refused;
use anyhow::Context;
use minerva_blk::Listening;
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;

/// A host that listens at every socket and serves nobody yet.
pub(crate) struct ListeningHost {
    about: About,
    devices: Devices,
    disks: BTreeMap<String, Hosted>,
    refused: Vec<Refused>,
    server: Listening,
}

impl ListeningHost {
    /// Of a plan, and for each of its disks the socket at which its front end is listened for.
    pub(crate) fn new(plan: Plan, listeners: Vec<UnixListener>, about: About) -> anyhow::Result<Self> {
        let Plan { devices, disks, refused } = plan;
        let (planned, disks): (BTreeMap<_, _>, Vec<_>) = disks
            .into_iter()
            .map(|Planned { settings, disk, .. }| {
                let hosted = Hosted { settings, physical: disk.physical, share: NEUTRAL };
                ((disk.name.clone(), hosted), disk)
            })
            .unzip();
        let physical: Vec<_> = devices.devices.iter().map(|device| device.physical.clone()).collect();
        let waiting = disks.into_iter().zip(listeners).collect();
        let server = Listening::with(&physical, waiting).context("failed to start")?;
        Ok(Self { about, devices, disks: planned, refused, server })
    }

    pub(crate) fn serve(self) -> anyhow::Result<Host> {
        let Self { about, devices, disks, refused, server } = self;
        let server = server.serve().context("failed to start")?;
        Ok(Host::new(Parts { about, devices, disks, refused, server }))
    }
}
