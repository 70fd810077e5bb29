//! Making data and names durable, and who is told where the disk fails them.

use super::Tree;
use crate::file_system::Result;
use crate::node::Node;
use crate::requests::Operation;
use rustix::fs::{fdatasync, fsync};

impl Tree {
    pub(super) fn do_flush(&self, handle: u64) -> Result<()> {
        let handle = self.handle(handle)?;
        if !handle.is_writable {
            return Ok(());
        }
        if self.options.is_durable {
            self.sync_node(&handle.node, true, false);
        }
        handle.tell()
    }

    pub(super) fn do_sync(&self, handle: u64, data_only: bool) -> Result<()> {
        let handle = self.handle(handle)?;
        if self.options.is_durable {
            self.sync_node(&handle.node, false, data_only);
        }
        handle.tell()
    }

    /// After a change with which the kernel sends no flags: on the disk, if the file was opened so that it is to be.
    pub(super) fn sync_as_opened(&self, handle: u64) -> Result<()> {
        match self.handle(handle)?.syncs {
            Some(data_only) => self.do_sync(handle, data_only),
            None => Ok(()),
        }
    }

    /// Data, then the name: a name without its data would be worse than none. What the disk fails is for every handle.
    fn sync_node(&self, node: &Node, if_dirty: bool, data_only: bool) {
        // What another sync has taken on is not on the disk before that one ends.
        let _turn = node.sync_turn();
        let (data, parent, unwritten) = {
            let mut state = node.lock();
            if if_dirty && !state.is_dirty && state.unsynced_parent.is_none() {
                return;
            }
            state.is_dirty = false;
            let unwritten = std::mem::take(&mut state.unwritten);
            (node.data(), state.unsynced_parent.take(), unwritten)
        };
        let synced = self.counters.requests.time(Operation::Sync, || {
            if let Some(data) = &data {
                self.write_before_sync(data, unwritten)?;
            }
            match data {
                Some(data) if data_only => fdatasync(&*data)?,
                Some(data) => fsync(&*data)?,
                None => (),
            }
            parent.as_ref().map_or(Ok(()), |parent| super::directories::sync(parent))
        });
        if let Err(error) = synced {
            let mut state = node.lock();
            state.failures.note(error);
            state.is_dirty = true;
            state.unsynced_parent = state.unsynced_parent.take().or(parent);
        }
    }
}
