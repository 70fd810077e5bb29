//! Programs that compute all the time on the server's processor, as a host's other guests do when there are more of them than processors.

use crate::server::{SERVER_PROCESSOR, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// So many at once.
pub(crate) const PROGRAMS: usize = 4;

/// They compute until this is dropped.
pub(crate) struct Computing {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Computing {
    pub(crate) fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let compute = |is_over: Arc<AtomicBool>| {
            pin(SERVER_PROCESSOR);
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let start = |_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || compute(is_over))
        };
        let threads = (0..PROGRAMS).map(start).collect();
        Self { is_over, threads }
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
