//! Whether a kind of work can be done here.

use crate::error::WorkError;
use crate::spec::{Kind, Spec, refused};
use crate::{balance, defragment, md, scrub, snapshot, trim};
use std::path::Path;

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
}
