//! What was written, on its way to the disk before anybody syncs it (sync_file_range(2)). The disk's own cache is not flushed and no journal is
//! committed: this is no promise of what is there after the power went.

use crate::file_system::Result;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Pieces that wait to be sent, beside the one that is being sent: where the disk takes its time, who writes more sends it.
const PIECES: usize = 4;

/// Sends the data of a file to the disk.
pub(crate) fn send(data: &OwnedFd) -> Result<()> {
    ask(data, libc::SYNC_FILE_RANGE_WRITE)
}

/// And waits until the disk has them, or has failed.
pub(crate) fn send_and_wait(data: &OwnedFd) -> Result<()> {
    ask(data, libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER)
}

/// The whole file: the kernel passes over what is not dirty.
fn ask(data: &OwnedFd, how: libc::c_uint) -> Result<()> {
    // SAFETY: the call takes four numbers and touches no memory of ours; the descriptor is open.
    let done = unsafe { libc::sync_file_range(data.as_raw_fd(), 0, 0, how) };
    if done == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

/// A thread that sends files' data for those who write: even to send them takes a while where the disk's queue is full. It ends when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct SendingThread(Option<SyncSender<Arc<OwnedFd>>>);

impl SendingThread {
    pub(crate) fn start() -> Self {
        // Whatever it meets the next sync meets, too.
        Self::start_with(|data| {
            let _ = send(data);
        })
    }

    fn start_with(send: impl Fn(&OwnedFd) + Send + 'static) -> Self {
        let (sender, files) = sync_channel::<Arc<OwnedFd>>(PIECES);
        let work = move || files.into_iter().for_each(|data| send(&data));
        let started = thread::Builder::new().name("write-behind".to_owned()).spawn(work);
        Self(started.ok().map(|_| sender))
    }

    /// Whether it sends them; not where it is behind already.
    pub(crate) fn take(&self, data: &Arc<OwnedFd>) -> bool {
        self.0.as_ref().is_some_and(|files| files.try_send(Arc::clone(data)).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECES, SendingThread};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_is_behind_takes_no_more_until_the_disk_has_what_it_took() {
        let file: Arc<OwnedFd> = Arc::new(tempfile::tempfile().unwrap().into());
        let ((begun, has_begun), (free, is_free)) = (channel(), channel());
        let thread = SendingThread::start_with(move |_| {
            begun.send(()).unwrap();
            is_free.recv().unwrap();
        });
        assert!(thread.take(&file));
        has_begun.recv().unwrap();
        assert_eq!((0..2 * PIECES).filter(|_| thread.take(&file)).count(), PIECES);
        free.send(()).unwrap();
        has_begun.recv().unwrap();
        assert!(thread.take(&file) && !thread.take(&file), "one more");
        drop(thread);
        // What it took is sent all the same.
        for _ in 0..PIECES {
            free.send(()).unwrap();
            has_begun.recv().unwrap();
        }
        free.send(()).unwrap();
        assert!(has_begun.recv().is_err(), "it has ended");
        assert_eq!(Arc::strong_count(&file), 1);
    }
}
