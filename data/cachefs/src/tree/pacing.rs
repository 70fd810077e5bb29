//! What goes to the pool's disk waits its time there, beside other tenants (`crate::disk_queue`).

use super::Tree;
use crate::disk_queue::{DiskFlow, Pass};
use crate::file_system::Result;
use crate::node::{Node, NodeState};
use crate::write_back::{self, send_and_wait};
use minerva_blocksched::Kind;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::Arc;

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

    /// Sends a piece on. Beside others it is on the disk on return; who is alone waits neither for that nor, unless a few pieces are still to be
    /// sent, for the disk to take it.
    pub(super) fn write_behind(&self, node: &Node, data: &Arc<OwnedFd>, bytes: u64) {
        if bytes == 0 {
            return;
        }
        // Who waits for it is told, and no sync after that: so whoever has the file open is told by us.
        if let Err(error) = self.send_piece(data, bytes, |disk| disk.send_later(data)) {
            node.lock().failures.note(error);
        }
    }

    /// The same of a file that no program writes; whoever wrote it is told what it met.
    pub(super) fn send_behind(&self, data: &OwnedFd, bytes: u64) -> Result<()> {
        self.send_piece(data, bytes, |_| false)
    }

    fn send_piece(&self, data: &OwnedFd, bytes: u64, is_sent_later: impl FnOnce(&DiskFlow) -> bool) -> Result<()> {
        let Some(disk) = &self.options.disk else { return Ok(()) };
        match disk.enter(Kind::Write, bytes) {
            None if is_sent_later(disk) => Ok(()),
            // Whatever it meets the next sync meets, too.
            None => {
                let _ = write_back::send(data);
                Ok(())
            }
            Some(_pass) => send_and_wait(data),
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

#[cfg(test)]
mod tests {
    use crate::file_system::{Caller, FileSystem, WriteOrigin};
    use crate::{Account, Descriptors, DiskQueue, Tree, TreeOptions};
    use minerva_blocksched::Kind;
    use rustix::io::Errno;
    use rustix::process::{getgid, getuid};
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    /// A tree in which a file is open twice, and a block of it was written by the first; its node, and both handles.
    fn written(folder: &Path, options: TreeOptions) -> (Tree, u64, [u64; 2]) {
        let tree = Tree::open(folder, Arc::new(Account::new(1 << 20, 100)), options, None).unwrap();
        let caller = Caller { uid: getuid().as_raw(), gid: getgid().as_raw(), umask: 0 };
        let (shown, one) = tree.create(caller, 1, OsStr::new("file"), 0o600, libc::O_RDWR).unwrap();
        let two = tree.open(shown.node, libc::O_RDWR).unwrap();
        tree.write(one.handle, 0, &[1; 4096], WriteOrigin { ends_privileges: false, is_mapped: false }).unwrap();
        (tree, shown.node, [one.handle, two.handle])
    }

    #[test]
    fn who_closes_a_file_that_another_syncs_waits_until_it_is_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let queue = DiskQueue::new(1);
        let (own, other) = (queue.flow(100), queue.flow(100));
        let options = TreeOptions {
            is_durable: true,
            disk: Some(Arc::clone(&own)),
            descriptors: Arc::new(Descriptors::new(1000, 1)),
            ..TreeOptions::default()
        };
        let (tree, _, [one, two]) = written(folder.path(), options);
        // Another tenant has the disk, beside whom the sync waits for its turn.
        assert!(own.enter(Kind::Write, 1).is_none());
        let busy = other.enter(Kind::Write, 1).unwrap();
        thread::scope(|scope| {
            let syncing = scope.spawn(|| tree.sync(one, false));
            while queue.queued() == 0 {
                thread::yield_now();
            }
            let closing = scope.spawn(|| tree.flush(two));
            thread::sleep(Duration::from_millis(200));
            assert!(!closing.is_finished(), "what was written is not on the disk yet");
            drop(busy);
            syncing.join().unwrap().unwrap();
            closing.join().unwrap().unwrap();
        });
    }

    #[test]
    fn what_is_written_without_others_beside_is_sent_by_another_thread() {
        let folder = tempfile::tempdir().unwrap();
        let queue = DiskQueue::new(1);
        let options = TreeOptions {
            is_durable: true,
            disk: Some(queue.flow(100)),
            descriptors: Arc::new(Descriptors::new(1000, 1)),
            ..TreeOptions::default()
        };
        let (tree, _, [one, _]) = written(folder.path(), options);
        assert!(!queue.has_sending_thread(), "a block is no piece");
        let rest = vec![1; super::PIECE as usize - 4096];
        tree.write(one, 4096, &rest, WriteOrigin { ends_privileges: false, is_mapped: false }).unwrap();
        assert!(queue.has_sending_thread());
        tree.sync(one, false).unwrap();
    }

    #[test]
    fn what_failed_on_its_way_to_the_disk_is_told_also_where_another_has_synced_since() {
        let folder = tempfile::tempdir().unwrap();
        let options = TreeOptions {
            is_durable: true,
            descriptors: Arc::new(Descriptors::new(1000, 1)),
            ..TreeOptions::default()
        };
        let (tree, node, [one, two]) = written(folder.path(), options);
        tree.sync(two, false).unwrap();
        // Sent on beside that sync, which was not told.
        tree.node(node).unwrap().lock().failures.note(Errno::IO);
        assert_eq!([one, two].map(|handle| tree.flush(handle)), [Err(Errno::IO); 2]);
        assert_eq!([one, two].map(|handle| tree.flush(handle)), [Ok(()); 2]);
    }
}
