//! The thread that moves files.

use super::Deferred;
use super::mover::{LOOK, Moves};
use anyhow::Context;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

/// The thread.
pub(crate) struct Mover {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Mover {
    pub(crate) fn start(deferred: Arc<Deferred>) -> anyhow::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            become_idle();
            let mut moving = Moves::new(&deferred);
            let mut pause = LOOK;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = moving.look();
            }
            moving.abandon();
        };
        let thread = thread::Builder::new().name("mover".to_owned()).spawn(work).context("failed to start a thread")?;
        Ok(Self { stop, thread })
    }

    /// Ends it after the piece that is under way.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It ends by itself, and a panic in it has ended the process before.
        let _ = self.thread.join();
    }
}

/// This thread's requests come after everybody else's, where the elevator knows classes (ioprio_set(2)).
fn become_idle() {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_IDLE: libc::c_int = 3 << 13;
    // SAFETY: the call takes three numbers; 0 is the calling thread.
    let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
}
