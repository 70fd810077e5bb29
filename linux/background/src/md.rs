//! Checks of md arrays (Documentation/admin-guide/md.rst): begun by `sync_action`, paced by `sync_speed_min` and `sync_speed_max`. And
//! resyncs and recoveries, which the kernel begins by itself: only paced.
//!
//! Either is a thread of the kernel's, outside every group: only these knobs slow it. What they held is written down before the
//! first change and put back.

use crate::error::WorkError;
use crate::worker::Worker;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// KiB a second of a check that is stopped: the kernel knows no less.
const STOPPED: &str = "1";
const PERIOD: Duration = Duration::from_millis(500);
const SECTOR_BYTES: f64 = 512.0;
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

    /// Ends a check of ours.
    pub(crate) fn end(&self) -> Result<(), WorkError> {
        if self.action()? == "check" { self.write("sync_action", "idle") } else { Ok(()) }
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

    /// Says how far it is, until it does none of that.
    fn watch(&self, worker: &Worker, actions: &[&str]) -> Result<(), WorkError> {
        let mut size = 0.0;
        while actions.contains(&self.action()?.as_str()) {
            if let Some((done, all)) = self.completed()? {
                size = all;
                worker.progress(done, Some(all), done as u64);
            }
            std::thread::sleep(PERIOD);
        }
        worker.progress(size, Some(size), size as u64);
        Ok(())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), WorkError> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(WorkError::io("write", &path))
    }

    /// Bytes compared, and bytes in all; nothing while no check runs.
    fn completed(&self) -> Result<Option<(f64, f64)>, WorkError> {
        let text = read(&self.directory.join("sync_completed"))?;
        let sectors = |text: &str| text.trim().parse::<f64>().ok();
        let both = text.split_once('/').and_then(|(done, all)| Some((sectors(done)?, sectors(all)?)));
        Ok(both.map(|(done, all)| (done * SECTOR_BYTES, all * SECTOR_BYTES)))
    }
}

/// Begins a check, unless one runs, and watches it to its end.
pub(crate) fn check(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    let array = Array::of(&worker.spec().path, sys)?;
    match array.action()?.as_str() {
        "idle" => array.write("sync_action", "check")?,
        // It was begun by the worker before this one.
        "check" => {}
        other => {
            let why =
                format!("{} is busy with {other}, which comes first: add it again later", worker.spec().path.display());
            return Err(WorkError::Refused(why));
        }
    }
    array.watch(worker, &["check"])?;
    let mismatches = read(&array.directory.join("mismatch_cnt")).unwrap_or_default();
    worker.say(&format!("{mismatches} sectors differ between copies"));
    Ok(())
}

/// Watches a resync or a recovery to its end; what its speeds are, whoever let this run says.
pub(crate) fn resync(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    let array = Array::of(&worker.spec().path, sys)?;
    array.watch(worker, &RESYNCS)?;
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

#[cfg(test)]
mod tests {
    use super::{Array, Speeds};
    use std::fs;
    use std::path::Path;

    fn array(sys: &Path, files: &[(&str, &str)]) -> Result<Array, crate::WorkError> {
        let directory = sys.join("block/md7/md");
        fs::create_dir_all(&directory).unwrap();
        files.iter().for_each(|(name, text)| fs::write(directory.join(name), text).unwrap());
        fs::write(sys.join("md7"), "").unwrap();
        Array::of(&sys.join("md7"), sys)
    }

    #[test]
    fn what_the_knobs_held_is_put_back_in_the_kernels_own_words() {
        let sys = tempfile::tempdir().unwrap();
        let files =
            [("sync_action", "idle\n"), ("sync_speed_min", "1000 (system)\n"), ("sync_speed_max", "5000 (local)\n")];
        let array = array(sys.path(), &files).unwrap();
        let speeds = array.speeds().unwrap();
        assert_eq!(speeds, Speeds { minimum: "system".to_owned(), maximum: "5000".to_owned() });
        let knobs = || {
            ["sync_speed_min", "sync_speed_max"]
                .map(|file| fs::read_to_string(sys.path().join("block/md7/md").join(file)).unwrap())
        };
        array.stop().unwrap();
        assert_eq!(knobs(), ["1", "1"]);
        array.put_back(&speeds).unwrap();
        assert_eq!(knobs(), ["system", "5000"]);
    }

    #[test]
    fn what_is_no_array_or_has_no_copies_is_refused_with_the_reason() {
        let sys = tempfile::tempdir().unwrap();
        fs::write(sys.path().join("sda"), "").unwrap();
        let error = Array::of(&sys.path().join("sda"), sys.path()).unwrap_err().to_string();
        assert!(error.ends_with("sda is no md array"), "{error}");
        let idle = array(sys.path(), &[("sync_action", "idle\n")]).unwrap();
        let error = idle.check_resync().unwrap_err().to_string();
        assert!(error.contains("the array is idle"), "{error}");
        array(sys.path(), &[("sync_action", "recover\n")]).unwrap().check_resync().unwrap();
        let error = array(sys.path(), &[("sync_action", "\n")]).unwrap_err().to_string();
        assert!(error.contains("no redundancy"), "{error}");
    }
}
