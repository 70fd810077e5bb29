//! Disks of the operator's file that are not served, and which of them are tried again.

use minerva_blk::{ReservedSocket, ServerError, UnlockedImage};
use minerva_model::{DiskSettings, Nanos, RefusedDisk};
use std::time::{Duration, Instant};

/// After how long the first time; then twice as long each time.
const STEP_FIRST: Duration = Duration::from_secs(1);
const STEP_MAX: Duration = Duration::from_secs(60);

/// A disk that waits for the lock of its image, with all that only root can open.
pub(crate) struct WaitingDisk {
    pub(crate) settings: DiskSettings,
    pub(crate) image: UnlockedImage,
    step: Duration,
}

/// A disk of the operator's file that is not served.
pub(crate) struct Refused {
    pub(crate) name: String,
    why: String,
    retry: Retry,
    /// Where the front end of one that is tried again will connect; none as long as the server starts.
    socket: Option<ReservedSocket>,
}

enum Retry {
    /// It would be of no use.
    Never,
    At(Instant, Box<WaitingDisk>),
    /// The thread has it.
    Running,
}

impl WaitingDisk {
    /// Of an image that is locked.
    pub(crate) fn new(settings: DiskSettings, image: UnlockedImage) -> Self {
        Self { settings, image, step: STEP_FIRST }
    }
}

impl Refused {
    /// For this reason; tried again where there is something to try.
    pub(crate) fn new(name: &str, error: &anyhow::Error, waiting: Option<WaitingDisk>) -> Self {
        let retry = waiting.map_or(Retry::Never, |disk| Retry::At(Instant::now() + disk.step, Box::new(disk)));
        Self { name: name.to_owned(), why: format!("{error:#}"), retry, socket: None }
    }

    /// As operators are told.
    pub(crate) fn told(&self, now: Instant) -> RefusedDisk {
        let retry_in = match &self.retry {
            Retry::Never => None,
            Retry::At(at, _) => Some(at.saturating_duration_since(now)),
            Retry::Running => Some(Duration::ZERO),
        };
        let retry_in = retry_in.map(|time| Nanos(time.as_nanos() as u64));
        RefusedDisk { name: self.name.clone(), why: self.why.clone(), retry_in }
    }

    /// What is tried again.
    pub(crate) fn waiting(&self) -> Option<&WaitingDisk> {
        match &self.retry {
            Retry::At(_, disk) => Some(disk),
            Retry::Never | Retry::Running => None,
        }
    }

    /// Keeps its socket.
    pub(crate) fn reserve(&mut self, socket: ReservedSocket) {
        self.socket = Some(socket);
    }

    /// Where its front end will connect.
    pub(crate) fn socket(&self) -> Option<&ReservedSocket> {
        self.socket.as_ref()
    }

    /// It is served now.
    pub(crate) fn take_socket(&mut self) -> Option<ReservedSocket> {
        self.socket.take()
    }

    /// When it is tried again.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.retry {
            Retry::At(at, _) => Some(at),
            Retry::Never | Retry::Running => None,
        }
    }

    /// Whether it is being tried.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.retry, Retry::Running)
    }

    /// What to try, if it is time.
    pub(crate) fn take(&mut self, now: Instant) -> Option<WaitingDisk> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        match std::mem::replace(&mut self.retry, Retry::Running) {
            Retry::At(_, disk) => Some(*disk),
            Retry::Never | Retry::Running => None,
        }
    }

    /// It was tried for nothing: the lock is not free.
    pub(crate) fn wait_longer(&mut self, mut disk: WaitingDisk) {
        disk.step = (disk.step * 2).min(STEP_MAX);
        self.retry = Retry::At(Instant::now() + disk.step, Box::new(disk));
    }

    /// It was tried for nothing: its lock is free, and the thread of its device is held up by another image. The lock is given back, so that
    /// an operator can have the image served elsewhere.
    pub(crate) fn held_up(&mut self, disk: WaitingDisk) {
        disk.image.unlock();
        self.why = ServerError::HeldUp { disk: self.name.clone() }.to_string();
        self.wait_longer(disk);
    }

    /// Nobody wants it any more: its socket goes, if it has one.
    pub(crate) fn forget(self) {
        if let Some(socket) = self.socket {
            // It may be gone already, or only root may.
            let _ = std::fs::remove_file(socket.path());
        }
    }

    /// It was tried, and cannot be served for another reason.
    pub(crate) fn give_up(&mut self, error: &anyhow::Error) {
        (self.why, self.retry, self.socket) = (format!("{error:#}"), Retry::Never, None);
    }
}

/// Whether one of them is tried again, or is being tried.
pub(crate) fn has_waiting(refused: &[Refused]) -> bool {
    refused.iter().any(|disk| !matches!(disk.retry, Retry::Never))
}

#[cfg(test)]
mod tests {
    use super::{Refused, STEP_FIRST, STEP_MAX, WaitingDisk};
    use crate::disk::settings_of;
    use minerva_blk::{ImageOptions, UnlockedImage};
    use minerva_config::VmDiskSettings;
    use std::time::Instant;

    #[test]
    fn a_locked_disk_is_tried_after_twice_as_long_each_time_and_others_never() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let options = ImageOptions { is_read_only: false, is_direct: false };
        let image = UnlockedImage::open(file.path(), options).unwrap();
        let waiting = WaitingDisk::new(settings_of("vm1", &VmDiskSettings::default()), image);
        let why = anyhow::anyhow!("it is locked");
        let (began, mut disk) = (Instant::now(), Refused::new("vm1", &why, Some(waiting)));
        assert!(disk.take(began).is_none(), "not yet");
        let mut steps = Vec::new();
        for _ in 0..8 {
            let told = disk.told(began).retry_in.unwrap().as_secs_f64();
            let waiting = disk.take(began + STEP_MAX * 2).expect("it is time");
            assert_eq!(disk.told(began).retry_in.unwrap().0, 0, "now");
            assert!(told >= waiting.step.as_secs_f64());
            steps.push(waiting.step.as_secs());
            disk.wait_longer(waiting);
        }
        assert_eq!(steps, [1, 2, 4, 8, 16, 32, 60, 60], "from {STEP_FIRST:?}");
        let waiting = disk.take(began + STEP_MAX * 2).expect("it is time");
        drop(waiting.image.lock(began).unwrap());
        let lock = || UnlockedImage::open(file.path(), options).unwrap().lock(began);
        assert!(lock().is_err(), "it goes with the open file");
        disk.held_up(waiting);
        assert!(lock().is_ok(), "others may have it");
        let told = disk.told(began);
        assert!(told.why.contains("the thread of its device waits") && told.retry_in.is_some(), "{told:?}");
        disk.give_up(&anyhow::anyhow!("a qcow2 image"));
        let never = Refused::new("vm2", &why, None);
        for disk in [&disk, &never] {
            assert_eq!(disk.told(began).retry_in, None, "{}", disk.name);
        }
        assert_eq!(disk.told(began).why, "a qcow2 image");
    }
}
