//! The kernel's own limit on how fast a btrfs is scrubbed: `scrub_speed_max` of each of its devices (Linux 5.14 and later), in bytes a second,
//! where 0 is none.
//!
//! What the knobs held is written down before the first change and put back, unless somebody has set them otherwise since.

use crate::directories;
use crate::error::WorkError;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Limits of a scrub that were set, and what was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    knobs: Vec<Knob>,
}

/// The knob of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Knob {
    path: PathBuf,
    /// What it held.
    own: u64,
    /// What it held when this was written down, and what was written to it then: whoever dies in between leaves the one or the other.
    ours: [u64; 2],
}

/// The knobs of all devices of a btrfs that is known by this; nothing if one has none.
pub(crate) fn knobs(file_system: (u64, u64), sys: &Path) -> Option<Vec<PathBuf>> {
    let devices = fs::read_dir(devices(file_system, sys)).ok()?;
    let knobs: Vec<PathBuf> = devices.flatten().map(|device| device.path().join("scrub_speed_max")).collect();
    (!knobs.is_empty() && knobs.iter().all(|knob| knob.exists())).then_some(knobs)
}

/// The directory of the devices of a btrfs, which the kernel calls by the sixteen bytes that are written on it.
pub(crate) fn devices((first, second): (u64, u64), sys: &Path) -> PathBuf {
    let hex = format!("{:016x}{:016x}", u64::from_be(first), u64::from_be(second));
    let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    sys.join("fs/btrfs").join(uuid).join("devinfo")
}

/// Where in the runtime directory of a queue is written down what the knobs held.
pub(crate) fn kept(runtime: &Path) -> PathBuf {
    runtime.join("scrub-speeds")
}

/// Puts back what a queue changed, if anything.
pub(crate) fn put_back(runtime: &Path) -> Result<(), WorkError> {
    let path = kept(runtime);
    if let Some(limits) = directories::read::<Limits>(&path) {
        limits.put_back()?;
        let _ = fs::remove_file(path);
    }
    Ok(())
}

impl Limits {
    /// Those by which each device is scrubbed at so many bytes a second at most. What it holds is its own limit, unless it is what was written
    /// there before, and is not exceeded.
    pub(crate) fn of(knobs: Vec<PathBuf>, limit: u64, before: Option<&Self>) -> Result<Self, WorkError> {
        let knob = |path: PathBuf| {
            let holds = read(&path)?;
            let known = before.and_then(|before| before.knobs.iter().find(|knob| knob.path == path));
            let own = known.filter(|knob| knob.ours.contains(&holds)).map_or(holds, |knob| knob.own);
            let new = if own == 0 { limit } else { limit.min(own) };
            Ok(Knob { path, own, ours: [holds, new] })
        };
        Ok(Self { knobs: knobs.into_iter().map(knob).collect::<Result<_, WorkError>>()? })
    }

    /// Sets those that are not yet.
    pub(crate) fn set(&self) -> Result<(), WorkError> {
        let mut changes = self.knobs.iter().filter(|knob| knob.ours[0] != knob.ours[1]);
        changes.try_for_each(|knob| write(&knob.path, knob.ours[1]))
    }

    /// Nobody changed any since they were set.
    pub(crate) fn are_set(&self) -> bool {
        self.knobs.iter().all(|knob| read(&knob.path).is_ok_and(|holds| holds == knob.ours[1]))
    }

    fn put_back(&self) -> Result<(), WorkError> {
        // Also those after one that cannot be.
        self.knobs.iter().map(Knob::put_back).fold(Ok(()), Result::and)
    }
}

impl Knob {
    /// With its device or the whole file system it went too.
    fn put_back(&self) -> Result<(), WorkError> {
        let put_back = || match read(&self.path)? {
            holds if holds != self.own && self.ours.contains(&holds) => write(&self.path, self.own),
            _ => Ok(()),
        };
        put_back().or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
    }
}

fn is_gone(error: &WorkError) -> bool {
    let WorkError::Io { source, .. } = error else { return false };
    source.kind() == ErrorKind::NotFound || source.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

fn read(path: &Path) -> Result<u64, WorkError> {
    let text = fs::read_to_string(path).map_err(WorkError::io("read", path))?;
    text.trim().parse().map_err(|_| WorkError::Refused(format!("{} holds no number", path.display())))
}

fn write(path: &Path, limit: u64) -> Result<(), WorkError> {
    // Not made where it is not.
    let file = File::options().write(true).truncate(true).open(path);
    file.and_then(|mut file| file.write_all(limit.to_string().as_bytes())).map_err(WorkError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::devices;
    use std::path::Path;

    #[test]
    fn a_btrfs_is_called_by_the_bytes_that_are_written_on_it() {
        let words = [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 255]].map(u64::from_ne_bytes);
        let path = devices((words[0], words[1]), Path::new("/sys"));
        assert_eq!(path, Path::new("/sys/fs/btrfs/00010203-0405-0607-0809-0a0b0c0d0eff/devinfo"));
    }
}
