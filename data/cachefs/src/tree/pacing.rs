//! What goes to the pool's disk waits its time there, beside other tenants (`crate::disk_queue`).

use super::Tree;
use crate::disk_queue::{DiskFlow, Pass};
use crate::file_system::Result;
use crate::node::{Node, NodeState};
use minerva_blocksched::Kind;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

/// Once so many bytes of a file were written they are sent on to the disk.
const PIECE: u64 = 1 << 20;

impl Tree {
    /// The tenant before the disk, where the file lies there.
    fn disk(&self, state: &NodeState) -> Option<&DiskFlow> {
        let lies_there = self.options.is_durable || state.spilled.is_some();
        self.options.disk.as_deref().filter(|_| lies_there)
    }

    /// So many bytes more were written; how many are to be sent on to the disk now.
    pub(super) fn note_written(&self, state: &mut NodeState, bytes: u64) -> u64 {
        if self.disk(state).is_none() {
            return 0;
        }
        state.unwritten += bytes;
        if state.unwritten < PIECE { 0 } else { std::mem::take(&mut state.unwritten) }
    }

    /// Sends a piece on. Beside others it is on the disk on return; who is alone need not wait for that.
    pub(super) fn write_behind(&self, node: &Node, data: &OwnedFd, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let Some(disk) = &self.options.disk else { return };
        match disk.enter(Kind::Write, bytes) {
            // Whatever it meets the next sync meets, too.
            None => drop(send(data, libc::SYNC_FILE_RANGE_WRITE)),
            Some(_pass) => {
                // Who waits for it is told, and no sync after that: so the next sync is told by us.
                if let Err(error) = send_and_wait(data) {
                    node.lock().failed = Some(error);
                }
            }
        }
    }

    /// Before a sync, what is not on the disk goes there, beside others when it is its time. What the sync itself adds, names and
    /// attributes, the file system below writes for all at once, so that does not wait here.
    pub(super) fn write_before_sync(&self, data: &OwnedFd, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        match self.options.disk.as_ref().and_then(|disk| disk.enter(Kind::Write, bytes)) {
            None => Ok(()),
            Some(_pass) => send_and_wait(data),
        }
    }

    /// Reads what is in memory; `AGAIN` where the disk has to be asked.
    pub(super) fn read_from_memory(data: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize> {
        match preadv2(data, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT) {
            // Not every file system below can say it.
            Err(Errno::OPNOTSUPP) => Err(Errno::AGAIN),
            read => read,
        }
    }

    /// Leave to read from the disk; none where nobody need be asked.
    pub(super) fn before_read(&self, node: &Node, bytes: u64) -> Option<Pass<'_>> {
        let is_there = self.disk(&node.lock()).is_some();
        self.options.disk.as_ref().filter(|_| is_there)?.enter(Kind::Read, bytes)
    }
}

fn send_and_wait(data: &OwnedFd) -> Result<()> {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    send(data, all)
}

/// The whole file: the kernel passes over what is not dirty.
fn send(data: &OwnedFd, how: libc::c_uint) -> Result<()> {
    // SAFETY: the call takes four numbers and touches no memory of ours; the descriptor is open.
    let done = unsafe { libc::sync_file_range(data.as_raw_fd(), 0, 0, how) };
    if done == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}
