//! What an observer sees of a process besides its I/O, so that a model has something to tell sessions by.

use crate::error::{At, Result};
use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::net::UdpSocket;

/// What a worker has open and in memory while it works, besides what its work needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appearance {
    /// Size of an open file, in bytes; no file if it is 0. It is sparse and in memory, and not what is read.
    pub file_bytes: u64,
    /// Resident memory, in bytes.
    pub memory_bytes: u64,
    /// Open sockets.
    pub sockets: u32,
}

/// It is shown until this is dropped.
#[derive(Debug)]
pub(super) struct Shown {
    _file: Option<OwnedFd>,
    _memory: Vec<u8>,
    _sockets: Vec<UdpSocket>,
}

impl Appearance {
    pub(super) fn show(&self) -> Result<Shown> {
        let file = || -> Result<OwnedFd> {
            let file = rustix::fs::memfd_create("minerva-lab", MemfdFlags::CLOEXEC).at("create", "a file in memory")?;
            rustix::fs::ftruncate(&file, self.file_bytes).at("lengthen", "a file in memory")?;
            Ok(file)
        };
        let socket = |_| UdpSocket::bind(("127.0.0.1", 0)).at("open", "a socket");
        Ok(Shown {
            _file: (self.file_bytes > 0).then(file).transpose()?,
            // Pages of zeros would not be resident.
            _memory: vec![1; self.memory_bytes as usize],
            _sockets: (0..self.sockets).map(socket).collect::<Result<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Appearance;

    #[test]
    fn what_is_shown_can_be_seen() {
        let shown = Appearance { file_bytes: 12_345, memory_bytes: 4096, sockets: 3 }.show().unwrap();
        let file = rustix::fs::fstat(shown._file.as_ref().unwrap()).unwrap();
        assert_eq!((file.st_size, shown._memory.len(), shown._sockets.len()), (12_345, 4096, 3));
        let nothing = Appearance::default().show().unwrap();
        assert!(nothing._file.is_none() && nothing._sockets.is_empty());
    }
}
