//! Disks come, go and change while others are served.

use super::{PhysicalDisk, Server, VmDisk, listen};
use crate::error::{HangUp, ImageError, ServerError};
use crate::session::channel;
use crate::worker::{Command, DiskCounters, DiskMeasures, Unanswered, VmTerms};
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, PoisonError, mpsc};
use std::time::Duration;

/// So long is waited for what a disk that is removed has under way, and for one to become longer. It may lie where nobody answers any more.
const PATIENCE: Duration = Duration::from_secs(1);

impl Server {
    /// Another disk of this host; its number, for [`VmDisk::physical`].
    pub fn add_physical(&mut self, disk: &PhysicalDisk) -> Result<usize, ServerError> {
        self.workers.push(super::start_worker(disk)?);
        Ok(self.workers.len() - 1)
    }

    /// Disks of this host that have a worker.
    pub fn physical_count(&self) -> usize {
        self.workers.len()
    }

    /// Whether the worker of a disk of this host does not do what it is asked to do: whoever added a disk there would wait for the kernel.
    pub fn is_held_up(&self, physical: usize) -> bool {
        self.workers.get(physical).is_some_and(|(worker, _)| worker.is_held_up())
    }

    /// Serves another disk, at its socket, or where `listener` listens already.
    pub fn add(&mut self, disk: VmDisk, listener: Option<UnixListener>) -> Result<(), ServerError> {
        if self.is_held_up(disk.physical) {
            return Err(ServerError::HeldUp { disk: disk.name });
        }
        let listener = listener.map_or_else(|| listen(&disk.socket), Ok)?;
        self.serve(disk, listener)
    }

    /// Promises a disk something else from now on, also what of it is queued; whether there is such a disk. One whose worker is held up has
    /// it once that goes on.
    pub fn set_terms(&self, name: &str, terms: VmTerms) -> bool {
        self.find(name).is_some_and(|served| {
            let number = served.attachment.disk;
            let set = |answer| Command::SetTerms(number, Box::new(terms), answer);
            served.attachment.worker.ask_soon(set) != Err(Unanswered::Ended)
        })
    }

    /// Makes a disk longer, as [`crate::Image::grow`] does, and tells its guest; its length. None if there is no such disk. One whose file
    /// system answers too late becomes longer all the same once that does.
    pub fn grow(&self, name: &str, bytes: Option<u64>) -> Option<Result<u64, ImageError>> {
        let served = self.find(name)?;
        let (image, shared) = (Arc::clone(&served.attachment.image), Arc::clone(&served.shared));
        let grow = move || {
            let grown = image.grow(bytes);
            if grown.is_ok()
                && let Some(channel) = &shared.lock().channel
            {
                // One that has just gone is told when it comes back.
                let _ = channel::tell_change(channel);
            }
            grown
        };
        let image = &served.attachment.image;
        if !image.may_hang() {
            return Some(grow());
        }
        let (tell, told) = mpsc::channel();
        let failed = |source| ImageError::Open { path: image.path().to_owned(), source };
        let run = move || drop(tell.send(grow()));
        if let Err(error) = std::thread::Builder::new().name("blk-grow".to_owned()).spawn(run) {
            return Some(Err(failed(error)));
        }
        Some(told.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(failed(io::ErrorKind::TimedOut.into()))))
    }

    /// Serves a disk no more: its front end is hung up on, and its image closed, as soon as what it has under way has come back. Whether there
    /// was such a disk.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(at) = self.disks.iter().position(|served| served.name == name) else { return false };
        let super::Served { shared, thread, attachment, socket, .. } = self.disks.remove(at);
        shared.end();
        let (tell, ended) = mpsc::channel();
        let end = move || {
            let _ = thread.join();
            attachment.worker.ask(|answer| Command::Remove(attachment.disk, answer));
            drop(attachment);
            // Whoever removes it may have waited long enough.
            let _ = tell.send(());
        };
        self.leaving.retain(|(_, thread)| !thread.is_finished());
        // Without a thread the image stays open until the server ends.
        if let Ok(thread) = std::thread::Builder::new().name("blk-remove".to_owned()).spawn(end) {
            let _ = ended.recv_timeout(PATIENCE);
            self.leaving.push((name.to_owned(), thread));
        }
        // Only who owns its folder can; the next server there removes it otherwise.
        let _ = std::fs::remove_file(&socket);
        true
    }

    /// The process that is connected to a disk.
    pub fn front_end(&self, name: &str) -> Option<u32> {
        self.find(name)?.shared.lock().front_end
    }

    /// Why the last front end of a disk was hung up on; none once one is served again.
    pub fn hang_up(&self, name: &str) -> Option<HangUp> {
        self.find(name)?.shared.lock().hung_up.clone()
    }

    /// What a disk was asked for so far, how it is doing, and its length in bytes. One whose worker is held up is doing as it told last.
    pub fn measure(&self, name: &str) -> Option<(&DiskCounters, DiskMeasures, u64)> {
        let served = self.find(name)?;
        let (number, worker) = (served.attachment.disk, &served.attachment.worker);
        let told = match worker.is_late() {
            // It has been asked, and more questions would only be kept for it.
            true => Err(Unanswered::Late),
            false => worker.ask_soon(|answer| Command::Measure(number, answer)),
        };
        let mut last = served.measures.lock().unwrap_or_else(PoisonError::into_inner);
        match told {
            Ok(told) => *last = told,
            Err(Unanswered::Late) => {}
            Err(Unanswered::Ended) => return None,
        }
        let mut measures = last.clone();
        drop(last);
        let image = &served.attachment.image;
        measures.figures.image_removed = image.is_removed().then(|| image.removed_remedy());
        let length_bytes = image.geometry().sectors * crate::request::SECTOR_BYTES;
        Some((&served.counters, measures, length_bytes))
    }

    fn find(&self, name: &str) -> Option<&super::Served> {
        self.disks.iter().find(|served| served.name == name)
    }
}
