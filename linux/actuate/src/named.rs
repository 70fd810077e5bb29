//! Groups that the operator names: `minerva-ctl run` and `attach` put processes into cgroups below one parent, such as
//! `minerva/backup`. Their weights are kept in the runtime directory, so that a daemon that starts later knows them.
//!
//! A group that was made here is removed when its processes have ended; one that was there before is somebody else's. Nothing is ever
//! moved out of a group again. Whoever makes or removes groups here holds a lock, so that forty that begin at once neither lose each
//! other's weights nor remove each other's groups.

mod refusal;

pub use refusal::NamedError;

use crate::error::ActuateError;
use crate::lock::FileLock;
use crate::runtime_dir::RuntimeDir;
use crate::settings::WriterSettings;
use refusal::{check_name, check_process};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const WEIGHTS_FILE: &str = "named.json";
/// The names of groups that were made here.
const MADE_FILE: &str = "named-made.json";
/// A group may be swept away between its making and its first process; in such a moment it is made again.
const PLACE_TRIES: usize = 8;

/// The named groups of one hierarchy.
#[derive(Clone, Debug)]
pub struct NamedGroups {
    cgroup_root: PathBuf,
    runtime_dir: PathBuf,
    parent: String,
}

impl NamedGroups {
    /// Groups below `parent`, a path below the root of the hierarchy without a leading slash.
    pub fn new(settings: &WriterSettings, parent: impl Into<String>) -> Self {
        Self {
            cgroup_root: settings.cgroup_root.clone(),
            runtime_dir: settings.runtime_dir.clone(),
            parent: parent.into(),
        }
    }

    /// Whether a tenant can have that name.
    pub fn check_name(name: &str) -> Result<(), NamedError> {
        check_name(name)
    }

    /// The group above them, as given.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Moves a process into the group of that name, made if need be; its later children follow it. A weight, in percent of a
    /// neutral tenant's, is kept for the daemon; without one a kept weight stays. The answer is the group's path below the
    /// root of the hierarchy. On an error groups and weights are as they were.
    pub fn place(&self, name: &str, pid: u32, weight_percent: Option<u32>) -> Result<String, NamedError> {
        check_name(name)?;
        check_process(pid)?;
        let lock =
            RuntimeDir::create(&self.runtime_dir).and_then(|dir| FileLock::of_named(&dir)).map_err(NamedError::Lock)?;
        let _held = lock.hold().map_err(NamedError::Lock)?;
        let path = format!("{}/{name}", self.parent);
        let weights_before = self.weights();
        if let Some(percent) = weight_percent {
            self.keep_weight(name, percent).map_err(NamedError::Weight)?;
        }
        let is_new = !self.cgroup_root.join(&path).exists();
        if is_new {
            // Before it is made: what is not known as ours is never removed.
            self.change_made(|made| made.insert(name.to_owned())).map_err(NamedError::Weight)?;
        }
        let mut made = Vec::new();
        let moved = self.make_and_move(&path, pid, &mut made);
        if moved.is_err() {
            if is_new {
                // A name that stays behind is forgotten by the next sweep.
                drop(self.change_made(|made| made.remove(name)));
            }
            for group in made.iter().rev() {
                // The kernel keeps a group that somebody else has put a process into meanwhile.
                let _ = std::fs::remove_dir(self.cgroup_root.join(group));
            }
            if weight_percent.is_some() {
                // A weight that stays behind waits for the next group of that name; the first error says more.
                drop(self.keep_weights(&weights_before));
            }
        }
        moved.map(|()| path)
    }

    /// `made` gets the groups that were not there before, those above first.
    fn make_and_move(&self, path: &str, pid: u32, made: &mut Vec<String>) -> Result<(), NamedError> {
        for _ in 0..PLACE_TRIES {
            self.make(path, made)?;
            match self.write(&format!("{path}/cgroup.procs"), &pid.to_string()) {
                Ok(()) => return Ok(()),
                Err(Errno::NOENT | Errno::NODEV) => {}
                Err(Errno::SRCH) => return Err(NamedError::NoProcess { pid }),
                Err(errno) => return Err(self.refused("move the process into", path, errno)),
            }
        }
        Err(self.refused("move the process into", path, Errno::NOENT))
    }

    /// Removes the groups without processes that were made here; the answer is their names. While somebody makes a group it removes
    /// none: it is not waited for, as another sweep will come.
    pub fn sweep(&self) -> Vec<String> {
        // Without the directory nobody holds anything.
        let dir = RuntimeDir::open(&self.runtime_dir).ok().flatten();
        let Ok(lock) = dir.map(|dir| FileLock::of_named(&dir)).transpose() else { return Vec::new() };
        let held = lock.as_ref().map(FileLock::try_hold);
        if matches!(held, Some(Ok(None) | Err(_))) {
            return Vec::new();
        }
        let above = self.cgroup_root.join(&self.parent);
        let mut removed = Vec::new();
        let mut gone = BTreeSet::new();
        for name in self.made() {
            // The kernel refuses as long as there is a process or a group below: nothing needs to be looked at first.
            if std::fs::remove_dir(above.join(&name)).is_ok() {
                removed.push(name.clone());
            }
            if !above.join(&name).exists() {
                gone.insert(name);
            }
        }
        if !gone.is_empty() {
            let mut weights = self.weights();
            weights.retain(|name, _| !gone.contains(name));
            // A weight or a name that stays behind waits for the next group of that name, which is harmless.
            drop(self.keep_weights(&weights));
            drop(self.change_made(|made| made.retain(|name| !gone.contains(name))));
        }
        removed
    }

    /// Removes all groups without processes and the one above them, which is ours with all that is in it, for groups that are needed
    /// for a moment only. False while something still runs there, which keeps it.
    pub fn dissolve(&self) -> bool {
        let above = self.cgroup_root.join(&self.parent);
        for entry in std::fs::read_dir(&above).into_iter().flatten().flatten() {
            // The files of the kernel, and groups with processes, stay.
            drop(std::fs::remove_dir(entry.path()));
        }
        self.sweep();
        std::fs::remove_dir(&above).is_ok() || !above.exists()
    }

    /// The weights that were asked for, in percent, by name. A file that cannot be read holds none.
    pub fn weights(&self) -> BTreeMap<String, u32> {
        let dir = RuntimeDir::open(&self.runtime_dir).ok().flatten();
        let bytes = dir.and_then(|dir| dir.read(WEIGHTS_FILE).ok().flatten()).unwrap_or_default();
        let mut weights: BTreeMap<String, u32> = serde_json::from_slice(&bytes).unwrap_or_default();
        weights.retain(|name, percent| check_name(name).is_ok() && (1..=10_000).contains(percent));
        weights
    }

    /// The names of groups that were made here. A file that cannot be read holds none.
    fn made(&self) -> BTreeSet<String> {
        let dir = RuntimeDir::open(&self.runtime_dir).ok().flatten();
        let bytes = dir.and_then(|dir| dir.read(MADE_FILE).ok().flatten()).unwrap_or_default();
        let mut made: BTreeSet<String> = serde_json::from_slice(&bytes).unwrap_or_default();
        made.retain(|name| check_name(name).is_ok());
        made
    }

    fn change_made<T>(&self, change: impl FnOnce(&mut BTreeSet<String>) -> T) -> Result<(), ActuateError> {
        let mut made = self.made();
        change(&mut made);
        if made.is_empty() {
            return RuntimeDir::open(&self.runtime_dir)?.map_or(Ok(()), |dir| dir.remove(MADE_FILE));
        }
        let path = self.runtime_dir.join(MADE_FILE);
        let bytes = serde_json::to_vec(&made).map_err(ActuateError::io("encode", &path))?;
        RuntimeDir::create(&self.runtime_dir)?.replace(MADE_FILE, &bytes).map(drop)
    }

    fn keep_weight(&self, name: &str, percent: u32) -> Result<(), ActuateError> {
        let mut weights = self.weights();
        weights.insert(name.to_owned(), percent);
        self.keep_weights(&weights)
    }

    fn keep_weights(&self, weights: &BTreeMap<String, u32>) -> Result<(), ActuateError> {
        if weights.is_empty() {
            return RuntimeDir::open(&self.runtime_dir)?.map_or(Ok(()), |dir| dir.remove(WEIGHTS_FILE));
        }
        let path = self.runtime_dir.join(WEIGHTS_FILE);
        let bytes = serde_json::to_vec(weights).map_err(ActuateError::io("encode", &path))?;
        RuntimeDir::create(&self.runtime_dir)?.replace(WEIGHTS_FILE, &bytes).map(drop)
    }

    /// Makes the group and those above it. On v2 the io controller is passed down to it, where the parent has it.
    fn make(&self, path: &str, made: &mut Vec<String>) -> Result<(), NamedError> {
        let root = self.open("", OFlags::PATH | OFlags::DIRECTORY).map_err(|e| self.refused("open", "", e))?;
        let mut above = String::new();
        for part in path.split('/') {
            if !above.is_empty() {
                // On v1 there is no such file; on v2 without the controller above, `doctor` says what is missing.
                let _ = self.write(&format!("{above}/cgroup.subtree_control"), "+io");
                above.push('/');
            }
            above.push_str(part);
            match rustix::fs::mkdirat(&root, &*above, Mode::from_raw_mode(0o755)) {
                Ok(()) => made.push(above.clone()),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.refused("make the group", &above, errno)),
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Errno> {
        let fd = self.open(path, OFlags::WRONLY)?;
        rustix::io::retry_on_intr(|| rustix::io::write(&fd, text.as_bytes())).map(drop)
    }

    /// Opens something beneath the root of the hierarchy, following no link.
    fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let root_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.cgroup_root, root_flags, Mode::empty())?;
        if path.is_empty() {
            return Ok(root);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    fn refused(&self, operation: &'static str, path: &str, errno: Errno) -> NamedError {
        NamedError::Kernel { operation, path: self.cgroup_root.join(Path::new(path)), source: errno.into() }
    }
}

#[cfg(test)]
mod unit_tests {
    use super::{NamedError, NamedGroups, check_name};
    use crate::settings::WriterSettings;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Groups in an ordinary directory: `cgroup.procs` is a file there that somebody has to make.
    fn groups(folder: &std::path::Path) -> NamedGroups {
        let settings = WriterSettings::new(folder.join("run"), folder.join("cgroup"));
        std::fs::create_dir_all(settings.cgroup_root.join("minerva")).unwrap();
        NamedGroups::new(&settings, "minerva")
    }

    #[test]
    fn a_parent_of_our_own_is_dissolved_with_groups_of_which_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups(folder.path());
        let above = folder.path().join("cgroup/minerva");
        std::fs::create_dir(above.join("reader-800")).unwrap();
        assert!(groups.dissolve() && !above.exists(), "left by a process that was killed, and its notes with it");
    }

    #[test]
    fn what_is_no_process_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups(folder.path());
        for pid in [0, 1, 2, u32::MAX, 1 << 31] {
            let error = groups.place("backup", pid, Some(50)).unwrap_err();
            assert!(matches!(error, NamedError::NotAProcess { .. }), "{error}");
        }
        assert!(!folder.path().join("cgroup/minerva/backup").exists() && groups.weights().is_empty());
        let shown = groups.place("backup", 0, None).unwrap_err().to_string();
        assert_eq!(shown, "0 is no process that can be made a tenant: 0 stands for whoever asks, and that is Minerva");
    }

    #[test]
    fn a_thread_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups(folder.path());
        let (number, end) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let thread = std::thread::spawn(move || {
            // PID/task/TID
            number.0.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let _ = end.1.recv();
        });
        let link = number.1.recv().unwrap();
        let thread_number: u32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let error = groups.place("backup", thread_number, Some(50)).unwrap_err();
        assert!(matches!(error, NamedError::NotAProcess { pid, .. } if pid == thread_number), "{error}");
        assert!(error.to_string().contains(&format!("a thread of {}", std::process::id())), "{error}");
        assert!(!folder.path().join("cgroup/minerva/backup").exists() && groups.weights().is_empty());
        drop(end.0);
        thread.join().unwrap();
        let error = groups.place("backup", i32::MAX as u32, None).unwrap_err();
        assert!(matches!(error, NamedError::NoProcess { .. }), "{error}");
    }

    #[test]
    fn forty_that_begin_at_once_keep_each_others_weights() {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups(folder.path());
        let failed = AtomicUsize::new(0);
        let names: Vec<String> = (0..40).map(|number| format!("job-{number}")).collect();
        for name in &names {
            std::fs::create_dir_all(folder.path().join("cgroup/minerva").join(name)).unwrap();
            std::fs::write(folder.path().join("cgroup/minerva").join(name).join("cgroup.procs"), "").unwrap();
        }
        std::thread::scope(|scope| {
            for name in &names {
                let (groups, failed) = (&groups, &failed);
                scope.spawn(move || {
                    if let Err(error) = groups.place(name, std::process::id(), Some(50)) {
                        eprintln!("{name}: {:?}", error);
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    groups.sweep();
                });
            }
        });
        assert_eq!((failed.into_inner(), groups.weights().len()), (0, 40));
    }

    #[test]
    fn groups_of_others_below_the_same_parent_stay_though_they_are_empty() {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups(folder.path());
        let group = |name: &str| folder.path().join("cgroup/minerva").join(name);
        for theirs in ["theirs", "joined"] {
            std::fs::create_dir(group(theirs)).unwrap();
        }
        groups.change_made(|made| made.insert("ours".to_owned())).unwrap();
        groups.change_made(|made| made.insert("removed-by-hand".to_owned())).unwrap();
        std::fs::create_dir(group("ours")).unwrap();
        assert_eq!(groups.sweep(), ["ours"]);
        assert!(group("theirs").exists() && group("joined").exists() && !group("ours").exists());
        assert!(groups.made().is_empty() && !folder.path().join("run/named-made.json").exists());
        // Whoever joins a group that is there does not make it ours.
        std::fs::write(group("joined").join("cgroup.procs"), "").unwrap();
        groups.place("joined", std::process::id(), None).unwrap();
        assert!(groups.made().is_empty());
        // What could not be made is not remembered.
        assert!(
            groups.place("new", std::process::id(), None).is_err(),
            "there is no cgroup.procs in an ordinary directory"
        );
        assert!(groups.made().is_empty() && !group("new").exists());
    }

    #[test]
    fn a_name_is_a_plain_directory_name() {
        for good in ["backup", "a.b_c-1", "X"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "*", "ä", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
