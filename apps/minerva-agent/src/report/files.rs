//! The files that a process has open, and how far it is in them.

use minerva_api::v1;
use procfs::process::{FDPermissions, FDTarget, Process};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use std::io::Read;

/// Descriptors of one process that are looked at.
const DESCRIPTORS_MAX: usize = 1024;
/// What the kernel itself makes up is no load for a disk.
const NOT_ON_DISK: [&str; 4] = ["/proc/", "/sys/", "/dev/", "/memfd:"];

/// What a process has open.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) files: Vec<v1::OpenFile>,
    /// Inodes of its sockets.
    pub(super) sockets: Vec<u64>,
}

/// Looks; finds nothing in other users' processes.
pub(super) fn opened(process: &Process) -> Opened {
    let mut opened = Opened::default();
    let Ok(descriptors) = process.fd() else { return opened };
    for descriptor in descriptors.take(DESCRIPTORS_MAX).filter_map(Result::ok) {
        match &descriptor.target {
            FDTarget::Socket(inode) => opened.sockets.push(*inode),
            FDTarget::Path(path) => {
                let path = path.to_string_lossy();
                if NOT_ON_DISK.iter().any(|start| path.starts_with(start)) {
                    continue;
                }
                let Some(size_bytes) = size_of(process.pid(), descriptor.fd) else { continue };
                opened.files.push(v1::OpenFile {
                    path: path.into_owned(),
                    size_bytes,
                    position_bytes: position_of(process, descriptor.fd).unwrap_or(0),
                    writable: descriptor.mode().contains(FDPermissions::WRITE),
                });
            }
            _ => {}
        }
    }
    opened
}

/// The size, if it is a plain file. What a network's server last said will do: a server that is away must not be waited for.
fn size_of(pid: i32, descriptor: i32) -> Option<u64> {
    let path = format!("/proc/{pid}/fd/{descriptor}");
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::SIZE).ok()?;
    (FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile).then_some(found.stx_size)
}

fn position_of(process: &Process, descriptor: i32) -> Option<u64> {
    let mut text = String::new();
    process.open_relative(format!("fdinfo/{descriptor}")).ok()?.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok())
}
