//! Reading, also of what goes to the disk meanwhile: the file in memory is empty then, and the copy is read.

use super::Tree;
use crate::file_system::Result;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Tree {
    pub(super) fn do_read(&self, handle: u64, offset: u64, into: &mut [u8]) -> Result<usize> {
        let handle = self.handle(handle)?;
        let mut data = handle.node.data().ok_or(Errno::BADF)?;
        let mut read = 0;
        while read < into.len() {
            let at = offset + read as u64;
            let done = match Self::read_from_memory(&data, &mut into[read..], at) {
                Err(Errno::AGAIN) => {
                    let _pass = self.before_read(&handle.node, (into.len() - read) as u64);
                    pread(&*data, &mut into[read..], at)
                }
                done => done,
            };
            match done {
                Ok(0) => match handle.node.data() {
                    // It has gone to the disk since, and what was read is empty.
                    Some(now) if !Arc::ptr_eq(&now, &data) => data = now,
                    _ => break,
                },
                Ok(more) => read += more,
                Err(Errno::INTR) => (),
                Err(error) => return Err(error),
            }
        }
        self.counters.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    pub(super) fn do_seek(&self, handle: u64, offset: u64, whence: i32) -> Result<u64> {
        let node = &self.handle(handle)?.node;
        let mut data = node.data().ok_or(Errno::BADF)?;
        loop {
            let done = match whence {
                libc::SEEK_DATA => seek(&*data, SeekFrom::Data(offset)),
                libc::SEEK_HOLE => seek(&*data, SeekFrom::Hole(offset)),
                _ => Err(Errno::INVAL),
            };
            match node.data() {
                // It has gone to the disk since, and what was looked at is empty: the rest would be taken for a hole.
                Some(now) if !Arc::ptr_eq(&now, &data) => data = now,
                _ => return done,
            }
        }
    }
}
