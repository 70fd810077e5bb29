//! Checks of md arrays (Documentation/admin-guide/md.rst): begun by `sync_action`, paced by `sync_speed_min` and `sync_speed_max`. And
//! resyncs and recoveries, which the kernel begins by itself: only paced.
//!
//! Either is a thread of the kernel's, outside every group: only these knobs slow it. What they held is written down before the
//! first change and put back.

#[cfg(test)]
mod tests;

use crate::error::WorkError;
use crate::identity::{FileIdentity, LastingIdentity};
use crate::spec::Found;
use crate::worker::Worker;
use rustix::fs::stat;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// KiB a second of a check that is stopped: the kernel knows no less.
const STOPPED: &str = "1";
const PERIOD: Duration = Duration::from_millis(500);
const SECTOR_BYTES: u64 = 512;
/// Where a check may begin, in arrays that are not divided into chunks.
const PAGE_BYTES: u64 = 4096;
/// How far a check may go, in sectors: beyond the end of every array, at a multiple of every chunk.
const BEYOND_END: u64 = 1 << 60;
/// What the knobs read back as while an array follows the whole host's settings, and what puts that back.
const OF_SYSTEM: &str = "system";
/// What the kernel begins by itself, and `repair`, which an operator may have begun.
const RESYNCS: [&str; 4] = ["resync", "recover", "reshape", "repair"];

/// An array's directory below sysfs.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    directory: PathBuf,
}

/// What the knobs held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Speeds {
    minimum: String,
    maximum: String,
}

impl Array {
    /// The array of a device node.
    pub(crate) fn of(node: &Path, sys: &Path) -> Result<Self, WorkError> {
        let node = fs::canonicalize(node).map_err(WorkError::io("find", node))?;
        let name = node.file_name().unwrap_or_default();
        let directory = sys.join("block").join(name).join("md");
        let refused = |why: &str| Err(WorkError::Refused(format!("{} {why}", node.display())));
        if !directory.is_dir() {
            return refused("is no md array");
        }
        match read(&directory.join("sync_action"))?.as_str() {
            "" => refused("has no copies to compare: its level has no redundancy"),
            _ => Ok(Self { directory }),
        }
    }

    /// What the knobs hold, in the words that write it back.
    pub(crate) fn speeds(&self) -> Result<Speeds, WorkError> {
        let of = |file: &str| {
            let text = read(&self.directory.join(file))?;
            // "200000 (system)" or "5000 (local)".
            let (number, whose) = text.split_once(' ').unwrap_or((&text, ""));
            Ok(if whose.contains(OF_SYSTEM) { OF_SYSTEM.to_owned() } else { number.to_owned() })
        };
        Ok(Speeds { minimum: of("sync_speed_min")?, maximum: of("sync_speed_max")? })
    }

    /// Slows the check to next to nothing. The least first: the kernel never goes below it.
    pub(crate) fn stop(&self) -> Result<(), WorkError> {
        self.write("sync_speed_min", STOPPED)?;
        self.write("sync_speed_max", STOPPED)
    }

    /// Puts the knobs back.
    pub(crate) fn put_back(&self, speeds: &Speeds) -> Result<(), WorkError> {
        self.write("sync_speed_max", &speeds.maximum)?;
        self.write("sync_speed_min", &speeds.minimum)
    }

    /// Begins a check at a byte of each disk. The kernel itself would go on where the last one was ended, and after a boot from the start.
    fn begin(&self, position: u64) -> Result<(), WorkError> {
        let chunk = read(&self.directory.join("chunk_size"))?.parse().unwrap_or(0);
        let unit = PAGE_BYTES.max(chunk);
        // By this one sees whether it came to its end. Where the kernel does not take it, `sync_min` alone says so.
        let _ = self.write("sync_max", &BEYOND_END.to_string());
        self.write("sync_min", &(position / unit * unit / SECTOR_BYTES).to_string())?;
        self.write("sync_action", "check")
    }

    /// Ends a check, of which [`crate::directories::QueueDirectories::has_check`] says that it is ours. Waits until the kernel has ended it.
    /// The next one that somebody else begins is from the start, unless something begins at once, such as a recovery: then the kernel keeps
    /// where this one was.
    pub(crate) fn end(&self) -> Result<(), WorkError> {
        if self.action()? != "check" {
            return Ok(());
        }
        self.write("sync_action", "idle")?;
        // As the kernel leaves it at an end. Nothing depends on either: the next check of ours sets them anew.
        let _ = self.write("sync_max", "max");
        let _ = self.write("sync_min", "0");
        Ok(())
    }

    /// What an array is known by: what is written on its disks, or its number if nothing is.
    pub(crate) fn identity(&self, node: &Path) -> Result<FileIdentity, WorkError> {
        let device = stat(node).map_err(WorkError::io("look at", node))?.st_rdev;
        let text = read(&self.directory.join("uuid")).unwrap_or_default().replace('-', "");
        let written = u128::from_str_radix(&text, 16).ok().filter(|written| *written != 0);
        let file_system = written.map_or((0, device), |written| ((written >> 64) as u64, written as u64));
        let lasting = Some(LastingIdentity { file_system, subvolume: 0, born_ns: 0 });
        Ok(FileIdentity { device, inode: 0, lasting, parent_inode: None })
    }

    /// Sectors that differ, as the check found so far, or the last one.
    fn mismatches(&self) -> u64 {
        read(&self.directory.join("mismatch_cnt")).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Whether there is a resync or a recovery to pace.
    pub(crate) fn check_resync(&self) -> Result<(), WorkError> {
        match self.action()?.as_str() {
            action if RESYNCS.contains(&action) => Ok(()),
            action => Err(WorkError::Refused(format!(
                "there is nothing to resync: the array is {action}; md-check compares its copies"
            ))),
        }
    }

    fn action(&self) -> Result<String, WorkError> {
        read(&self.directory.join("sync_action"))
    }

    /// Says how far it is and what `found` says, until it does none of that; how many bytes it has, if that was seen.
    fn watch(&self, worker: &Worker, actions: &[&str], found: impl Fn() -> Found) -> Result<Option<u64>, WorkError> {
        let mut size = None;
        while actions.contains(&self.action()?.as_str()) {
            if let Some((done, all)) = self.completed()? {
                size = Some(all);
                worker.progress_with(done as f64, Some(all as f64), done, found());
            }
            std::thread::sleep(PERIOD);
        }
        Ok(size)
    }

    /// Up to which byte of each disk the last check came that was ended before its end; nothing of one that was done. At its end the kernel
    /// sets `sync_min` to 0 and `sync_max` to `max`. Of one that was ended it sets the former to where that was, which is still 0 in the
    /// first sixteenth, and leaves the latter (md_do_sync in drivers/md/md.c). What cannot be read counts as done.
    fn ended_early_at(&self) -> Option<u64> {
        let sectors = |file: &str| read(&self.directory.join(file)).ok().and_then(|text| text.parse::<u64>().ok());
        let at = sectors("sync_min").unwrap_or(0);
        (at > 0 || sectors("sync_max") == Some(BEYOND_END)).then_some(at.saturating_mul(SECTOR_BYTES))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), WorkError> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(WorkError::io("write", &path))
    }

    /// Bytes compared, and bytes in all; nothing while no check runs.
    fn completed(&self) -> Result<Option<(u64, u64)>, WorkError> {
        let text = read(&self.directory.join("sync_completed"))?;
        let sectors = |text: &str| text.trim().parse::<u64>().ok();
        let both = text.split_once('/').and_then(|(done, all)| Some((sectors(done)?, sectors(all)?)));
        Ok(both.map(|(done, all)| (done * SECTOR_BYTES, all * SECTOR_BYTES)))
    }
}

/// Begins a check where the worker before this one was, unless one runs, and watches it to its end. The kernel counts what differs from 0
/// in each: what was found before counts too.
pub(crate) fn check(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    worker.spec().look(sys)?;
    let array = Array::of(&worker.spec().path, sys)?;
    let before = worker.spec().found;
    let errors = match array.action()?.as_str() {
        "idle" => {
            begin(worker, &array)?;
            before.errors + before.under_way
        }
        // It was begun by the worker before this one, or by another, and compares the same copies.
        "check" => before.errors,
        other => {
            let why =
                format!("{} is busy with {other}, which comes first: add it again later", worker.spec().path.display());
            return Err(WorkError::Refused(why));
        }
    };
    let found = || Found { errors, under_way: array.mismatches(), ..before };
    let watched = array.watch(worker, &["check"], found);
    // Also of an array that was stopped meanwhile: a check that is begun when it is there again is somebody else's.
    if array.action().map_or(true, |action| action != "check") {
        worker.assignment().place.forget_check();
    }
    let size = watched?;
    let differ = errors + array.mismatches();
    if let Some(at) = array.ended_early_at() {
        // As the kernel leaves it at an end. Nothing depends on it: the next check sets it anew.
        let _ = array.write("sync_max", "max");
        worker.progress_with(at as f64, size.map(|size| size as f64), at, found());
        let (of, name) = (size.map_or_else(String::new, |size| format!(" of {size}")), &worker.spec().name);
        return Err(WorkError::Refused(format!(
            "the check ended before its end, at byte {at}{of} of each disk: somebody ended it, or a disk failed. So far {differ} sectors \
             differ between copies. minerva-ctl background resume {name} goes on from there"
        )));
    }
    say_all_done(worker, size, found());
    worker.say(&format!("{differ} sectors differ between copies"));
    Ok(())
}

/// Nothing is left of so many bytes.
fn say_all_done(worker: &Worker, size: Option<u64>, found: Found) {
    let size = size.unwrap_or(0);
    worker.progress_with(size as f64, Some(size as f64), size, found);
}

/// Begins a check, and leaves word that it is this queue's: whoever removes the queue ends no other.
fn begin(worker: &Worker, array: &Array) -> Result<(), WorkError> {
    let place = &worker.assignment().place;
    place.begin_check()?;
    array.begin(worker.spec().position).inspect_err(|_| place.forget_check())
}

/// Watches a resync or a recovery to its end; what its speeds are, whoever let this run says.
pub(crate) fn resync(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    worker.spec().look(sys)?;
    let array = Array::of(&worker.spec().path, sys)?;
    let size = array.watch(worker, &RESYNCS, Found::default)?;
    say_all_done(worker, size, Found::default());
    let degraded = read(&array.directory.join("degraded")).unwrap_or_default();
    worker.say(&match degraded.as_str() {
        "" | "0" => "all copies are there".to_owned(),
        count => format!("it is over, and {count} disks are missing all the same"),
    });
    Ok(())
}

fn read(path: &Path) -> Result<String, WorkError> {
    let text = fs::read_to_string(path).map_err(WorkError::io("read", path))?;
    Ok(text.trim().to_owned())
}
