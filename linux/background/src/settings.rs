//! Where everything is: the daemon's directories, the hierarchies of groups, and how a worker is started.

use crate::directories::{Groups, QueueDirectories, read};
use crate::groups::mounted;
use crate::processors::Hierarchy;
use crate::run::WorkerProgram;
use crate::worker::Assignment;
use minerva_model::{BackgroundId, CgroupVersion};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The daemon's directory that a reboot empties.
    pub runtime_dir: PathBuf,
    /// The one that is kept.
    pub state_dir: PathBuf,
    /// Root of the hierarchy of the disk controller, and its version.
    pub cgroup_root: PathBuf,
    /// See `cgroup_root`.
    pub version: CgroupVersion,
    /// Group above those of queues, below the root.
    pub parent: String,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
    /// How to start a worker.
    pub worker: WorkerProgram,
}

impl Settings {
    /// The group of a queue below the root of the hierarchy: that in which its worker is, or will be.
    pub fn cgroup(&self, id: BackgroundId) -> String {
        let begun = begun_in(&self.runtime_dir.join("background").join(id.to_string())).filter(Groups::are_there);
        let below = |groups: Groups| Some(groups.io.strip_prefix(&self.cgroup_root).ok()?.to_str()?.to_owned());
        begun.and_then(below).unwrap_or_else(|| self.next_cgroup(id))
    }

    /// In which another worker is begun.
    fn next_cgroup(&self, id: BackgroundId) -> String {
        format!("{}/background-{id}", self.parent)
    }

    /// Numbers of all queues of which anything is left below the daemon's directories, be they known to anybody or not.
    pub fn numbers_left(&self) -> BTreeSet<BackgroundId> {
        let directories = [&self.runtime_dir, &self.state_dir].map(|directory| directory.join("background"));
        let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
        entries.filter_map(|entry| number_of(entry.file_name().to_str()?)).collect()
    }

    /// The command of a queue was begun, now or before a restart. Also of one that has ended.
    pub fn has_begun(&self, id: BackgroundId) -> bool {
        // In which groups its worker is does not matter here.
        let groups = Groups { io: PathBuf::new(), freezer: PathBuf::new(), processors: None };
        QueueDirectories::of(&self.runtime_dir, &self.state_dir, id, groups).has_begun()
    }

    /// Where the worker of a queue is or will be. One that lives, or left its groups, was begun in those: since then the operator may have named
    /// another parent, and earlier versions had these groups among those of named tenants.
    pub(crate) fn place(&self, id: BackgroundId, processors: &Result<Hierarchy, String>) -> QueueDirectories {
        let cgroup = self.next_cgroup(id);
        let groups = Groups {
            io: self.cgroup_root.join(&cgroup),
            freezer: self.freezer_root().join(&cgroup),
            processors: processors.as_ref().ok().map(|hierarchy| hierarchy.group(&cgroup)),
        };
        let mut place = QueueDirectories::of(&self.runtime_dir, &self.state_dir, id, groups);
        if let Some(groups) = begun_in(&place.runtime).filter(|groups| groups.are_there() || place.is_alive()) {
            place.groups = groups;
        }
        place
    }

    pub(crate) fn mounts(&self) -> String {
        fs::read_to_string(self.proc.join("self/mountinfo")).unwrap_or_default()
    }

    /// Root of the unified hierarchy, if there is one.
    pub(crate) fn unified_root(&self) -> Option<PathBuf> {
        let is_all = self.version == CgroupVersion::V2;
        if is_all { Some(self.cgroup_root.clone()) } else { mounted(&self.mounts(), "cgroup2", "") }
    }

    /// Root of a hierarchy that can freeze: the unified one, else the freezer of v1.
    fn freezer_root(&self) -> PathBuf {
        let v1 = || mounted(&self.mounts(), "cgroup", "freezer");
        self.unified_root().or_else(v1).unwrap_or_else(|| self.cgroup_root.clone())
    }
}

/// The groups in which a queue's worker was begun last.
fn begun_in(runtime: &Path) -> Option<Groups> {
    Some(read::<Assignment>(&runtime.join("spec"))?.place.groups)
}

/// The number that a queue's directory is called by.
fn number_of(name: &str) -> Option<BackgroundId> {
    let id = BackgroundId(name.strip_prefix('b')?.parse().ok()?);
    (id.to_string() == name).then_some(id)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Settings;
    use crate::directories::replace;
    use crate::run::WorkerProgram;
    use crate::spec::Kind;
    use crate::worker::{Assignment, Worker};
    use minerva_model::{BackgroundId, CgroupVersion};
    use std::fs;
    use std::path::Path;

    pub(crate) fn settings(root: &Path, parent: &str) -> Settings {
        let worker =
            WorkerProgram { program: "true".into(), name: "true".into(), arguments: Vec::new(), service_starter: None };
        Settings {
            runtime_dir: root.join("run"),
            state_dir: root.join("state"),
            cgroup_root: root.join("cgroup"),
            version: CgroupVersion::V2,
            parent: parent.to_owned(),
            sys: root.join("sys"),
            proc: root.join("proc"),
            worker,
        }
    }

    #[test]
    fn work_stays_in_the_groups_in_which_it_was_begun_as_long_as_they_are_there_and_the_engine_is_told_these() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let spec = Worker::of(root, Kind::Delete, root).spec().clone();
        let (none, id) = (Err(String::new()), spec.id);
        let (before, now) = (settings(root, "minerva"), settings(root, "minerva-background"));
        let place = before.place(id, &none);
        assert_eq!(now.cgroup(id), "minerva-background/background-b1", "nothing was begun");
        replace(&place.runtime.join("spec"), &Assignment { spec, place: place.clone() }, false).unwrap();
        fs::create_dir_all(&place.groups.io).unwrap();
        assert_eq!((now.cgroup(id).as_str(), now.place(id, &none)), ("minerva/background-b1", place.clone()));
        assert_eq!(now.cgroup(BackgroundId(2)), "minerva-background/background-b2");
        fs::remove_dir(&place.groups.io).unwrap();
        assert_eq!(now.cgroup(id), "minerva-background/background-b1");
        assert_eq!(now.place(id, &none).groups.io, root.join("cgroup/minerva-background/background-b1"));
    }
}
