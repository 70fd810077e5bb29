//! One connection of a front end, QEMU as a rule: the vhost-user protocol for one VM disk. A message that makes no sense is
//! refused, which ends the connection and nothing else.

pub(crate) mod channel;
mod configuration;
mod protocol;
mod rings;
mod suspended;

use crate::device;
use crate::error::HangUp;
use crate::image::Image;
use crate::inflight::InflightRegion;
use crate::memory::MemoryTable;
use crate::ring::RING_SIZE_MAX;
use crate::worker::{Command, RingKey, WorkerHandle};
use rings::RingConfig;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::fs::File;
use std::sync::Arc;
pub(crate) use suspended::{ConnectionState, Restored, RestoredConnection, SuspendedConnection};
use vhost::vhost_user::message::{VhostUserInflight, VhostUserMemoryRegion, VhostUserProtocolFeatures};
use vhost::vhost_user::{Error, Result};

/// A disk, as its connections see it.
#[derive(Clone)]
pub(crate) struct Attachment {
    pub(crate) image: Arc<Image>,
    pub(crate) worker: WorkerHandle,
    /// The worker's number of the disk.
    pub(crate) disk: usize,
    pub(crate) queues: u16,
}

/// The state of one connection.
pub(crate) struct Session {
    attachment: Attachment,
    features: u64,
    protocol_features: u64,
    /// Whether the guest has a write-back cache, and flushes it. Not known of a guest that was told by an earlier connection, as long as
    /// nobody says so.
    has_writeback: Option<bool>,
    /// Length of the disk as the front end last read it.
    sectors_read: Option<u64>,
    /// It was told to read it again since its guest is served.
    is_told: bool,
    memory: Option<MemoryTable>,
    inflight: Option<InflightRegion>,
    rings: Vec<RingConfig>,
    /// Why the last message was refused, where the protocol's own error does not say it.
    refusal: Option<HangUp>,
}

impl Session {
    pub(crate) fn new(attachment: Attachment) -> Self {
        let rings = (0..attachment.queues).map(|_| RingConfig::default()).collect();
        Self {
            attachment,
            features: 0,
            protocol_features: 0,
            has_writeback: None,
            sectors_read: None,
            is_told: false,
            memory: None,
            inflight: None,
            rings,
            refusal: None,
        }
    }

    /// Asks the worker; an error when there is none any more.
    fn ask<T>(&self, command: impl FnOnce(std::sync::mpsc::Sender<T>) -> Command) -> Result<T> {
        self.attachment.worker.ask(command).ok_or(Error::BackendInternalError)
    }

    fn key(&self, index: u32) -> Result<RingKey> {
        let queue = index as usize;
        (queue < self.rings.len()).then_some(RingKey { disk: self.attachment.disk, queue }).ok_or(Error::InvalidParam)
    }

    fn offered(&self) -> u64 {
        device::features(&self.attachment.image.geometry())
    }

    fn accept_features(&mut self, features: u64) -> Result<()> {
        let unknown = features & !self.offered();
        if unknown != 0 {
            self.refusal = Some(HangUp::Features(unknown));
            return Err(Error::FeatureMismatch);
        }
        self.features = features;
        self.set_durable()
    }

    fn map_memory(&mut self, table: &[VhostUserMemoryRegion], files: Vec<File>) -> Result<()> {
        self.use_memory(MemoryTable::map(table, files))
    }

    fn use_memory(&mut self, memory: std::result::Result<MemoryTable, HangUp>) -> Result<()> {
        let memory = memory.map_err(|why| {
            self.refusal = Some(why);
            Error::InvalidParam
        })?;
        let shared = Arc::clone(&memory.memory);
        self.ask(|answer| Command::SetMemory(self.attachment.disk, shared, answer))?;
        self.memory = Some(memory);
        Ok(())
    }

    /// Why its front end is hung up on; none where it hung up itself.
    pub(crate) fn hang_up(&mut self, error: &Error) -> Option<HangUp> {
        let own = self.refusal.take();
        match error {
            Error::Disconnected | Error::PartialMessage | Error::SocketBroken(_) => {
                // Features are agreed on when a guest's driver starts the disk, and memory comes next.
                let is_starting = self.features != 0 && self.memory.is_none();
                own.or_else(|| is_starting.then_some(HangUp::NotShared))
            }
            error => Some(own.unwrap_or_else(|| HangUp::Protocol(error.to_string()))),
        }
    }

    /// Makes memory for what is under way, for the front end to keep.
    fn make_inflight(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (queues, queue_size) = self.judge_inflight(wanted)?;
        let length = InflightRegion::length_bytes(queues, queue_size) as u64;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("minerva-blk-inflight", flags).map_err(|_| Error::MemFdCreateError)?;
        ftruncate(&file, length).map_err(|_| Error::FileTruncateError)?;
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|_| Error::MemFdSealError)?;
        Ok((VhostUserInflight::new(length, 0, queues, queue_size), File::from(file)))
    }

    fn keep_inflight(&mut self, given: &VhostUserInflight, file: File) -> Result<()> {
        let (queues, queue_size) = self.judge_inflight(given)?;
        let is_long_enough = given.mmap_size >= InflightRegion::length_bytes(queues, queue_size) as u64;
        let region = InflightRegion::map(file, given.mmap_offset, queues, queue_size).filter(|_| is_long_enough);
        let region = region.ok_or(Error::InvalidParam)?;
        // What was noted there is of the guest that runs; one that has just started got a new region.
        let has_writeback = region.writeback().or(self.has_writeback);
        self.inflight = Some(region);
        has_writeback.map_or(Ok(()), |has_writeback| self.set_writeback(has_writeback))
    }

    fn judge_inflight(&self, inflight: &VhostUserInflight) -> Result<(u16, u16)> {
        let (queues, queue_size) = (inflight.num_queues, inflight.queue_size);
        let fits = queues <= self.attachment.queues && queue_size <= RING_SIZE_MAX;
        fits.then_some((queues, queue_size)).ok_or(Error::InvalidParam)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The next connection must not find requests of this one at the disk.
        self.attachment.worker.ask(|answer| Command::Detach(self.attachment.disk, answer));
    }
}

/// What of the protocol is spoken here.
fn protocol_features() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::BACKEND_REQ
}
