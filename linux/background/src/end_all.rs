//! Ending all work where Minerva goes from a host: nobody would let it go on, and a later daemon begins its numbers anew.

use crate::directories::read;
use crate::error::WorkError;
use crate::freezer::Freezer;
use crate::worker::Assignment;
use std::fs;
use std::path::Path;

/// Ends every process of background work below a directory, also what is frozen; what could not be ended, if anything. Nothing is looked up of
/// the daemon: the caller knows that it is gone.
pub fn end_all(runtime_dir: &Path) -> Vec<WorkError> {
    let queues = fs::read_dir(runtime_dir.join("background")).into_iter().flatten().flatten();
    let assignments = queues.filter_map(|queue| read::<Assignment>(&queue.path().join("spec")));
    let freezers = assignments.map(|assignment| Freezer::at(&assignment.place.groups.freezer));
    // Of most the group is gone with the last process.
    freezers.filter(|freezer| freezer.is_set().is_some()).filter_map(|freezer| freezer.kill().err()).collect()
}

#[cfg(test)]
mod tests {
    use super::end_all;
    use crate::directories::replace;
    use crate::freezer::Freezer;
    use crate::spec::Kind;
    use crate::worker::{Assignment, Worker};
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn frozen_work_of_a_daemon_that_goes_for_ever_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(end_all(&root.join("run")).is_empty(), "there never was any");
        let hierarchies = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"].map(Path::new);
        for hierarchy in hierarchies.into_iter().filter(|root| root.join("cgroup.procs").exists()) {
            let Assignment { spec, mut place } = Worker::of(root, Kind::Delete, root).assignment().clone();
            place.groups.freezer = hierarchy.join(format!("minerva-test-end-{}", std::process::id()));
            let freezer = Freezer::at(&place.groups.freezer);
            if freezer.make_frozen().is_err() {
                println!("skipped: needs root, and a hierarchy that can freeze");
                continue;
            }
            let mut sleeping = Command::new("sleep").arg("600").spawn().unwrap();
            fs::write(place.groups.freezer.join("cgroup.procs"), sleeping.id().to_string()).unwrap();
            replace(&place.runtime.join("spec"), &Assignment { spec, place: place.clone() }, false).unwrap();
            let failed = end_all(&root.join("run"));
            // Also where it was not ended: it does not outlive the test.
            let _ = sleeping.kill();
            let _ = freezer.set(false);
            assert_eq!(sleeping.wait().unwrap().signal(), Some(9));
            assert!(failed.is_empty(), "{hierarchy:?}: {failed:?}");
            while !freezer.remove() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert!(end_all(&root.join("run")).is_empty(), "its group is gone");
        }
    }
}
