//! Paths that lead to an automount on which nothing is mounted: whoever opens one waits until its disk is there, which is for ninety seconds
//! where that is unplugged. The threads that steer disks have no such time, so they look such a path up in the table of mounts first.

use crate::error::WorkError;
use crate::spec::Kind;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// More links than the kernel follows.
const STEPS_MAX: usize = 1_000;

/// The table of mounts, as far as it says where an automount waits.
#[derive(Clone, Debug, Default)]
pub struct Automounts {
    /// Automounts, and what is mounted on or below them, in the order of the table, in which a mount on the place of an earlier one comes
    /// later. A host may have thousands of others.
    mounts: Vec<(PathBuf, bool)>,
}

impl Automounts {
    /// Reads the table below `/proc`. Where that cannot be read none is known.
    pub fn read(proc: &Path) -> Self {
        let table = fs::read(proc.join("self/mountinfo")).unwrap_or_default();
        Self::parsed(&String::from_utf8_lossy(&table))
    }

    /// See proc(5), mountinfo.
    fn parsed(table: &str) -> Self {
        let is_automount = |line: &str| line.contains(" - autofs ");
        let automounts: Vec<PathBuf> = table
            .lines()
            .filter(|line| is_automount(line))
            .filter_map(point)
            .map(|point| point.into_owned().into())
            .collect();
        if automounts.is_empty() {
            return Self::default();
        }
        let row = |line: &str| {
            let point = point(line)?;
            let is_there = automounts.iter().any(|automount| Path::new(&*point).starts_with(automount));
            is_there.then(|| (PathBuf::from(point.into_owned()), is_automount(line)))
        };
        Self { mounts: table.lines().filter_map(row).collect() }
    }

    /// Looks whether a path of a kind of work can be opened without waiting for a disk.
    ///
    /// # Errors
    /// [`WorkError::Absent`] if an automount waits there.
    pub fn check(&self, kind: Kind, path: &Path) -> Result<(), WorkError> {
        // What is to be deleted is not followed if it is a link.
        let Some(point) = self.awaited(path, !kind.removes_path()) else { return Ok(()) };
        Err(WorkError::Absent(format!(
            "nothing is mounted on {}, where an automount waits for its disk",
            point.display()
        )))
    }

    /// The automount that would be waited for, also where links lead there.
    fn awaited(&self, path: &Path, follows_last: bool) -> Option<&Path> {
        if self.mounts.is_empty() {
            return None;
        }
        let (mut at, mut rest) = (PathBuf::from("/"), names(path));
        for _ in 0..STEPS_MAX {
            let name = rest.pop()?;
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let whole = rest.iter().rev().fold(next.clone(), |whole, name| whole.join(name));
            let over = self.mounts.iter().filter(|(point, _)| whole.starts_with(point));
            if let Some((point, true)) = over.max_by_key(|(point, _)| point.components().count())
                && next.starts_with(point)
            {
                return Some(point);
            }
            if rest.is_empty() && !follows_last {
                return None;
            }
            match fs::read_link(&next) {
                Ok(target) => {
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    rest.extend(names(&target));
                }
                // No link, or not there.
                Err(_) => at = next,
            }
        }
        None
    }
}

/// Where a row of the table is mounted.
fn point(row: &str) -> Option<Cow<'_, str>> {
    let escaped = row.split(' ').nth(4)?;
    if !escaped.contains('\\') {
        return Some(escaped.into());
    }
    let plain = escaped.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
    Some(plain.into())
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::Automounts;
    use crate::error::WorkError;
    use crate::spec::Kind;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn what_lies_below_an_automount_waits_unless_something_is_mounted_on_it_or_below() {
        let mounts = Automounts::parsed(
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             21 20 0:30 / /media/a\\040disk rw - autofs systemd-1 rw,direct\n\
             22 20 0:31 / /net rw - autofs /etc/auto.net rw,indirect\n\
             23 22 0:32 / /net/host rw - ext4 /dev/sdb1 rw\n\
             24 20 0:33 / /usb rw - autofs systemd-1 rw,direct\n\
             25 24 8:33 / /usb rw - ext4 /dev/sdc1 rw\n",
        );
        let waits = |path: &str| mounts.awaited(Path::new(path), true).map(|point| point.to_str().unwrap().to_owned());
        for path in ["/media/a disk", "/media/a disk/tree", "/media/../media/a disk/x"] {
            assert_eq!(waits(path).as_deref(), Some("/media/a disk"), "{path}");
        }
        assert_eq!(waits("/net/other/tree").as_deref(), Some("/net"));
        for path in ["/", "/media", "/media/a disk 2", "/net/host/tree", "/usb", "/usb/tree"] {
            assert_eq!(waits(path), None, "{path}");
        }
        assert_eq!(mounts.mounts.len(), 5, "what is mounted elsewhere is not looked through");
    }

    /// Without asking the table first this waits for as long as the test has the other end of the pipe.
    #[test]
    fn a_real_automount_is_not_opened_also_where_a_link_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().join("point");
        fs::create_dir(&point).unwrap();
        symlink(&point, folder.path().join("link")).unwrap();
        // Of another group of processes than this, whose processes it would not let wait.
        let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let (_reader, pipe) = std::io::pipe().unwrap();
        let options = format!("fd={},pgrp={},minproto=5,maxproto=5,direct", pipe.as_raw_fd(), other.id());
        let options = CString::new(options).unwrap();
        let mounted = mount("minerva-test", &point, "autofs", MountFlags::empty(), Some(options.as_c_str()));
        let outcome = mounted.map(|()| {
            let mounts = Automounts::read(Path::new("/proc"));
            let check = |kind, path: &str| mounts.check(kind, &folder.path().join(path));
            let waiting = [(Kind::Fstrim, "point"), (Kind::Delete, "point/tree"), (Kind::Command, "link")];
            let all = waiting.map(|(kind, path)| matches!(check(kind, path), Err(WorkError::Absent(_))));
            let link = check(Kind::Delete, "link").is_ok();
            unmount(&point, UnmountFlags::DETACH).unwrap();
            (all, link)
        });
        other.kill().unwrap();
        other.wait().unwrap();
        match outcome {
            Ok(found) => assert_eq!(found, ([true; 3], true)),
            Err(errno) => println!("skipped: needs root and autofs: {errno}"),
        }
    }
}
