//! Files in the cache's pool.

use crate::argument::{place, text};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::cache::{Deferral, Pool, open};
use std::ffi::{c_char, c_int};
use std::fs::OpenOptions;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum MinervaPool {
    /// Memory; lost by a restart of the machine.
    Temporary = 1,
    /// A disk set aside.
    Stable = 2,
}

pub(crate) fn pool(number: u32) -> Result<Pool, Failure> {
    match number {
        number if number == MinervaPool::Temporary as u32 => Ok(Pool::Temporary),
        number if number == MinervaPool::Stable as u32 => Ok(Pool::Stable),
        other => Err(Failure::Invalid(format!("there is no pool {other}"))),
    }
}

/// Makes the file at `path`, empty, in place of what was there, and opens it for reading and writing. It is written at the pool's
/// speed, is at its place at once as a symbolic link, and is moved there once it is closed everywhere and its disk is quiet. Where there is
/// no pool, or it refuses, it is an ordinary file at its place. `pool` is a `minerva_pool`; `mode` holds its permissions, before the mask;
/// `bytes` is how long it is expected to become, 0 where that is not known.
///
/// # Safety
///
/// `path` is a text that ends with a zero. `descriptor` may be written to; it is -1 if this fails. The caller closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_create_deferred(
    path: *const c_char,
    pool_number: u32,
    mode: u32,
    bytes: u64,
    descriptor: *mut c_int,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let (path, descriptor) = unsafe { (text(path, "path")?, place(descriptor, "descriptor")?) };
        *descriptor = -1;
        let path = path.ok_or_else(|| Failure::Invalid("path is null".to_owned()))?;
        let file = Deferral::new(path).pool(pool(pool_number)?).mode(mode).bytes(bytes).create();
        *descriptor = file.map_err(|error| Failure::file(path, &error))?.into_raw_fd();
        Ok(())
    })
}

/// Opens a file of the tenant's own tree in a pool, by its path in the tree; `flags` and `mode` are those of `open`. Where there is no
/// pool it is a file in a directory of the user's own below the directory of temporary files.
///
/// # Safety
///
/// As of `minerva_create_deferred`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_open_cached(
    path: *const c_char,
    pool_number: u32,
    flags: c_int,
    mode: u32,
    descriptor: *mut c_int,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let (path, descriptor) = unsafe { (text(path, "path")?, place(descriptor, "descriptor")?) };
        *descriptor = -1;
        let path = path.ok_or_else(|| Failure::Invalid("path is null".to_owned()))?;
        // The three ways of opening are the numbers 0, 1 and 2 of Linux; the rest is passed on as it is.
        let (way, rest) = (flags & 3, flags & !3);
        let mut options = OpenOptions::new();
        options.read(way != 1).write(way != 0).mode(mode).custom_flags(rest);
        let file = open(Path::new(path), pool(pool_number)?, &options);
        *descriptor = file.map_err(|error| Failure::file(path, &error))?.into_raw_fd();
        Ok(())
    })
}
