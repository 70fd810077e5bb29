//! How bytes get to an image and back: io_uring, or threads that call `preadv2` and `pwritev2` where the kernel refuses
//! io_uring; or not at all, to measure the rest.

mod null;
mod pool;
mod uring;

pub(crate) use null::Null;
pub(crate) use pool::Pool;
pub(crate) use uring::Uring;

use libc::iovec;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// By what bytes get to images and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// io_uring, and threads where the kernel refuses it.
    Uring,
    /// Threads.
    Threads,
    /// Nothing is moved and everything is done at once, so that what the rest costs can be measured (QEMU's `null-co`).
    Null,
}

/// What is to be done with a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Fill the pieces.
    Read(Pieces),
    /// Store the pieces, and make that durable at once where `durable` is set.
    Write(Pieces, bool),
    /// Make durable what was stored (`fdatasync`).
    Sync,
    /// `fallocate` with this mode.
    Allocate { mode: i32, offset: u64, length: u64 },
}

/// Pieces of memory, and where in the file they belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(crate) first: *const iovec,
    pub(crate) count: u32,
    pub(crate) offset: u64,
}

/// One action on one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Comes back with the result.
    pub(crate) number: u32,
    pub(crate) file: RawFd,
    pub(crate) action: Action,
}

/// What came of a job: a count of bytes, or an error number below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) number: u32,
    pub(crate) result: i32,
}

/// Carries out jobs, in no particular order.
pub(crate) trait Transfer {
    /// Begins a job, at the latest with the next [`Transfer::submit`].
    ///
    /// # Safety
    /// The file stays open, and the list of pieces and the memory that they name stay valid, until the job is done.
    unsafe fn begin(&mut self, job: Job);

    /// Lets the kernel see what was begun.
    fn submit(&mut self) -> io::Result<()>;

    /// Appends what is done.
    fn collect(&mut self, done: &mut Vec<Done>);

    /// Whether something is done, as far as one look at memory tells: false where only the kernel knows.
    fn has_done(&mut self) -> bool;

    /// Readable when something is done.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// What is asked for, or the best that this kernel allows, for so many jobs at once.
pub(crate) fn open(jobs: u32, kind: TransferKind) -> io::Result<Box<dyn Transfer + Send>> {
    match kind {
        TransferKind::Null => return Ok(Box::new(Null::open()?)),
        TransferKind::Uring => {
            if let Ok(uring) = Uring::open(jobs) {
                return Ok(Box::new(uring));
            }
        }
        TransferKind::Threads => {}
    }
    Ok(Box::new(Pool::open(jobs)?))
}
