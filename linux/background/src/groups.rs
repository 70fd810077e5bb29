//! Finding hierarchies; making and removing groups.

use crate::error::WorkError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Makes a group and those above it. Where the unified hierarchy has the disk controller it is passed down.
pub(crate) fn make(group: &Path) -> Result<(), WorkError> {
    if group.is_dir() {
        return Ok(());
    }
    if let Some(above) = group.parent() {
        make(above)?;
        // There is no such file on v1, and no such controller on the unified half of a hybrid host.
        let _ = fs::write(above.join("cgroup.subtree_control"), "+io");
    }
    match fs::create_dir(group) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(WorkError::io("make the group", group)(error)),
        _ => Ok(()),
    }
}

/// Removes a group without processes, and the one above it if nothing else is in that; whether it is gone.
pub(crate) fn remove(group: &Path) -> bool {
    let is_gone = fs::remove_dir(group).is_ok() || !group.exists();
    if let Some(above) = group.parent().filter(|_| is_gone) {
        // The kernel keeps one that others are in.
        let _ = fs::remove_dir(above);
    }
    is_gone
}

/// Where a hierarchy with an option is mounted (proc(5), mountinfo).
pub(crate) fn mounted(mountinfo: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut words = right.split(' ');
        let is_it = words.next()? == kind && words.nth(1)?.split(',').any(|word| option.is_empty() || word == option);
        is_it.then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}
