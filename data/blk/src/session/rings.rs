//! The rings of a connection: collected piece by piece, in service once all is there.

use super::Session;
use crate::device;
use crate::error::HangUp;
use crate::ring::{RING_SIZE_MAX, RingSetup};
use crate::split::RingLayout;
use crate::worker::Command;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsRawFd;
use vhost::vhost_user::message::VhostUserVringState;
use vhost::vhost_user::{Error, Result};

/// What the front end said of one ring.
#[derive(Debug, Default)]
pub(super) struct RingConfig {
    size: u16,
    /// Of the front end's own: descriptors, available, used.
    addresses: Option<[u64; 3]>,
    next_available: u16,
    kick: Option<File>,
    call: Option<File>,
    is_enabled: bool,
    is_running: bool,
    /// The server before served it.
    was_running: bool,
    /// What the server before had begun and not answered.
    begun: Vec<u16>,
}

/// What of a ring is no descriptor, as the next server is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RingState {
    pub(super) size: u16,
    pub(super) addresses: Option<[u64; 3]>,
    pub(super) next_available: u16,
    pub(super) is_enabled: bool,
    pub(super) was_running: bool,
    pub(super) begun: Vec<u16>,
    pub(super) has_kick: bool,
    pub(super) has_call: bool,
}

impl RingConfig {
    /// How to go on with it, and its kick and call.
    pub(super) fn suspend(&self, was_running: bool) -> (RingState, impl Iterator<Item = &File>) {
        let state = RingState {
            size: self.size,
            addresses: self.addresses,
            next_available: self.next_available,
            is_enabled: self.is_enabled,
            was_running,
            begun: self.begun.clone(),
            has_kick: self.kick.is_some(),
            has_call: self.call.is_some(),
        };
        (state, self.kick.iter().chain(&self.call))
    }

    /// It is not in service any more.
    pub(super) fn leave(&mut self, next_available: u16, begun: Vec<u16>) {
        (self.next_available, self.begun, self.is_running) = (next_available, begun, false);
    }

    /// One that another server served, not in service yet.
    pub(super) fn restore(state: &RingState, kick: Option<File>, call: Option<File>) -> Self {
        let RingState { size, addresses, next_available, is_enabled, was_running, ref begun, .. } = *state;
        let begun = begun.clone();
        Self { size, addresses, next_available, kick, call, is_enabled, is_running: false, was_running, begun }
    }
}

impl Session {
    /// Whether a ring of it is in service.
    pub(crate) fn is_served(&self) -> bool {
        self.rings.iter().any(|ring| ring.is_running)
    }

    /// Serves a ring again that was in service before.
    pub(super) fn restart_ring(&mut self, index: u32) -> Result<()> {
        if std::mem::take(&mut self.ring(index)?.was_running) { self.start_ring(index) } else { Ok(()) }
    }

    fn ring(&mut self, index: u32) -> Result<&mut RingConfig> {
        self.rings.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// Of a ring that is not in service; how it is served cannot be changed under it.
    fn idle_ring(&mut self, index: u32) -> Result<&mut RingConfig> {
        self.ring(index).and_then(|ring| if ring.is_running { Err(Error::InvalidParam) } else { Ok(ring) })
    }

    pub(super) fn size_ring(&mut self, index: u32, size: u32) -> Result<()> {
        let judged = u16::try_from(size).ok().filter(|size| size.is_power_of_two() && *size <= RING_SIZE_MAX);
        let Some(judged) = judged else {
            self.refusal = Some(HangUp::QueueSize(size));
            return Err(Error::InvalidParam);
        };
        self.idle_ring(index)?.size = judged;
        Ok(())
    }

    pub(super) fn place_ring(&mut self, index: u32, addresses: [u64; 3]) -> Result<()> {
        let ring = self.ring(index)?;
        if ring.is_running && ring.addresses != Some(addresses) {
            return Err(Error::InvalidParam);
        }
        ring.addresses = Some(addresses);
        Ok(())
    }

    pub(super) fn set_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        self.idle_ring(index)?.next_available = base;
        Ok(())
    }

    /// Stops a ring: everything of it is answered, and the kick is forgotten.
    pub(super) fn stop_for_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        self.stop_ring(index)?;
        let ring = self.ring(index)?;
        ring.kick = None;
        Ok(VhostUserVringState::new(index, u32::from(ring.next_available)))
    }

    pub(super) fn set_kick(&mut self, index: u32, kick: Option<File>) -> Result<()> {
        // Without a descriptor the ring would have to be polled.
        let kick = kick.ok_or(Error::InvalidParam)?;
        self.judge_counter(&kick)?;
        self.stop_ring(index)?;
        self.ring(index)?.kick = Some(kick);
        self.start_ring(index)
    }

    pub(super) fn set_call(&mut self, index: u32, call: Option<File>) -> Result<()> {
        if let Some(call) = &call {
            self.judge_counter(call)?;
        }
        let given = call.as_ref().map(File::try_clone).transpose().map_err(Error::ReqHandlerError)?;
        let key = self.key(index)?;
        let ring = self.ring(index)?;
        ring.call = call;
        if ring.is_running {
            self.ask(|answer| Command::SetCall(key, given, answer))?;
        }
        Ok(())
    }

    /// Whether it is an event counter: a look whether a file of another process's file system has something to read
    /// would wait for that process, and with it the worker and all disks on the disk of this host. Where it lies is told without asking it.
    fn judge_counter(&mut self, file: &File) -> Result<()> {
        let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if place.is_ok_and(|place| place.as_os_str() == "anon_inode:[eventfd]") {
            return Ok(());
        }
        self.refusal = Some(HangUp::NoEventCounter);
        Err(Error::InvalidParam)
    }

    pub(super) fn enable_ring(&mut self, index: u32, is_enabled: bool) -> Result<()> {
        self.ring(index)?.is_enabled = is_enabled;
        if is_enabled { self.start_ring(index) } else { self.stop_ring(index) }
    }

    /// Serves a ring, if it may be and is not.
    fn start_ring(&mut self, index: u32) -> Result<()> {
        let key = self.key(index)?;
        // Without protocol features a ring is enabled from its first kick on.
        let is_always_enabled = self.features & device::PROTOCOL_FEATURES == 0;
        let ring = &self.rings[key.queue];
        let may_run = (ring.is_enabled || is_always_enabled) && !ring.is_running;
        let (Some(kick), Some(addresses), Some(memory), true) = (&ring.kick, ring.addresses, &self.memory, may_run)
        else {
            return Ok(());
        };
        let address = |user: u64| memory.guest_address(user).ok_or(Error::InvalidParam);
        let clone = |file: &File| file.try_clone().map_err(Error::ReqHandlerError);
        let place = RingLayout {
            size: ring.size,
            descriptors: address(addresses[0])?,
            available: address(addresses[1])?,
            used: address(addresses[2])?,
        };
        let setup = RingSetup {
            place,
            next_available: ring.next_available,
            has_event_index: device::has_event_index(self.features),
            memory: memory.memory.clone(),
            kick: clone(kick)?,
            call: ring.call.as_ref().map(clone).transpose()?,
            inflight: self.inflight.as_ref().and_then(|region| region.queue(key.queue as u16)),
            begun: ring.begun.clone(),
        };
        match self.ask(|answer| Command::Start(key, Box::new(setup), answer))? {
            true => {
                let ring = &mut self.rings[key.queue];
                (ring.is_running, ring.begun) = (true, Vec::new());
            }
            false => return Err(Error::InvalidParam),
        }
        Ok(())
    }

    fn stop_ring(&mut self, index: u32) -> Result<()> {
        let key = self.key(index)?;
        if self.rings[key.queue].is_running {
            let next_available = self.ask(|answer| Command::Stop(key, answer))?;
            let ring = &mut self.rings[key.queue];
            (ring.next_available, ring.is_running) = (next_available, false);
        }
        Ok(())
    }
}
