//! What this program finds at a path, for the daemon: that may have other mounts than whoever calls, and is not to work on another.

use minerva_api::v1;
use minerva_linux_background::{Automounts, Kind, Seen};
use std::path::Path;

/// For work of a kind; nothing where this program may not look, or where an automount would let it wait for a disk that may be unplugged:
/// the daemon, which does not open that either, says so.
pub(crate) fn of_path(kind: &str, path: &str) -> Option<v1::PathSeen> {
    let (kind, path) = (Kind::from_word(kind)?, Path::new(path));
    Automounts::read(Path::new("/proc")).check(kind, path).ok()?;
    Some(message(kind.identity(path, Path::new("/sys")).ok()?.seen()))
}

pub(crate) fn message(seen: Seen) -> v1::PathSeen {
    v1::PathSeen { device: seen.device, inode: seen.inode, born_ns: seen.born_ns }
}

#[cfg(test)]
mod tests {
    use super::of_path;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// To open it would wait for as long as the test has the other end of the pipe.
    #[test]
    fn an_automount_whose_disk_is_not_there_is_left_to_the_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("point");
        std::fs::create_dir(&point).unwrap();
        let seen = |kind: &str| of_path(kind, point.to_str().unwrap());
        assert!(seen("delete").is_some(), "nothing is mounted there yet");
        // Of another group of processes than this, whose processes it would not let wait.
        let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let (_reader, pipe) = std::io::pipe().unwrap();
        let options = format!("fd={},pgrp={},minproto=5,maxproto=5,direct", pipe.as_raw_fd(), other.id());
        let options = CString::new(options).unwrap();
        let mounted = mount("minerva-test", &point, "autofs", MountFlags::empty(), Some(options.as_c_str()));
        let outcome = mounted.map(|()| {
            let found = ["delete", "command"].map(seen);
            unmount(&point, UnmountFlags::DETACH).unwrap();
            found
        });
        other.kill().unwrap();
        other.wait().unwrap();
        match outcome {
            Ok(found) => assert_eq!(found, [None, None]),
            Err(errno) => println!("skipped: needs root and autofs: {errno}"),
        }
    }
}
