//! Between a disk's thread and who hands over: the thread stands still between two messages of its front end, or waits for the next one,
//! and its rings are served meanwhile. So nobody's rings are left before all threads can leave theirs: one that is in the middle of a message
//! may have to wait for what its guest has at the disk.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a disk's thread is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Serve front ends.
    #[default]
    Serve,
    /// Stand still.
    Park,
    /// Leave its front end as it is, and end.
    Leave,
}

/// Where it is told.
#[derive(Debug)]
pub(super) struct Parking {
    state: Mutex<State>,
    changed: Condvar,
    /// Readable while the thread is to do anything but serve.
    called: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    wanted: Wanted,
    is_parked: bool,
}

impl Parking {
    pub(super) fn new() -> io::Result<Self> {
        let called = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { state: Mutex::default(), changed: Condvar::new(), called })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in between can be half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread.
    pub(super) fn want(&self, wanted: Wanted) {
        let mut state = self.lock();
        state.wanted = wanted;
        // Either fails only where it is so already.
        let _ = match wanted {
            Wanted::Serve => rustix::io::read(&self.called, &mut [0u8; 8]),
            Wanted::Park | Wanted::Leave => rustix::io::write(&self.called, &1u64.to_ne_bytes()),
        };
        self.changed.notify_all();
    }

    /// For the thread: stands still for as long as that is wanted; whether it is to leave then.
    pub(super) fn stand_still(&self) -> bool {
        let mut state = self.lock();
        state.is_parked = true;
        self.changed.notify_all();
        while state.wanted == Wanted::Park {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_parked = false;
        state.wanted == Wanted::Leave
    }

    /// Waits until the thread stands still, until then at most; whether it does.
    pub(super) fn is_parked(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        while !state.is_parked {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

impl AsFd for Parking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.called.as_fd()
    }
}
