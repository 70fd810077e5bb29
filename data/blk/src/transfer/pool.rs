//! Threads, each with one system call at a time, for hosts that refuse io_uring.

use super::{Action, Done, Job, Pieces, Transfer};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// More than this many at once do not make a disk faster.
const THREADS_MAX: u32 = 32;

/// `include/uapi/linux/fs.h`: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// The threads and what they share.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Begun and not yet shown to the threads.
    begun: Vec<Sent>,
}

struct Shared {
    state: Mutex<State>,
    has_work: Condvar,
    /// Holds a count while something is done.
    signal: OwnedFd,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Sent>,
    done: Vec<Done>,
    is_ending: bool,
}

/// A job on its way to a thread.
struct Sent(Job);

// SAFETY: `Transfer::begin` demands that what the job points to stays valid until it is done, whoever does it.
unsafe impl Send for Sent {}

impl Pool {
    /// With as many threads as jobs at once, or as are of use.
    pub(crate) fn open(jobs: u32) -> io::Result<Self> {
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let shared = Arc::new(Shared { state: Mutex::default(), has_work: Condvar::new(), signal });
        let mut pool = Self { shared, threads: Vec::new(), begun: Vec::new() };
        for _ in 0..jobs.clamp(1, THREADS_MAX) {
            let shared = Arc::clone(&pool.shared);
            pool.threads.push(std::thread::Builder::new().name("blk-pool".to_owned()).spawn(move || shared.work())?);
        }
        Ok(pool)
    }
}

impl Shared {
    /// A thread that panicked held the lock for a push or a pop, which it did or did not do.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(Sent(job)) = state.queue.pop_front() {
                drop(state);
                // SAFETY: see `Transfer::begin`.
                let result = unsafe { run(&job) };
                state = self.lock();
                state.done.push(Done { number: job.number, result });
                // It fails only with the count at its greatest, when the signal is given already.
                let _ = rustix::io::write(&self.signal, &1u64.to_ne_bytes());
            } else if state.is_ending {
                return;
            } else {
                state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// One system call, or several where signals interrupt it.
///
/// # Safety
/// As for [`Transfer::begin`].
unsafe fn run(job: &Job) -> i32 {
    loop {
        // SAFETY: the caller keeps file and memory valid, and the kernel judges the rest.
        let result = unsafe { call(job) };
        if result >= 0 {
            return i32::try_from(result).unwrap_or(i32::MAX);
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            error => return -error.unwrap_or(libc::EIO),
        }
    }
}

/// # Safety
/// As for [`Transfer::begin`].
unsafe fn call(job: &Job) -> isize {
    let Job { file, action, .. } = *job;
    let parts = |pieces: Pieces| (pieces.first, pieces.count as i32, pieces.offset as i64);
    // SAFETY: the caller keeps file and memory valid, and the kernel judges the rest.
    unsafe {
        match action {
            Action::Read(pieces) => {
                let (first, count, offset) = parts(pieces);
                libc::preadv2(file, first, count, offset, 0)
            }
            Action::Write(pieces, durable) => {
                let (first, count, offset) = parts(pieces);
                libc::pwritev2(file, first, count, offset, if durable { libc::RWF_DSYNC } else { 0 })
            }
            Action::Sync => libc::fdatasync(file) as isize,
            Action::Allocate { mode, offset, length } => {
                libc::fallocate(file, mode, offset as i64, length as i64) as isize
            }
            Action::Discard { offset, length } => libc::ioctl(file, BLKDISCARD, &[offset, length]) as isize,
        }
    }
}

impl Transfer for Pool {
    unsafe fn begin(&mut self, job: Job) {
        self.begun.push(Sent(job));
    }

    fn submit(&mut self) -> io::Result<()> {
        let count = self.begun.len();
        if count > 0 {
            self.shared.lock().queue.extend(self.begun.drain(..));
        }
        for _ in 0..count {
            self.shared.has_work.notify_one();
        }
        Ok(())
    }

    fn collect(&mut self, done: &mut Vec<Done>) {
        // First the signal, then what it was given for: what comes in between signals again.
        let _ = rustix::io::read(&self.shared.signal, &mut [0u8; 8]);
        done.append(&mut self.shared.lock().done);
    }

    fn has_done(&mut self) -> bool {
        // The threads hold the lock most of the time; the signal is looked for instead.
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.signal.as_fd()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.has_work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}
