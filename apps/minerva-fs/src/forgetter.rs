//! A file that the kernel knows is a descriptor here, also long after anybody had it open. When descriptors become few the kernel is
//! asked to forget such files, of the trees that have more than their part.

use crate::tenant::Tenants;
use anyhow::Context;
use minerva_cachefs::Descriptors;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(50);
/// Between two rounds while they are few.
const AGAIN: Duration = Duration::from_millis(1);
/// Names of a tree that are forgotten in a round.
const NAMES_MAX: usize = 1000;

/// A thread that looks twenty times a second.
#[derive(Debug)]
pub(crate) struct Forgetter {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Forgetter {
    pub(crate) fn start(tenants: Tenants, descriptors: Arc<Descriptors>) -> anyhow::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            let mut pause = LOOK;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // Where all that is known is in use there is no hurry.
                let is_done = !descriptors.is_short() || forget(&tenants) == 0;
                pause = if is_done { LOOK } else { AGAIN };
            }
        };
        let thread =
            thread::Builder::new().name("forgetter".to_owned()).spawn(work).context("failed to start a thread")?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It ends by itself, and a panic in it has ended the process before.
        let _ = self.thread.join();
    }
}

/// One round; how many names were forgotten.
fn forget(tenants: &Tenants) -> usize {
    let found: Vec<_> = {
        let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
        let mounts = tenants.iter().flat_map(|tenant| [&tenant.temporary, &tenant.stable]);
        let beyond = mounts.filter(|mount| mount.tree.descriptors_beyond() > 0);
        beyond.filter_map(|mount| Some((mount.forgetting()?, mount.tree.idle_names(NAMES_MAX)))).collect()
    };
    let mut forgotten = 0;
    for (kernel, names) in found {
        for (directory, name) in names {
            forgotten += usize::from(kernel.forget(directory, &name).is_ok());
        }
    }
    forgotten
}
