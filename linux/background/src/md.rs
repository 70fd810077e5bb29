//! Checks of md arrays (Documentation/admin-guide/md.rst): begun by `sync_action`, paced by `sync_speed_min` and `sync_speed_max`. And
//! resyncs and recoveries, which the kernel begins by itself: only paced.
//!
//! Either is a thread of the kernel's, outside every group: only these knobs slow it. What they held is written down before the
//! first change and put back.

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
        self.write("sync_min", &(position / unit * unit / SECTOR_BYTES).to_string())?;
        self.write("sync_action", "check")
    }

    /// Ends a check of ours. Waits until the kernel has ended it. Somebody else's begins at the start again.
    pub(crate) fn end(&self) -> Result<(), WorkError> {
        if self.action()? != "check" {
            return Ok(());
        }
        self.write("sync_action", "idle")?;
        self.write("sync_min", "0")
    }

    /// What an array is known by: what is written on its disks, or its number if nothing is.
    pub(crate) fn identity(&self, node: &Path) -> Result<FileIdentity, WorkError> {
        let device = stat(node).map_err(WorkError::io("look at", node))?.st_rdev;
        let text = read(&self.directory.join("uuid")).unwrap_or_default().replace('-', "");
        let written = u128::from_str_radix(&text, 16).ok().filter(|written| *written != 0);
        let file_system = written.map_or((0, device), |written| ((written >> 64) as u64, written as u64));
        let lasting = Some(LastingIdentity { file_system, subvolume: 0, born_ns: 0 });
        Ok(FileIdentity { device, inode: 0, lasting })
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

    /// Says how far it is and what `found` says, until it does none of that.
    fn watch(&self, worker: &Worker, actions: &[&str], found: impl Fn() -> Found) -> Result<(), WorkError> {
        let mut size = 0;
        while actions.contains(&self.action()?.as_str()) {
            if let Some((done, all)) = self.completed()? {
                size = all;
                worker.progress_with(done as f64, Some(all as f64), done, found());
            }
            std::thread::sleep(PERIOD);
        }
        worker.progress_with(size as f64, Some(size as f64), size, found());
        Ok(())
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
            array.begin(worker.spec().position)?;
            before.errors + before.under_way
        }
        // It was begun by the worker before this one.
        "check" => before.errors,
        other => {
            let why =
                format!("{} is busy with {other}, which comes first: add it again later", worker.spec().path.display());
            return Err(WorkError::Refused(why));
        }
    };
    array.watch(worker, &["check"], || Found { errors, under_way: array.mismatches(), ..before })?;
    worker.say(&format!("{} sectors differ between copies", errors + array.mismatches()));
    Ok(())
}

/// Watches a resync or a recovery to its end; what its speeds are, whoever let this run says.
pub(crate) fn resync(worker: &mut Worker, sys: &Path) -> Result<(), WorkError> {
    worker.spec().look(sys)?;
    let array = Array::of(&worker.spec().path, sys)?;
    array.watch(worker, &RESYNCS, Found::default)?;
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
    use super::{Array, Speeds, check};
    use crate::error::WorkError;
    use crate::spec::{Found, Kind};
    use crate::worker::Worker;
    use std::fs;
    use std::path::Path;

    fn array(sys: &Path, files: &[(&str, &str)]) -> Result<Array, WorkError> {
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

    /// A worker of a check of the array `md7`, which is 1 MiB large.
    fn checker(sys: &Path, action: &str, mismatches: &str) -> Worker {
        let files = [
            ("sync_action", action),
            ("sync_completed", "1024 / 2048\n"),
            ("chunk_size", "65536\n"),
            ("mismatch_cnt", mismatches),
            ("uuid", "00000000-0000-0000-0000-00000000002a\n"),
        ];
        array(sys, &files).unwrap();
        let mut worker = Worker::of(sys.parent().unwrap(), Kind::MdCheck, &sys.join("md7"));
        worker.spec_mut().position = (1 << 19) + 5000;
        worker.spec_mut().found = Found { errors: 8, under_way: 2, ..Found::default() };
        worker
    }

    #[test]
    fn a_check_goes_on_where_the_worker_before_was_and_adds_to_what_that_found() {
        for (action, sync_min, found) in [("idle\n", Some("1024"), 10 + 4), ("check\n", None, 8 + 4)] {
            let root = tempfile::tempdir().unwrap();
            let sys = root.path().join("sys");
            let mut worker = checker(&sys, action, "4\n");
            let (action, progress) =
                (sys.join("block/md7/md/sync_action"), root.path().join("run/background/b1/progress"));
            std::thread::scope(|scope| {
                // It ends once it was seen to have begun, as the kernel ends it.
                scope.spawn(|| {
                    while !progress.exists() {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                    fs::write(&action, "idle\n").unwrap();
                });
                check(&mut worker, &sys).unwrap();
            });
            // A multiple of what the array is divided into; a check that runs is where it is.
            let begun_at = fs::read_to_string(sys.join("block/md7/md/sync_min")).ok();
            assert_eq!(begun_at.as_deref(), sync_min);
            assert_eq!(worker.message(), format!("{found} sectors differ between copies"));
            let progress = worker.assignment().place.progress().unwrap();
            assert_eq!((progress.found.errors + progress.found.under_way, progress.found.under_way), (found, 4));
        }
    }

    #[test]
    fn another_array_of_the_same_number_is_not_checked() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        let mut worker = checker(&sys, "idle\n", "0\n");
        fs::write(sys.join("block/md7/md/uuid"), "00000000-0000-0000-0000-00000000002b\n").unwrap();
        assert!(matches!(check(&mut worker, &sys), Err(WorkError::Absent(_))));
        assert!(!sys.join("block/md7/md/sync_min").exists());
        // Earlier versions knew it by its node, which is made anew at each boot.
        worker.spec_mut().identity.lasting = None;
        worker.spec().look(&sys).unwrap();
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
