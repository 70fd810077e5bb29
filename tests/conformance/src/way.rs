//! What the ways of a job's requests to a real disk have in common: for how long it is played, and on which disk.

use crate::log::Window;
use anyhow::Context as _;
use minerva_lab::disk::{Disk, DiskSpec};

/// Before anything is counted of a job.
pub(crate) const RAMP_S: u64 = 2;
/// The spread of a real arm is shown between windows of this length.
pub(crate) const WINDOW_MS: u64 = 10_000;
/// After the window, so that everybody still is at work when it ends.
const TAIL_MS: u64 = 1000;

/// How long to run: first without counting, then counting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duration {
    pub(crate) ramp_ms: u64,
    pub(crate) counted_ms: u64,
}

impl Duration {
    /// Of a job of which so many seconds are counted.
    pub(crate) fn of_job(seconds: u64) -> Self {
        Self { ramp_ms: RAMP_S * 1000, counted_ms: seconds * 1000 }
    }

    /// All of it.
    pub(crate) fn whole_ms(self) -> u64 {
        self.ramp_ms + self.counted_ms + TAIL_MS
    }

    /// What is counted, where the first request was done at `first_ms`.
    pub(crate) fn window(self, first_ms: u64) -> Window {
        Window { from_ms: first_ms + self.ramp_ms, length_ms: self.counted_ms }
    }
}

/// Uses a profile that is no built-in one by the path of a file.
pub(crate) fn with_profile<T>(text: &str, play: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let folder = tempfile::tempdir().context("make a folder for a disk profile")?;
    let path = folder.path().join("profile.toml");
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    play(&path.to_string_lossy())
}

/// Makes a disk under an elevator.
pub(crate) fn disk(prefix: &str, profile: &str, elevator: &str, has_partitions: bool) -> anyhow::Result<Disk> {
    let spec = DiskSpec { elevator: elevator.to_owned(), has_partitions, ..DiskSpec::new(prefix, profile) };
    Ok(Disk::create(&spec)?)
}
