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
    /// A block device may forget what is there (`BLKDISCARD`).
    Discard { offset: u64, length: u64 },
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
    /// The file is another process's or another host's, for whose answer a job may wait while it is begun.
    pub(crate) may_hang: bool,
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

#[cfg(test)]
mod tests {
    use super::{Action, Job, Pool, Transfer, Uring};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    const LENGTH: u64 = 1 << 20;

    /// A loop device, detached again when dropped.
    struct Loop(String);

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
        }
    }

    /// What came of one discard.
    fn discard(transfer: &mut dyn Transfer, file: &File) -> i32 {
        let (offset, length) = (LENGTH / 4, LENGTH / 2);
        let action = Action::Discard { offset, length };
        let job = Job { number: 0, file: file.as_raw_fd(), may_hang: false, action };
        // SAFETY: the file stays open, and there is no memory.
        unsafe { transfer.begin(job) };
        transfer.submit().unwrap();
        poll(&mut [PollFd::new(&transfer.descriptor(), PollFlags::IN)], None).unwrap();
        let mut done = Vec::new();
        transfer.collect(&mut done);
        done[0].result
    }

    #[test]
    fn a_block_device_is_told_to_forget_by_both_ways() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: needs root for a block device of its own");
        }
        let mut transfers: Vec<Box<dyn Transfer>> = vec![Box::new(Pool::open(1).unwrap())];
        transfers.extend(Uring::open(1).ok().map(|uring| Box::new(uring) as Box<dyn Transfer>));
        for mut transfer in transfers {
            let folder = tempfile::tempdir().unwrap();
            let below = folder.path().join("below");
            std::fs::write(&below, vec![0x77; LENGTH as usize]).unwrap();
            let output = Command::new("losetup").args(["--find", "--show"]).arg(&below).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let device = Loop(String::from_utf8_lossy(&output.stdout).trim().to_owned());
            let file = File::options().read(true).write(true).open(&device.0).unwrap();
            match -discard(&mut *transfer, &file) {
                0 => {}
                // An older kernel, or a file system below that cannot.
                errno => {
                    assert!([libc::EINVAL, libc::EOPNOTSUPP].contains(&errno), "{errno}");
                    println!("skipped: no discards here, error {errno}");
                    continue;
                }
            }
            let left = below.metadata().unwrap().blocks() * 512;
            assert!(left <= LENGTH * 3 / 4, "{left} of {LENGTH} bytes are left");
        }
    }
}
