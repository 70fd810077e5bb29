//! Work of which nobody knows whether it ends, such as a look at a process: a thread does it, and whoever asks for it waits for so long.
//!
//! While a process begins another program, the kernel lets whoever reads most of what it shows of it wait (`exec_update_lock`), and meanwhile
//! closes what that program is not to have open. A file on a file system whose server is the same user's closes when that user likes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Pages of all threads are locked in memory, and such work needs few.
const STACK_BYTES: usize = 64 << 10;

/// So many threads at once, and no more: those that do not end are left to themselves, and end when what they wait for does.
#[derive(Debug)]
pub struct AsideThreads {
    most: usize,
    under_way: Arc<()>,
}

impl AsideThreads {
    /// At most so many.
    pub fn new(most: usize) -> Self {
        Self { most, under_way: Arc::new(()) }
    }

    /// Does the work on a thread of its own.
    ///
    /// # Errors
    /// There are too many already, or the kernel gives none.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.start_and_tell(work, |()| ())
    }

    /// What the work comes to, if it does so in time.
    pub fn within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = sync_channel(1);
        // Fails only when nobody wants to know any more.
        self.start_and_tell(work, move |what| _ = sender.send(what)).ok()?;
        answer.recv_timeout(patience).ok()
    }

    fn start_and_tell<T: 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        tell: impl FnOnce(T) + Send + 'static,
    ) -> io::Result<()> {
        let counted = Arc::clone(&self.under_way);
        // One is ours.
        if Arc::strong_count(&counted) > self.most + 1 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let thread = std::thread::Builder::new().name("aside".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            let what = work();
            // Who is told may begin another one at once.
            drop(counted);
            tell(what);
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::AsideThreads;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn who_does_not_end_is_counted_until_it_does() {
        let threads = AsideThreads::new(2);
        let (patience, long) = (Duration::from_millis(1), Duration::from_secs(60));
        let (release, wait) = channel::<()>();
        assert_eq!(threads.within(patience, move || wait.recv().is_ok()), None);
        assert_eq!(threads.within(long, || 7), Some(7));
        let (release_other, wait) = channel::<()>();
        assert_eq!(threads.within(patience, move || wait.recv().is_ok()), None);
        assert_eq!(threads.within(long, || 7), None, "there are two already");
        drop((release, release_other));
        while threads.within(long, || 7).is_none() {
            std::thread::yield_now();
        }
    }
}
