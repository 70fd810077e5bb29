//! Signals to guests, for which the worker never waits.
//!
//! A write to an event counter that is full sleeps, unless the counter was opened not to wait: and that is told of the open file, which
//! the front end shares and can change at any moment, as it can fill the counter. The kernel itself adds to a counter without waiting, and
//! so it does when a job of its asynchronous I/O is done that names the counter. The job here is one that is done at once: to wait for a counter
//! that is always ready. It costs some 300 ns more than a write. Writes that are told not to wait (`RWF_NOWAIT`) are refused for
//! counters, and those of io_uring look at the flag first and write then, so that it can change in between (docs/adr/0078).

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel notes of so many signals that they were given before it is asked for the notes.
const NOTES: usize = 64;
/// A note: four words, none of which is looked at.
type Note = MaybeUninit<[u64; 4]>;
/// `IOCB_CMD_POLL` and `IOCB_FLAG_RESFD` (`include/uapi/linux/aio_abi.h`).
const POLL: u16 = 5;
const SIGNALS: u32 = 1;

/// What a worker signals with.
#[derive(Debug)]
pub(crate) struct Signaller {
    /// The kernel's name for what it has of this.
    context: libc::c_ulong,
    ready: OwnedFd,
    given: Cell<usize>,
}

impl Signaller {
    /// Fails where the kernel has no asynchronous I/O, or others use as much of it as `fs.aio-max-nr` allows.
    pub(crate) fn open() -> io::Result<Self> {
        let ready = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the name of the context, for which there is room.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, NOTES, &raw mut context) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { context, ready, given: Cell::new(0) })
    }

    /// Adds one to a counter, or nothing where it is full, which says as much.
    pub(crate) fn signal(&self, call: BorrowedFd<'_>) {
        if self.given.get() >= NOTES || !self.submit(call) {
            self.forget_notes();
            self.submit(call);
        }
    }

    /// Whether the kernel took it.
    fn submit(&self, call: BorrowedFd<'_>) -> bool {
        // SAFETY: it consists of numbers only.
        let mut job: libc::iocb = unsafe { MaybeUninit::zeroed().assume_init() };
        job.aio_lio_opcode = POLL;
        job.aio_fildes = self.ready.as_raw_fd().unsigned_abs();
        job.aio_buf = libc::POLLIN as u64;
        job.aio_flags = SIGNALS;
        job.aio_resfd = call.as_raw_fd().unsigned_abs();
        let mut jobs = [&raw mut job];
        // SAFETY: list and job are there during the call, and the kernel uses them no longer.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, jobs.len(), jobs.as_mut_ptr()) };
        self.given.set(self.given.get() + 1);
        taken == 1
    }

    /// Makes room for more notes.
    fn forget_notes(&self) {
        let mut notes: [Note; NOTES] = [Note::uninit(); NOTES];
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes no more notes than there is room for.
        unsafe {
            libc::syscall(libc::SYS_io_getevents, self.context, 0, NOTES, notes.as_mut_ptr(), &raw const at_once)
        };
        self.given.set(0);
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        // SAFETY: nobody uses the context any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::{NOTES, Signaller};
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::OwnedFd;
    use std::os::fd::AsFd;

    fn count(counter: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(counter, &mut count).unwrap();
        u64::from_ne_bytes(count)
    }

    #[test]
    fn each_signal_counts_and_a_counter_that_is_full_and_waits_is_not_waited_for() {
        let signaller = Signaller::open().unwrap();
        let waiting = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let signals = 10 * NOTES as u64 + 3;
        (0..signals).for_each(|_| signaller.signal(waiting.as_fd()));
        assert_eq!(count(&waiting), signals);
        rustix::io::write(&waiting, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        (0..signals).for_each(|_| signaller.signal(waiting.as_fd()));
        assert!(count(&waiting) >= u64::MAX - 1);
        signaller.signal(waiting.as_fd());
        assert_eq!(count(&waiting), 1);
    }
}
