//! md arrays that a daemon left slowed when it was killed: their speeds are put back without one.

use crate::directories::read;
use crate::error::WorkError;
use crate::freezer::Freezer;
use crate::md::{Array, Speeds};
use crate::spec::Kind;
use crate::worker::Assignment;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// An array whose speeds were put back, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayLeft {
    /// Its device.
    pub path: PathBuf,
    /// Why they could not; nothing if they were.
    pub error: Option<String>,
}

/// Puts back what arrays' speeds were before background work slowed them, as the files say in which that was written before the first
/// change. A check that background work began is ended, because at those speeds nobody would hold it back from others; the kernel goes on
/// where it was when the next daemon begins it again. A resync goes on. Repeating it does no harm.
pub fn put_arrays_back(runtime_dir: &Path, sys: &Path) -> Vec<ArrayLeft> {
    let mut arrays = Vec::new();
    for entry in fs::read_dir(runtime_dir.join("background")).into_iter().flatten().flatten() {
        let directory = entry.path();
        let (Some(speeds), Some(assignment)) =
            (read::<Speeds>(&directory.join("speeds")), read::<Assignment>(&directory.join("spec")))
        else {
            continue;
        };
        let put_back = || {
            let array = Array::of(&assignment.spec.path, sys)?;
            if assignment.spec.kind == Kind::MdCheck && assignment.place.has_check() {
                end_check(&assignment, &array)?;
                // One that runs from now on is somebody else's.
                assignment.place.forget_check();
            }
            array.put_back(&speeds)
        };
        let error = put_back().err().map(|error| error.in_full());
        if error.is_none() {
            // Else a later restore puts the same back once more.
            let _ = fs::remove_file(directory.join("speeds"));
        }
        arrays.push(ArrayLeft { path: assignment.spec.path, error });
    }
    arrays.sort_by(|a, b| a.path.cmp(&b.path));
    arrays
}

/// The worker first: it would take the end for that of the whole check.
fn end_check(assignment: &Assignment, array: &Array) -> Result<(), WorkError> {
    if assignment.place.is_alive() {
        Freezer::at(&assignment.place.groups.freezer).kill()?;
    }
    array.end()
}

#[cfg(test)]
mod tests {
    use super::put_arrays_back;
    use crate::directories::{Groups, QueueDirectories, replace};
    use crate::identity::FileIdentity;
    use crate::md::Array;
    use crate::spec::{Found, Kind, Spec};
    use crate::worker::Assignment;
    use minerva_model::BackgroundId;
    use std::fs;
    use std::path::Path;

    /// An array below `sys` that work of a kind has slowed; its daemon and its worker are gone.
    fn slowed(root: &Path, id: u32, kind: Kind, action: &str) -> QueueDirectories {
        let (sys, name) = (root.join("sys"), format!("md{id}"));
        let knobs = sys.join("block").join(&name).join("md");
        fs::create_dir_all(&knobs).unwrap();
        for (file, text) in [("sync_action", action), ("sync_speed_min", "1000 (system)"), ("sync_speed_max", "5000")] {
            fs::write(knobs.join(file), format!("{text}\n")).unwrap();
        }
        fs::write(root.join(&name), "").unwrap();
        let groups = Groups { io: root.join("io"), freezer: root.join("freezer"), processors: None };
        let place = QueueDirectories::of(&root.join("run"), &root.join("state"), BackgroundId(id), groups);
        place.make().unwrap();
        let spec = Spec {
            id: BackgroundId(id),
            name: name.clone(),
            kind,
            path: root.join(&name),
            identity: FileIdentity { device: 1, inode: 2, lasting: None, parent_inode: None },
            command: Vec::new(),
            never_stop: false,
            position: 0,
            found: Found::default(),
            used_percent_max: 50,
        };
        let array = Array::of(&spec.path, &sys).unwrap();
        replace(&place.runtime.join("speeds"), &array.speeds().unwrap(), true).unwrap();
        array.stop().unwrap();
        replace(&place.runtime.join("spec"), &Assignment { spec, place: place.clone() }, false).unwrap();
        place
    }

    #[test]
    fn speeds_of_arrays_are_put_back_without_a_daemon_and_a_check_of_ours_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let (run, sys) = (root.join("run"), root.join("sys"));
        assert_eq!(put_arrays_back(&run, &sys), [], "nothing ever ran");
        let ours = slowed(root, 1, Kind::MdCheck, "check");
        ours.begin_check().unwrap();
        slowed(root, 2, Kind::MdResync, "resync");
        slowed(root, 3, Kind::MdCheck, "idle");
        fs::remove_file(root.join("md3")).unwrap();
        // Begun by somebody else before the work was.
        slowed(root, 4, Kind::MdCheck, "check");
        let knob = |id: u32, file: &str| fs::read_to_string(sys.join(format!("block/md{id}/md/{file}"))).unwrap();
        assert_eq!(knob(1, "sync_speed_max"), "1", "slowed");
        let left = put_arrays_back(&run, &sys);
        assert_eq!(left.len(), 4);
        assert!([0, 1, 3].iter().all(|at| left[*at].error.is_none()), "{left:?}");
        assert!(left[2].error.as_ref().is_some_and(|error| error.contains("find")), "the array is gone: {left:?}");
        for id in [1, 2, 4] {
            assert_eq!((knob(id, "sync_speed_min"), knob(id, "sync_speed_max")), ("system".into(), "5000".into()));
        }
        assert_eq!(knob(1, "sync_action"), "idle", "nobody would hold it back");
        assert!(!ours.has_check(), "the next one may be somebody else's");
        assert_eq!(knob(4, "sync_action"), "check\n", "it is not ours");
        assert_eq!(knob(2, "sync_action"), "resync\n", "until its end a disk that fails takes data along");
        assert_eq!(put_arrays_back(&run, &sys).len(), 1, "once more only what failed");
    }
}
