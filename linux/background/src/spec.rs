//! What background work is: its kind, its path, and whether it can be done here.

use crate::error::WorkError;
use crate::identity::FileIdentity;
use minerva_model::{BackgroundHold, BackgroundId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
    /// Moves together what is in little used chunks of a btrfs.
    BtrfsBalance,
    /// Writes the files of a btrfs anew that lie in many pieces.
    BtrfsDefragment,
    /// Deletes a snapshot of a btrfs.
    BtrfsSnapshotDelete,
    /// Reads all of an md array and compares its copies.
    MdCheck,
    /// Paces the resync or recovery of an md array, which the kernel began by itself.
    MdResync,
    /// Tells the disk which blocks of a file system are unused.
    Fstrim,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Delete,
        Self::Command,
        Self::BtrfsScrub,
        Self::BtrfsBalance,
        Self::BtrfsDefragment,
        Self::BtrfsSnapshotDelete,
        Self::MdCheck,
        Self::MdResync,
        Self::Fstrim,
    ];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Command => "command",
            Self::BtrfsScrub => "btrfs-scrub",
            Self::BtrfsBalance => "btrfs-balance",
            Self::BtrfsDefragment => "btrfs-defragment",
            Self::BtrfsSnapshotDelete => "btrfs-snapshot-delete",
            Self::MdCheck => "md-check",
            Self::MdResync => "md-resync",
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
            Self::Delete | Self::BtrfsSnapshotDelete => "entries",
            Self::Command => "seconds",
            _ => "bytes",
        }
    }

    /// Before anything was measured: seconds for an item.
    pub const fn seconds_per_item(self) -> f64 {
        match self {
            Self::Delete | Self::BtrfsSnapshotDelete => 1e-3,
            Self::Command => 1.0,
            Self::BtrfsScrub | Self::MdCheck | Self::MdResync => 1e-8,
            // Read and written.
            Self::BtrfsBalance | Self::BtrfsDefragment => 2e-8,
            Self::Fstrim => 1e-9,
        }
    }

    /// Its requests are made by threads of the kernel, which are in the root group.
    pub(crate) const fn works_in_kernel(self) -> bool {
        !matches!(self, Self::Delete | Self::Command)
    }

    /// What it has done since it last got on, as of a chunk of a btrfs, it begins again when it was stopped.
    pub(crate) const fn begins_again(self) -> bool {
        matches!(self, Self::BtrfsScrub | Self::BtrfsBalance)
    }

    /// It works on a block device, not on what is mounted from it.
    pub const fn is_of_array(self) -> bool {
        matches!(self, Self::MdCheck | Self::MdResync)
    }

    /// What it is for is gone from its path when it is done.
    pub const fn removes_path(self) -> bool {
        matches!(self, Self::Delete | Self::BtrfsSnapshotDelete)
    }

    /// Once begun and lost, it is begun again where it was; a command may have done anything.
    pub const fn can_be_repeated(self) -> bool {
        !matches!(self, Self::Command)
    }
}

/// What the workers of a queue found so far: the next one adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Bytes that were looked at; of a trim, that were told to be unused.
    pub bytes: u64,
    /// Errors in them; of an md array sectors that differ.
    pub errors: u64,
    /// Of those, what could not be corrected.
    pub uncorrectable: u64,
    /// Of a scrub, those that another look would not find, as they were corrected or have no place among the extents.
    pub corrected: u64,
    /// Of a check of an array that is under way: what the kernel counted since it began, beside `errors`.
    pub under_way: u64,
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
    /// What was found up to there.
    #[serde(default)]
    pub found: Found,
    /// Of a balance: chunks that are used more than this are left alone.
    #[serde(default = "used_percent_max_default")]
    pub used_percent_max: u8,
}

/// Half: what is moved takes no more than half of the space that it leaves.
pub const USED_PERCENT_MAX_DEFAULT: u8 = 50;

const fn used_percent_max_default() -> u8 {
    USED_PERCENT_MAX_DEFAULT
}

impl Spec {
    /// How it is kept from the disk.
    pub const fn hold(&self) -> BackgroundHold {
        if self.never_stop { BackgroundHold::Cap } else { BackgroundHold::Stop }
    }
}

pub(crate) fn refused(why: String) -> Result<(), WorkError> {
    Err(WorkError::Refused(why))
}
