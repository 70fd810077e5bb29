//! Reading directories.

use super::{Handle, Tree};
use crate::failures::Told;
use crate::file_system::{DirectoryEntry, Result};
use crate::node::{Node, ROOT};
use crate::reopen::reopen;
use rustix::fs::{FileType, OFlags, RawDir, SeekFrom, fsync, seek};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

/// Bytes of names that are read at once.
const NAMES_BYTES: usize = 16 << 10;

impl Tree {
    pub(super) fn do_open_directory(&self, number: u64) -> Result<u64> {
        let node = self.node(number)?;
        let held = self.hold(1)?;
        let directory = reopen(&node.path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let (directory, _held) = (Some(directory), Some(held));
        Ok(self.add_handle(Handle { node, is_writable: false, syncs: None, told: Told::default(), directory, _held }))
    }

    pub(super) fn do_read_directory(
        &self,
        handle: u64,
        offset: u64,
        add: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        let handle = self.handle(handle)?;
        let directory = handle.directory.as_ref().ok_or(Errno::NOTDIR)?;
        // The kernel reads one directory handle from one thread at a time, each time from where it stopped.
        seek(directory, SeekFrom::Start(offset))?;
        let mut buffer = [MaybeUninit::uninit(); NAMES_BYTES];
        let mut entries = RawDir::new(directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let is_root = entry.ino() == self.root.number;
            let shown = DirectoryEntry {
                node: if is_root { ROOT } else { entry.ino() },
                next: entry.next_entry_cookie(),
                kind: kind(entry.file_type()),
                name: OsStr::from_bytes(entry.file_name().to_bytes()),
            };
            if !add(shown) {
                break;
            }
        }
        Ok(())
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync(directory: &Node) -> Result<()> {
    fsync(reopen(&directory.path, OFlags::RDONLY | OFlags::DIRECTORY)?)
}

fn kind(kind: FileType) -> u32 {
    if kind == FileType::Unknown { 0 } else { kind.as_raw_mode() }
}
