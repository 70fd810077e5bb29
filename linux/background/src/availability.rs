//! Whether a kind of work can be done here, and whether what is at its path is still what was meant.

use crate::btrfs::{SUBVOLUME_INODE, has_subvolume};
use crate::error::WorkError;
use crate::facts::Facts;
use crate::identity::{FileIdentity, file_system};
use crate::spec::{Kind, Spec, refused};
use crate::target::{DeleteError, Target, parent};
use crate::{balance, defragment, md, scrub, snapshot, trim};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;

/// How directories are opened.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Kind {
    /// What is at a path, so that another in its place is not taken for it; a sentence if it is nothing for this kind.
    pub fn identity(self, path: &Path, sys: &Path) -> Result<FileIdentity, WorkError> {
        match self {
            Self::Delete => identity_of(&Target::open(path).map_err(|error| not_opened(error, "look at"))?),
            Self::BtrfsSnapshotDelete => snapshot::identity(path),
            Self::MdCheck | Self::MdResync => md::Array::of(path, sys)?.identity(path),
            Self::Command | Self::BtrfsScrub | Self::BtrfsBalance | Self::BtrfsDefragment | Self::Fstrim => {
                let directory = self.open(path).map_err(WorkError::io("open", path))?;
                identity_of_directory(&directory, path)
            }
        }
    }

    /// The directory at a path. Only a command's may be reached by a link.
    fn open(self, path: &Path) -> Result<OwnedFd, Errno> {
        let links = if self == Self::Command { OFlags::empty() } else { OFlags::NOFOLLOW };
        open(path, DIRECTORY | links, Mode::empty())
    }
}

impl Spec {
    /// Looks whether it can be done here.
    ///
    /// # Errors
    /// With a sentence that says why not.
    pub fn check(&self, sys: &Path) -> Result<(), WorkError> {
        if !self.path.is_absolute() {
            return refused(format!("{} is no absolute path", self.path.display()));
        }
        match self.kind {
            Kind::Delete => Target::open(&self.path).map(drop).map_err(|error| not_opened(error, "delete")),
            Kind::Command if self.command.is_empty() => refused("a command is needed: -- PROGRAM ARGUMENTS".to_owned()),
            Kind::Command => Ok(()),
            Kind::BtrfsScrub => scrub::check(&self.path),
            Kind::BtrfsBalance => balance::check(&self.path),
            Kind::BtrfsDefragment => defragment::check(&self.path),
            Kind::BtrfsSnapshotDelete => snapshot::check(&self.path),
            Kind::MdCheck => md::Array::of(&self.path, sys).map(drop),
            Kind::MdResync => md::Array::of(&self.path, sys)?.check_resync(),
            Kind::Fstrim => trim::check(&self.path, sys),
        }
    }

    /// Looks whether what is at the path is what was there when the operator asked. What is to be deleted may be gone. Answers with what it
    /// is known by, which is more than an earlier version recorded.
    ///
    /// # Errors
    /// [`WorkError::Absent`] if another is there, or nothing: its disk may not be mounted.
    pub fn look(&self, sys: &Path) -> Result<FileIdentity, WorkError> {
        match self.kind {
            Kind::Delete | Kind::BtrfsSnapshotDelete => {
                Ok(self.find_target()?.map_or(self.identity, |(identity, _)| identity))
            }
            Kind::Command | Kind::BtrfsScrub | Kind::BtrfsBalance | Kind::BtrfsDefragment | Kind::Fstrim => {
                self.find_directory().map(|(identity, _)| identity)
            }
            Kind::MdCheck | Kind::MdResync => {
                let found = self.kind.identity(&self.path, sys).map_err(|_| self.is_another())?;
                // By its node, which has another inode after each boot, earlier versions knew it.
                let is_known = self.identity.lasting.is_some();
                if is_known && !self.identity.is(&found) { Err(self.is_another()) } else { Ok(found) }
            }
        }
    }

    /// The directory that it is for, if that is what was meant: opened once, for the path may lead to another a moment later.
    pub(crate) fn open(&self) -> Result<OwnedFd, WorkError> {
        self.find_directory().map(|(_, directory)| directory)
    }

    /// A directory of the file system that it works on, if that is mounted; an array's node lies on another. What is to be deleted may be
    /// gone.
    pub(crate) fn open_near(&self) -> Option<OwnedFd> {
        match self.kind {
            Kind::MdCheck | Kind::MdResync => None,
            Kind::Delete | Kind::BtrfsSnapshotDelete => open(parent(&self.path), DIRECTORY, Mode::empty()).ok(),
            kind => kind.open(&self.path).ok(),
        }
    }

    /// What is to be deleted, if that is what was meant; nothing if it is gone.
    pub(crate) fn open_target(&self) -> Result<Option<Target>, WorkError> {
        Ok(self.find_target()?.map(|(_, target)| target))
    }

    fn find_directory(&self) -> Result<(FileIdentity, OwnedFd), WorkError> {
        let directory = match self.kind.open(&self.path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(self.is_another()),
            opened => opened.map_err(WorkError::io("open", &self.path))?,
        };
        let found = identity_of_directory(&directory, &self.path)?;
        if self.identity.is(&found) { Ok((found, directory)) } else { Err(self.is_another()) }
    }

    fn find_target(&self) -> Result<Option<(FileIdentity, Target)>, WorkError> {
        let target = match Target::open(&self.path) {
            Ok(target) => target,
            Err(DeleteError::MountPoint(_)) => return Err(self.is_another()),
            Err(DeleteError::Kernel { source, .. })
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return if self.is_gone() { Ok(None) } else { Err(self.is_another()) };
            }
            Err(error) => return Err(not_opened(error, "delete")),
        };
        let is_snapshot = self.kind == Kind::BtrfsSnapshotDelete;
        let found = if is_snapshot { snapshot::identity_of(&target) } else { identity_of(&target) };
        match found {
            Ok(found) if self.identity.is(&found) => Ok(Some((found, target))),
            Ok(_) | Err(WorkError::Refused(_)) => Err(self.is_another()),
            Err(error) => Err(error),
        }
    }

    /// Nothing is at its path, and the directory that it lay in is there: another of the same file system may have taken that one's place, as
    /// where a bind mount is gone. What an earlier version recorded does not say which that was.
    fn is_gone(&self) -> bool {
        let Some(lasting) = self.identity.lasting else { return false };
        let above = self.path.ancestors().skip(1).find_map(|above| open(above, DIRECTORY, Mode::empty()).ok());
        let Some(above) = above else { return false };
        let Ok((file_system, subvolume)) = file_system(&above) else { return false };
        if file_system != lasting.file_system {
            return false;
        }
        // Nothing but a btrfs has subvolumes, and all of theirs have one inode.
        let is_subvolume = lasting.subvolume != 0 && self.identity.inode == SUBVOLUME_INODE;
        if self.kind == Kind::BtrfsSnapshotDelete || is_subvolume {
            // It lies in another, which may not be mounted where it was.
            return has_subvolume(&above, lasting.subvolume) == Ok(false);
        }
        let is_the_one = |inode| Facts::of(&above).is_ok_and(|above| above.inode == inode);
        subvolume == lasting.subvolume && self.identity.parent_inode.is_none_or(is_the_one)
    }

    /// Another is at the path, or nothing.
    pub(crate) fn is_another(&self) -> WorkError {
        WorkError::Absent(format!(
            "{} is not what it was when it was asked for (its disk is not mounted, or a link, a mount or a new directory took its place): \
             nothing is done until it is, or until this is removed",
            self.path.display()
        ))
    }
}

fn identity_of_directory(directory: &OwnedFd, path: &Path) -> Result<FileIdentity, WorkError> {
    let facts = Facts::of(directory).map_err(WorkError::io("look at", path))?;
    FileIdentity::of(&facts, directory, path)
}

fn identity_of(target: &Target) -> Result<FileIdentity, WorkError> {
    let parent = Facts::of(&target.parent).map_err(WorkError::io("look at", parent(&target.path)))?;
    let found = FileIdentity::of(&target.facts, target.directory.as_ref().unwrap_or(&target.parent), &target.path)?;
    Ok(FileIdentity { parent_inode: Some(parent.inode), ..found })
}

fn not_opened(error: DeleteError, operation: &'static str) -> WorkError {
    match error {
        DeleteError::Kernel { path, source } => WorkError::Io { operation, path, source },
        other => WorkError::Refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::WorkError;
    use crate::loop_disk::{LoopDisk, run};
    use crate::spec::{Kind, Spec};
    use crate::worker::Worker;
    use std::fs;
    use std::path::Path;

    fn look(spec: &Spec) -> Result<bool, WorkError> {
        spec.open_target().map(|target| target.is_some())
    }

    /// Home directories are often a subvolume of the same btrfs as the root, mounted in it.
    #[test]
    fn a_subvolume_below_one_that_is_not_mounted_is_not_gone() {
        let Some(disk) = LoopDisk::new(&["mkfs.btrfs", "-q", "-f"]) else { return };
        let (subvolume, home) = (disk.mounted.join("@home"), disk.mounted.join("home"));
        run("btrfs", &["subvolume", "create"], &subvolume);
        run("btrfs", &["subvolume", "create"], &subvolume.join("tree"));
        run("btrfs", &["subvolume", "snapshot", subvolume.to_str().unwrap()], &subvolume.join("old"));
        fs::create_dir(&home).unwrap();
        run("mount", &["--bind", subvolume.to_str().unwrap()], &home);
        let kinds = [(Kind::BtrfsSnapshotDelete, "old"), (Kind::Delete, "tree")];
        let specs = kinds.map(|(kind, name)| Worker::of(disk.root(), kind, &home.join(name)).spec().clone());
        assert!(specs.iter().all(|spec| matches!(look(spec), Ok(true))));
        run("umount", &[], &home);
        for spec in &specs {
            assert!(matches!(look(spec), Err(WorkError::Absent(_))), "{:?}", spec.kind);
        }
        for (_, name) in kinds {
            run("btrfs", &["-q", "subvolume", "delete"], &subvolume.join(name));
        }
        for spec in &specs {
            assert!(matches!(look(spec), Ok(false)), "{:?}", spec.kind);
        }
    }

    /// A bind mount is of the same file system as what it lies on.
    #[test]
    fn what_lies_below_a_bind_mount_that_is_gone_is_not_gone_itself() {
        let Some(disk) = LoopDisk::new(&["mkfs.ext4", "-q", "-F"]) else { return };
        let (data, served) = (disk.mounted.join("data"), disk.mounted.join("served"));
        fs::create_dir_all(data.join("old/inner")).unwrap();
        fs::create_dir(&served).unwrap();
        run("mount", &["--bind", data.to_str().unwrap()], &served);
        // Of both the mount goes, and with it the directory that the second one lies in.
        let specs = ["old", "old/inner"].map(|name| {
            let worker = Worker::of(disk.root(), Kind::Delete, &served.join(name));
            worker.spec().clone()
        });
        assert!(specs.iter().all(|spec| matches!(look(spec), Ok(true))));
        run("umount", &[], &served);
        for spec in &specs {
            assert!(matches!(look(spec), Err(WorkError::Absent(_))), "{}", spec.path.display());
        }
        run("mount", &["--bind", data.to_str().unwrap()], &served);
        fs::remove_dir(data.join("old/inner")).unwrap();
        assert!(matches!(look(&specs[1]), Ok(false)), "what it lay in is there, and it is not");
        fs::remove_dir(data.join("old")).unwrap();
        assert!(matches!(look(&specs[0]), Ok(false)));
        run("umount", &[], &served);
    }

    #[test]
    fn what_an_earlier_version_recorded_and_is_not_there_is_not_taken_for_gone() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut worker = Worker::of(root.path(), Kind::Delete, &tree);
        fs::remove_dir(&tree).unwrap();
        assert!(worker.spec().look(Path::new("/sys")).is_ok(), "its file system is there, and it is not on it");
        worker.spec_mut().identity.lasting = None;
        assert!(matches!(worker.spec().look(Path::new("/sys")), Err(WorkError::Absent(_))));
    }
}
