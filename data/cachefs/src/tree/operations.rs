//! The tree as a file system: each operation is where its neighbours are.

use super::{Tree, directories};
use crate::file_system::{Attributes, Caller, Changes, DirectoryEntry, FileSystem, Opened, Result, Space, WriteOrigin};
use crate::node::ROOT;
use crate::requests::Operation;
use rustix::fs::readlinkat;
use rustix::io::Errno;
use std::ffi::OsStr;

impl Tree {
    fn metadata<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.counters.requests.time(Operation::Metadata, work)
    }
}

impl FileSystem for Tree {
    fn has_xattrs(&self) -> bool {
        self.options.has_xattrs
    }

    fn passthrough_refused(&self) {
        self.stop_passthrough();
    }

    fn lookup(&self, parent: u64, name: &OsStr) -> Result<Attributes> {
        self.metadata(|| {
            let parent = self.node(parent)?;
            let node = self.look_up(&parent, name).map_err(|error| self.name_is_missing(&parent, name, error))?;
            let shown = self.show(&node);
            if shown.is_err() {
                self.nodes.forget(node.number, 1);
            }
            shown
        })
    }

    fn forget(&self, node: u64, lookups: u64) {
        if node != ROOT {
            self.nodes.forget(node, lookups);
        }
    }

    fn attributes(&self, node: u64) -> Result<Attributes> {
        self.metadata(|| self.show(&*self.node(node)?))
    }

    fn set_attributes(&self, caller: Caller, node: u64, changes: &Changes) -> Result<Attributes> {
        self.metadata(|| self.do_set_attributes(caller, node, changes))
    }

    fn read_link(&self, node: u64) -> Result<Vec<u8>> {
        Ok(readlinkat(&self.node(node)?.path, "", Vec::new())?.into_bytes())
    }

    fn make_node(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32, device: u32) -> Result<Attributes> {
        self.metadata(|| self.do_make_node(caller, parent, name, mode, device))
    }

    fn make_directory(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32) -> Result<Attributes> {
        self.metadata(|| self.do_make_directory(caller, parent, name, mode))
    }

    fn make_symlink(&self, caller: Caller, parent: u64, name: &OsStr, target: &OsStr) -> Result<Attributes> {
        self.metadata(|| self.do_make_symlink(caller, parent, name, target))
    }

    fn link(&self, node: u64, parent: u64, name: &OsStr) -> Result<Attributes> {
        self.metadata(|| self.do_link(node, parent, name))
    }

    fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> Result<()> {
        self.metadata(|| self.do_remove(parent, name, is_directory))
    }

    fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> Result<()> {
        self.metadata(|| self.do_rename(from, to, flags))
    }

    fn open(&self, node: u64, flags: i32) -> Result<Opened> {
        self.metadata(|| self.do_open(node, flags))
    }

    fn create(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32, flags: i32) -> Result<(Attributes, Opened)> {
        if self.is_disk_full() {
            return Err(Errno::NOSPC);
        }
        self.metadata(|| self.do_create(caller, parent, name, mode, flags))
    }

    fn read(&self, handle: u64, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.counters.requests.time(Operation::Read, || self.do_read(handle, offset, into))
    }

    fn write(&self, handle: u64, offset: u64, data: &[u8], origin: WriteOrigin) -> Result<usize> {
        self.counters.requests.time(Operation::Write, || self.do_write(handle, offset, data, origin))
    }

    fn flush(&self, handle: u64) -> Result<()> {
        self.do_flush(handle)
    }

    fn release(&self, handle: u64) -> Result<()> {
        self.do_release(handle)
    }

    fn sync(&self, handle: u64, data_only: bool) -> Result<()> {
        self.do_sync(handle, data_only)
    }

    fn sync_directory(&self, node: u64) -> Result<()> {
        if !self.options.is_durable {
            return Ok(());
        }
        self.counters.requests.time(Operation::Sync, || directories::sync(&*self.node(node)?))
    }

    fn allocate(&self, caller: Caller, handle: u64, offset: u64, length: u64, mode: i32) -> Result<()> {
        self.do_allocate(caller, handle, offset, length, mode)?;
        self.sync_as_opened(handle)
    }

    fn seek(&self, handle: u64, offset: u64, whence: i32) -> Result<u64> {
        self.do_seek(handle, offset, whence)
    }

    fn copy(&self, from: (u64, u64), to: (u64, u64), length: u64) -> Result<usize> {
        let copied = self.do_copy(from, to, length)?;
        self.sync_as_opened(to.0)?;
        Ok(copied)
    }

    fn open_directory(&self, node: u64) -> Result<u64> {
        self.metadata(|| self.do_open_directory(node))
    }

    fn read_directory(&self, handle: u64, offset: u64, add: &mut dyn FnMut(DirectoryEntry<'_>) -> bool) -> Result<()> {
        self.metadata(|| self.do_read_directory(handle, offset, add))
    }

    fn release_directory(&self, handle: u64) {
        // The kernel releases what it opened, once.
        let _ = self.take_handle(handle);
    }

    fn space(&self) -> Result<Space> {
        self.do_space()
    }

    fn xattr(&self, node: u64, name: &OsStr) -> Result<Vec<u8>> {
        self.do_xattr(node, name)
    }

    fn xattrs(&self, node: u64) -> Result<Vec<u8>> {
        self.do_xattrs(node)
    }

    fn set_xattr(&self, node: u64, name: &OsStr, value: &[u8], flags: i32) -> Result<()> {
        self.do_set_xattr(node, name, value, flags)
    }

    fn remove_xattr(&self, node: u64, name: &OsStr) -> Result<()> {
        self.do_remove_xattr(node, name)
    }
}
