//! The configuration space, and what a front end knows of it. QEMU reads it once, before its guest starts, and later only when it is told of
//! a change: where it connects again, it goes on with what an earlier connection told it, and sends nothing of that again.

use super::Session;
use crate::device;
use crate::worker::Command;
use vhost::vhost_user::{Error, Result};

impl Session {
    /// Tells the worker whether each write has to be durable. Where it is not known whether the guest flushes, each has to be.
    pub(super) fn set_durable(&self) -> Result<()> {
        let is_durable = device::is_durable(self.features, self.has_writeback == Some(true));
        self.ask(|answer| Command::SetDurable(self.attachment.disk, is_durable, answer))
    }

    pub(super) fn read_config(&mut self, offset: u32, size: u32) -> Result<Vec<u8>> {
        let geometry = self.attachment.image.geometry();
        let read = offset..offset.saturating_add(size);
        // A guest that runs already may have turned its cache off on an earlier connection.
        let has_writeback = self.has_writeback.unwrap_or(!self.is_served());
        if read.contains(&device::CONFIG_AT_WRITEBACK) && self.has_writeback.is_none() {
            self.set_writeback(has_writeback)?;
        }
        if read.contains(&device::CONFIG_AT_SECTORS) {
            self.sectors_read = Some(geometry.sectors);
        }
        let config = device::config(&geometry, self.attachment.queues, has_writeback);
        // A front end may know of fields that come later; they are zero, as in a device without them.
        let config = config.into_iter().chain(std::iter::repeat(0));
        Ok(config.skip(offset as usize).take(size as usize).collect())
    }

    pub(super) fn write_config(&mut self, offset: u32, bytes: &[u8]) -> Result<()> {
        match bytes {
            [value] if offset == device::CONFIG_AT_WRITEBACK => self.set_writeback(*value != 0),
            _ => Err(Error::InvalidParam),
        }
    }

    /// Whether the guest has a write-back cache, as the front end knows it from now on. It is noted for the next connection first: no write may
    /// be answered by what only this process knows.
    pub(super) fn set_writeback(&mut self, has_writeback: bool) -> Result<()> {
        self.has_writeback = Some(has_writeback);
        self.note_writeback();
        self.set_durable()
    }

    /// Notes it where the front end keeps it, if it does.
    pub(super) fn note_writeback(&self) {
        if let (Some(region), Some(has_writeback)) = (&self.inflight, self.has_writeback) {
            region.note_writeback(has_writeback);
        }
    }

    /// Whether its front end has to be told to read the configuration space: its guest is served, and it may know the disk with another
    /// length. Once for as long as the guest is served; QEMU passes over what it is told before.
    pub(crate) fn has_to_be_told(&mut self) -> bool {
        if !self.is_served() {
            self.is_told = false;
            return false;
        }
        let sectors = self.attachment.image.geometry().sectors;
        self.sectors_read != Some(sectors) && !std::mem::replace(&mut self.is_told, true)
    }
}
