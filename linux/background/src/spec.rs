//! What background work is: its kind, its path, and whether it can be done here.

use crate::error::WorkError;
use minerva_model::{BackgroundHold, BackgroundId};
use rustix::fs::{AtFlags, CWD, statat};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Deletes a file, or a directory with all that is in it.
    Delete,
    /// Runs a command.
    Command,
    /// Reads all of a btrfs and compares it with its checksums.
    BtrfsScrub,
    /// Reads all of an md array and compares its copies.
    MdCheck,
    /// Tells the disk which blocks of a file system are unused.
    Fstrim,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Delete, Self::Command, Self::BtrfsScrub, Self::MdCheck, Self::Fstrim];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Command => "command",
            Self::BtrfsScrub => "btrfs-scrub",
            Self::MdCheck => "md-check",
            Self::Fstrim => "fstrim",
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// What its items are.
    pub const fn items(self) -> &'static str {
        match self {
            Self::Delete => "entries",
            Self::Command => "seconds",
            Self::BtrfsScrub | Self::Fstrim | Self::MdCheck => "bytes",
        }
    }

    /// Before anything was measured: seconds for an item.
    pub const fn seconds_per_item(self) -> f64 {
        match self {
            Self::Delete => 1e-3,
            Self::Command => 1.0,
            Self::BtrfsScrub | Self::MdCheck => 1e-8,
            Self::Fstrim => 1e-9,
        }
    }

    /// Its requests are made by threads of the kernel, which are in the root group.
    pub(crate) const fn works_in_kernel(self) -> bool {
        matches!(self, Self::BtrfsScrub | Self::MdCheck | Self::Fstrim)
    }

    /// Once begun and lost, it is begun again where it was; a command may have done anything.
    pub const fn can_be_repeated(self) -> bool {
        !matches!(self, Self::Command)
    }
}

/// A file or directory, so that another in its place is not taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Of the file system.
    pub device: u64,
    /// In it.
    pub inode: u64,
}

impl FileIdentity {
    /// What is at a path now; a link is not followed.
    pub fn of(path: &Path) -> Result<Self, WorkError> {
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(WorkError::io("look at", path))?;
        Ok(Self { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its number.
    pub id: BackgroundId,
    /// The operator's name for it.
    pub name: String,
    /// What.
    pub kind: Kind,
    /// Where: the tree to delete, the mount, the array; of a command the directory that it runs in.
    pub path: PathBuf,
    /// What was at the path when the operator asked.
    pub identity: FileIdentity,
    /// Of a command: the program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Of a command: it must not be stopped, because others may wait for what it holds.
    #[serde(default)]
    pub never_stop: bool,
    /// Where to go on, as the kind counts: the position that was last reported.
    #[serde(default)]
    pub position: u64,
}

impl Spec {
    /// How it is kept from the disk.
    pub const fn hold(&self) -> BackgroundHold {
        if self.never_stop { BackgroundHold::Cap } else { BackgroundHold::Stop }
    }

    /// What is at the path is what was there when the operator asked.
    pub(crate) fn is_same(&self) -> Result<(), WorkError> {
        if FileIdentity::of(&self.path)? == self.identity {
            return Ok(());
        }
        refused(format!(
            "{} is another than when it was asked for (a link, a mount or a new directory took its place): nothing was done",
            self.path.display()
        ))
    }
}

pub(crate) fn refused(why: String) -> Result<(), WorkError> {
    Err(WorkError::Refused(why))
}
