//! Operations that fit in with what others do.

use crate::argument::{given, place, text};
use crate::cache::pool;
use crate::client::{self, MinervaClient};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::cache::Pool;
use minerva_client::{Access, Begun, Operation, blocking};
use std::ffi::{c_char, c_int};
use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::time::Duration;

/// What an operation mostly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum MinervaAccess {
    /// Reads of neighbouring blocks. 0 means the same.
    SequentialRead = 1,
    /// Writes of neighbouring blocks.
    SequentialWrite = 2,
    /// Small reads all over.
    RandomRead = 3,
    /// Small writes all over.
    RandomWrite = 4,
}

/// An operation to be asked about. Begin with all zeros, as in `minerva_request request = {0};`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MinervaRequest {
    /// How much it will move.
    pub bytes: u64,
    /// It should be done within so long; 0: it is not bound so.
    pub done_within_ns: u64,
    /// It must have begun within so long; 0: it is not bound so. One of the two at most. Without both it waits as long as the
    /// operator lets an operation wait.
    pub begin_within_ns: u64,
    /// On which disk, as `MAJ:MIN` of the host; null: the one below `path`, or where that has none the disk that the tenant uses most.
    pub device: *const c_char,
    /// A `minerva_access`.
    pub access: u32,
    /// What it reads or writes, or something beside it; null: the working directory.
    pub path: *const c_char,
}

/// Why an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum MinervaBegun {
    /// The server said so.
    Told = 0,
    /// Its deadline has come, or as many slices have passed as it was told to wait.
    InTime = 1,
    /// There is no server to say so.
    Unserved = 2,
    /// The server said: in the pool, in place of the disk. Only after `minerva_coordinate_or_pool`; `minerva_create_coordinated` makes
    /// the file there.
    InPool = 3,
}

/// An operation that may begin.
pub struct MinervaOperation {
    inner: blocking::Coordinated,
    begun: MinervaBegun,
}

/// Waits until the operation fits in with what others do. Whatever becomes of the server, it returns when the deadline has come.
/// Then do it, and call `minerva_finish`.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `request` can be read, and its `device` and `path` are null or texts that end with a zero.
/// `operation` may be written to; it is null if this fails. The caller ends what it gets with `minerva_finish` or
/// `minerva_cancel`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_coordinate(
    client: *const MinervaClient,
    request: *const MinervaRequest,
    operation: *mut *mut MinervaOperation,
) -> MinervaStatus {
    // SAFETY: as the caller promises.
    guard(|| unsafe { coordinate(client, request, None, operation) })
}

/// The same for an operation that writes a file, and that may go to a pool of the cache in place of its disk where others use that;
/// `pool` is a `minerva_pool`. Then `minerva_create_coordinated` makes the file, wherever it belongs.
///
/// # Safety
///
/// As of `minerva_coordinate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_coordinate_or_pool(
    client: *const MinervaClient,
    request: *const MinervaRequest,
    pool_number: u32,
    operation: *mut *mut MinervaOperation,
) -> MinervaStatus {
    // SAFETY: as the caller promises.
    guard(|| unsafe { coordinate(client, request, Some(pool(pool_number)?), operation) })
}

/// # Safety
///
/// As of `minerva_coordinate`.
unsafe fn coordinate(
    client: *const MinervaClient,
    request: *const MinervaRequest,
    pool: Option<Pool>,
    operation: *mut *mut MinervaOperation,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let operation = unsafe { place(operation, "operation")? };
    *operation = std::ptr::null_mut();
    // SAFETY: as the caller promises.
    let (client, request) = unsafe { (client::of(client)?, given(request, "request")?) };
    // SAFETY: as the caller promises.
    let (device, path) = unsafe { (text(request.device, "device")?, text(request.path, "path")?) };
    let path = path.map(PathBuf::from);
    let mut inner = client.coordinate(Operation { pool, path, ..operation_of(request, device)? })?;
    let begun = match inner.wait() {
        Begun::Told => MinervaBegun::Told,
        Begun::InTime => MinervaBegun::InTime,
        Begun::Unserved => MinervaBegun::Unserved,
        Begun::InPool => MinervaBegun::InPool,
    };
    *operation = Box::into_raw(Box::new(MinervaOperation { inner, begun }));
    Ok(())
}

/// Makes the file that an operation writes, empty, in place of what was there, and opens it for reading and writing: in the pool, with
/// a link at `path`, if the operation begins there (`MINERVA_BEGUN_BY_IN_POOL`), and else at `path` itself. To be closed before
/// `minerva_finish`.
///
/// # Safety
///
/// `operation` came from `minerva_coordinate_or_pool` or `minerva_coordinate`. `path` is a text that ends with a zero. `descriptor` may
/// be written to; it is -1 if this fails. The caller closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_create_coordinated(
    operation: *const MinervaOperation,
    path: *const c_char,
    descriptor: *mut c_int,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let (path, descriptor) = unsafe { (text(path, "path")?, place(descriptor, "descriptor")?) };
        *descriptor = -1;
        let path = path.ok_or_else(|| Failure::Invalid("path is null".to_owned()))?;
        // SAFETY: as the caller promises.
        let operation = unsafe { given(operation, "operation")? };
        *descriptor = operation.inner.create(path).map_err(|error| Failure::file(path, &error))?.into_raw_fd();
        Ok(())
    })
}

fn operation_of(request: &MinervaRequest, device: Option<&str>) -> Result<Operation, Failure> {
    let access = match request.access {
        0 => Access::default(),
        number => *Access::ALL
            .iter()
            .find(|access| access.to_wire().cast_unsigned() == number)
            .ok_or_else(|| Failure::Invalid(format!("there is no access {number}")))?,
    };
    let operation = Operation::of_bytes(request.bytes).access(access);
    let operation = match (request.begin_within_ns, request.done_within_ns) {
        (0, 0) => operation,
        (0, done) => operation.done_within(Duration::from_nanos(done)),
        (begin, 0) => operation.begin_within(Duration::from_nanos(begin)),
        _ => {
            let both = "an operation is bound by when it is done or by when it begins; leave one of the two 0";
            return Err(Failure::Invalid(both.to_owned()));
        }
    };
    Ok(match device {
        Some(device) => operation.device(device),
        None => operation,
    })
}

/// Why it begins.
///
/// # Safety
///
/// `operation` is null or came from `minerva_coordinate`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_begun(operation: *const MinervaOperation) -> MinervaBegun {
    // SAFETY: as the caller promises.
    unsafe { operation.as_ref() }.map_or(MinervaBegun::Unserved, |operation| operation.begun)
}

/// It is done; the measured time makes the next estimate better. `operation` is freed, also when this fails, which says only
/// that the server could not be told. A null pointer is nothing to do.
///
/// # Safety
///
/// `operation` is null or came from `minerva_coordinate`, and nobody uses it any more. Any thread may finish it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_finish(operation: *mut MinervaOperation) -> MinervaStatus {
    guard(|| {
        if operation.is_null() {
            return Ok(());
        }
        // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
        let operation = unsafe { Box::from_raw(operation) };
        Ok(operation.inner.finish()?)
    })
}

/// It will not be done, or not to its end. `operation` is freed. A null pointer is nothing to do.
///
/// # Safety
///
/// As for `minerva_finish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_cancel(operation: *mut MinervaOperation) {
    guard(|| {
        if !operation.is_null() {
            // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(operation) });
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::{MinervaAccess, MinervaRequest, operation_of};
    use minerva_client::{Access, Deadline};
    use std::time::Duration;

    const NOTHING: MinervaRequest = MinervaRequest {
        bytes: 0,
        done_within_ns: 0,
        begin_within_ns: 0,
        device: std::ptr::null(),
        access: 0,
        path: std::ptr::null(),
    };

    #[test]
    fn a_request_is_what_its_numbers_say() {
        let request = MinervaRequest {
            bytes: 5,
            done_within_ns: 2_000_000_000,
            access: MinervaAccess::RandomWrite as u32,
            ..NOTHING
        };
        let operation = operation_of(&request, Some("8:0")).expect("a request");
        assert_eq!((operation.bytes, operation.access), (5, Access::RandomWrite));
        assert_eq!(operation.deadline, Some(Deadline::Done(Duration::from_secs(2))));
        assert_eq!(operation.device.as_deref(), Some("8:0"));
        assert_eq!(operation_of(&NOTHING, None).expect("zeros").deadline, None);
    }

    #[test]
    fn numbers_that_cannot_be_meant_are_refused() {
        assert!(operation_of(&MinervaRequest { access: 9, ..NOTHING }, None).is_err());
        assert!(operation_of(&MinervaRequest { begin_within_ns: 1, done_within_ns: 1, ..NOTHING }, None).is_err());
    }
}
