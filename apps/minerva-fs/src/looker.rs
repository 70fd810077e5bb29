//! A thread that looks after something again and again, until it is ended.

use anyhow::Context;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread.
#[derive(Debug)]
pub(crate) struct Looker {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// How the thread hears that it is to end.
pub(crate) struct Stop(Receiver<()>);

impl Stop {
    /// Waits so long; whether it is to end, which may come sooner.
    pub(crate) fn comes_within(&self, pause: Duration) -> bool {
        self.0.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }
}

impl Looker {
    pub(crate) fn start(name: &str, work: impl FnOnce(Stop) + Send + 'static) -> anyhow::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || work(Stop(stopped));
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).context("failed to start a thread")?;
        Ok(Self { stop, thread })
    }

    /// Ends it once what is under way is done.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It ends by itself, and a panic in it has ended the process before.
        let _ = self.thread.join();
    }
}
