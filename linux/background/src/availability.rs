//! Whether a kind of work can be done here, and whether what is at its path is still what was meant.

use crate::error::WorkError;
use crate::spec::{FileIdentity, Kind, Spec, refused};
use crate::{balance, defragment, md, scrub, snapshot, trim};
use std::path::Path;

impl Kind {
    /// What is at a path, so that another in its place is not taken for it; a sentence if it is nothing for this kind.
    pub fn identity(self, path: &Path) -> Result<FileIdentity, WorkError> {
        if self == Self::BtrfsSnapshotDelete { snapshot::identity(path) } else { FileIdentity::of(path) }
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
            Kind::Delete => crate::Deletion::begin(&self.path, true).map(drop).map_err(|error| match error {
                crate::DeleteError::Kernel { path, source } => WorkError::Io { operation: "delete", path, source },
                other => WorkError::Refused(other.to_string()),
            }),
            Kind::Command if self.command.is_empty() => refused("a command is needed: -- PROGRAM ARGUMENTS".to_owned()),
            Kind::Command if !self.path.is_dir() => refused(format!("{} is no directory", self.path.display())),
            Kind::Command => Ok(()),
            Kind::BtrfsScrub => scrub::check(&self.path),
            Kind::BtrfsBalance => balance::check(&self.path),
            Kind::BtrfsDefragment => defragment::check(&self.path),
            Kind::BtrfsSnapshotDelete => snapshot::check(&self.path),
            Kind::MdCheck => md::Array::of(&self.path, sys).map(drop),
            Kind::MdResync => md::Array::of(&self.path, sys)?.check_resync(),
            Kind::Fstrim => trim::check(&self.path),
        }
    }

    /// What is at the path is what was there when the operator asked.
    pub(crate) fn is_same(&self) -> Result<(), WorkError> {
        if self.kind.identity(&self.path)? == self.identity {
            return Ok(());
        }
        refused(format!(
            "{} is another than when it was asked for (a link, a mount or a new directory took its place): nothing was done",
            self.path.display()
        ))
    }
}
