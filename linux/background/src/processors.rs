//! Confining the processes of a queue to some of the host's processors: the cpuset controller (Documentation/admin-guide/cgroup-v2.rst,
//! cgroup-v1/cpusets.rst).
//!
//! What the group held before it was first narrowed is written down, synced, and put back when the daemon ends, by the guard when it dies, or
//! by `minerva-ctl restore`.

use crate::directories::{QueueDirectories, read, replace};
use crate::error::WorkError;
use crate::worker::Assignment;
use minerva_model::CgroupVersion;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const CPUS: &str = "cpuset.cpus";
/// Where work is not confined to fewer processors than there are.
const KEPT: &str = "processors";

/// What the file of a group held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    cpus: String,
}

/// A group of processes that was confined, and is no more or could not be freed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorsLeft {
    /// The group.
    pub path: PathBuf,
    /// Why it could not; nothing if it was.
    pub error: Option<String>,
}

/// The hierarchy in which groups are confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    root: PathBuf,
    version: CgroupVersion,
}

impl Hierarchy {
    /// The one of this host. Errors: a sentence for people.
    pub(crate) fn find(unified: Option<&Path>, mountinfo: &str) -> Result<Self, String> {
        if let Some(root) = unified.filter(|root| has_controller(root)) {
            return Ok(Self { root: root.to_owned(), version: CgroupVersion::V2 });
        }
        let mounted = crate::groups::mounted(mountinfo, "cgroup", "cpuset");
        let root = mounted.ok_or("the cpuset controller is neither delegated to Minerva nor mounted")?;
        Ok(Self { root, version: CgroupVersion::V1 })
    }

    /// The group of a queue in it.
    pub(crate) fn group(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Makes a group in which processes may be put: on v1 it must be told of processors and memory first.
    pub(crate) fn make(&self, group: &Path) -> Result<(), WorkError> {
        if group == self.root {
            return Ok(());
        }
        let above = group.parent().unwrap_or(&self.root);
        self.make(above)?;
        if self.version == CgroupVersion::V2 {
            let path = above.join("cgroup.subtree_control");
            fs::write(&path, "+cpuset").map_err(WorkError::io("write", &path))?;
            return crate::groups::make(group);
        }
        crate::groups::make(group)?;
        for file in [CPUS, "cpuset.mems"] {
            let path = group.join(file);
            if text(&path)?.is_empty() {
                fs::write(&path, text(&above.join(file))?).map_err(WorkError::io("write", &path))?;
            }
        }
        Ok(())
    }

    /// The processors that a group may be given, ascending.
    pub(crate) fn available(&self, group: &Path) -> Result<Vec<u32>, WorkError> {
        let above = group.parent().unwrap_or(&self.root);
        let file = if self.version == CgroupVersion::V2 { "cpuset.cpus.effective" } else { CPUS };
        let path = above.join(file);
        let text = text(&path)?;
        parse(&text).ok_or_else(|| WorkError::Refused(format!("{} holds no processors: '{text}'", path.display())))
    }
}

fn has_controller(root: &Path) -> bool {
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    controllers.split_whitespace().any(|controller| controller == "cpuset")
}

/// Confines the group of a queue to the last `count` of those that are available, and says to which. The last, because whoever is bound to
/// few by hand is mostly bound to the first.
pub(crate) fn confine(place: &QueueDirectories, hierarchy: &Hierarchy, count: u32) -> Result<String, WorkError> {
    let Some(group) = &place.groups.processors else {
        return Err(WorkError::Refused("it was begun in no group that can be confined".to_owned()));
    };
    let available = hierarchy.available(group)?;
    let first = available.len().saturating_sub((count as usize).max(1));
    let wanted = render(&available[first..]);
    let path = group.join(CPUS);
    let held = text(&path)?;
    if parse(&held).as_deref() != Some(&available[first..]) {
        let kept = place.runtime.join(KEPT);
        if !kept.exists() {
            replace(&kept, &Held { cpus: held }, true)?;
        }
        fs::write(&path, &wanted).map_err(WorkError::io("write", &path))?;
    }
    Ok(wanted)
}

/// Puts back what a queue's group held. A group that is gone holds nothing.
pub(crate) fn free(place: &QueueDirectories) -> Result<(), WorkError> {
    let kept = place.runtime.join(KEPT);
    let (Some(held), Some(group)) = (read::<Held>(&kept), &place.groups.processors) else { return Ok(()) };
    let path = group.join(CPUS);
    if group.exists() {
        // An empty write would not reach the kernel; on v2 a blank one means "as above".
        let mut back = fs::write(&path, format!("{}\n", held.cpus));
        if back.is_err() && held.cpus.is_empty() {
            // Kernels that refuse a blank one while there are processes (ENOSPC): all that there are above is the same.
            let above = group.parent().unwrap_or(group).join("cpuset.cpus.effective");
            back = fs::write(&path, text(&above)?);
        }
        back.map_err(WorkError::io("write", &path))?;
    }
    fs::remove_file(&kept).map_err(WorkError::io("remove", &kept))
}

/// Frees the groups that a daemon left confined when it was killed. Repeating it does no harm.
pub fn put_processors_back(runtime_dir: &Path) -> Vec<ProcessorsLeft> {
    let mut left = Vec::new();
    for entry in fs::read_dir(runtime_dir.join("background")).into_iter().flatten().flatten() {
        let directory = entry.path();
        let Some(assignment) = read::<Assignment>(&directory.join("spec")) else { continue };
        if !directory.join(KEPT).exists() {
            continue;
        }
        let path = assignment.place.groups.processors.clone().unwrap_or_default();
        let error = free(&assignment.place).err().map(|error| error.in_full());
        left.push(ProcessorsLeft { path, error });
    }
    left.sort_by(|a, b| a.path.cmp(&b.path));
    left
}

fn text(path: &Path) -> Result<String, WorkError> {
    let text = fs::read_to_string(path).map_err(WorkError::io("read", path))?;
    Ok(text.trim().to_owned())
}

/// "0-1,4" as its numbers, ascending; `None` if there are none.
fn parse(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        all.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    (!all.is_empty()).then_some(all)
}

fn render(processors: &[u32]) -> String {
    let all: Vec<String> = processors.iter().map(u32::to_string).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::{Hierarchy, confine, free, parse, put_processors_back};
    use crate::directories::{Groups, QueueDirectories, replace};
    use crate::identity::FileIdentity;
    use crate::spec::{Found, Kind, Spec};
    use crate::worker::Assignment;
    use minerva_model::{BackgroundId, CgroupVersion};
    use std::fs;
    use std::path::Path;

    fn place(root: &Path, group: &Path) -> QueueDirectories {
        let groups = Groups { io: root.join("io"), freezer: root.join("freezer"), processors: Some(group.to_owned()) };
        let place = QueueDirectories::of(&root.join("run"), &root.join("state"), BackgroundId(1), groups);
        place.make().unwrap();
        place
    }

    #[test]
    fn lists_of_processors_are_read_and_what_is_none_is_not() {
        assert_eq!(parse("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        for none in ["", "\n", "a", "0-", "3-1"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_group_gets_the_last_processors_and_what_it_held_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("above/group");
        fs::create_dir_all(&group).unwrap();
        fs::write(root.path().join("above/cpuset.cpus"), "0-3\n").unwrap();
        fs::write(group.join("cpuset.cpus"), "0-3\n").unwrap();
        let hierarchy = Hierarchy { root: root.path().to_owned(), version: CgroupVersion::V1 };
        let place = place(root.path(), &group);
        let held = || fs::read_to_string(group.join("cpuset.cpus")).unwrap();
        assert_eq!(confine(&place, &hierarchy, 9).unwrap(), "0,1,2,3");
        assert_eq!(held(), "0-3\n", "what is as it should be is not written");
        assert_eq!(confine(&place, &hierarchy, 2).unwrap(), "2,3");
        assert_eq!(confine(&place, &hierarchy, 0).unwrap(), "3", "never none");
        assert_eq!(held(), "3");
        free(&place).unwrap();
        assert_eq!(held().trim(), "0-3", "what it held before the first change");
        fs::write(group.join("cpuset.cpus"), "1").unwrap();
        free(&place).unwrap();
        assert_eq!(held(), "1", "once");
    }

    #[test]
    fn groups_of_a_killed_daemon_are_freed_without_one_and_the_rest_is_told() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("above/group");
        fs::create_dir_all(&group).unwrap();
        fs::write(root.path().join("above/cpuset.cpus"), "0-3").unwrap();
        fs::write(group.join("cpuset.cpus"), "0-3").unwrap();
        let hierarchy = Hierarchy { root: root.path().to_owned(), version: CgroupVersion::V1 };
        let (place, run) = (place(root.path(), &group), root.path().join("run"));
        let spec = Spec {
            id: BackgroundId(1),
            name: "one".to_owned(),
            kind: Kind::Command,
            path: root.path().to_owned(),
            identity: FileIdentity { device: 1, inode: 2, lasting: None, parent_inode: None },
            command: Vec::new(),
            never_stop: false,
            position: 0,
            found: Found::default(),
            used_percent_max: 50,
        };
        replace(&place.runtime.join("spec"), &Assignment { spec, place: place.clone() }, false).unwrap();
        assert_eq!(put_processors_back(&run), [], "nothing was confined");
        confine(&place, &hierarchy, 1).unwrap();
        let left = put_processors_back(&run);
        assert!(left.len() == 1 && left[0].error.is_none() && left[0].path == group, "{left:?}");
        assert_eq!(fs::read_to_string(group.join("cpuset.cpus")).unwrap().trim(), "0-3");
        assert_eq!(put_processors_back(&run), [], "once");
    }

    #[test]
    fn a_host_without_the_controller_says_so() {
        let why = Hierarchy::find(None, "25 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n").unwrap_err();
        assert!(why.contains("neither delegated to Minerva nor mounted"), "{why}");
        let v1 = "26 1 0:23 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let found = Hierarchy::find(None, v1).unwrap();
        assert_eq!(found.group("minerva/b1"), Path::new("/sys/fs/cgroup/cpuset/minerva/b1"));
        let unified = tempfile::tempdir().unwrap();
        fs::write(unified.path().join("cgroup.controllers"), "cpuset cpu io\n").unwrap();
        assert_eq!(Hierarchy::find(Some(unified.path()), v1).unwrap().version, CgroupVersion::V2);
    }
}
