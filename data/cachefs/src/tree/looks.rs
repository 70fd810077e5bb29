//! What is told of a tree: what is used of its quota, where a file lies, and whether the tree is still there.

use super::{Tree, TreeCounters, Whereabouts};
use crate::account::{Account, Usage};
use crate::census::{Census, walk};
use crate::file_system::Result;
use crate::node::charge;
use crate::spill::SpillArea;
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, accessat, fstat, fstatvfs, openat, openat2, statat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::PoisonError;

impl Tree {
    /// Whether another service serves it, and this process only moves files out of it.
    pub fn is_served_elsewhere(&self) -> bool {
        self.options.is_served_elsewhere
    }

    /// Whether this is still what is found at its path: in a guest another tree is there once the host serves it anew.
    pub fn is_at(&self, path: &Path) -> bool {
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        let there = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(identity);
        there.is_ok_and(|there| fstat(&self.root.path).map(identity) == Ok(there)) && fstatvfs(&self.root.path).is_ok()
    }

    /// Whether the user as whom this thread acts may make files in the root, by its mode and access control list.
    pub fn may_write_in_root(&self) -> Result<()> {
        // Without the flag it would be judged who the thread really is.
        accessat(&self.root.path, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
    }

    /// What is used of the quota. Where the kernel writes by itself the account knows of a file when it is closed, and the file system
    /// below at once.
    pub fn usage(&self) -> Usage {
        let counted = self.account.usage();
        if self.options.is_served_elsewhere {
            // The host shows the quota as room.
            let Ok(below) = fstatvfs(&self.root.path) else { return counted };
            let (bytes, files) = (below.f_blocks * below.f_frsize, below.f_files);
            let used = below.f_blocks.saturating_sub(below.f_bfree) * below.f_frsize;
            return Usage {
                bytes: used,
                bytes_max: bytes,
                files: files.saturating_sub(below.f_ffree),
                files_max: files,
            };
        }
        if !self.options.kernel_writes {
            return counted;
        }
        let below = used_below(&self.root.path).saturating_sub(self.besides_bytes);
        Usage { bytes: counted.bytes.max(below), ..counted }
    }

    /// What the census at the start found.
    pub fn found(&self) -> &Census {
        &self.found
    }

    /// Bytes and number of files without a name that somebody has open: those whose data lie here, and those whose data are in the spill
    /// area. The kernel counts them, and a walk does not meet them.
    pub fn gone(&self) -> [(u64, u64); 2] {
        self.nodes.gone()
    }

    /// Files whose data lie in the spill area now.
    pub fn spilled_now(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.len() as u64)
    }

    /// Bytes of the file system below that are used, by whatever; 0 where it cannot be asked.
    pub fn used_below(&self) -> u64 {
        used_below(&self.root.path)
    }

    /// What was done so far.
    pub fn counters(&self) -> &TreeCounters {
        &self.counters
    }

    /// Where a file lies, by its path from the root; no link is followed.
    pub fn whereabouts(&self, path: &Path) -> Result<Whereabouts> {
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let stat = fstat(openat2(&self.root.path, path, flags, Mode::empty(), how)?)?;
        let spilled = self.spill.as_ref().filter(|spill| spill.has(stat.st_ino));
        let spilled = spilled.map(|spill| spill.open_data(stat.st_ino).and_then(fstat)).transpose()?;
        let opens = self.nodes.get(stat.st_ino).map_or(0, |node| node.lock().opens);
        let bytes = charge(spilled.as_ref().unwrap_or(&stat));
        Ok(Whereabouts { is_spilled: spilled.is_some(), bytes, opens })
    }

    /// Nodes that the kernel knows, and open handles.
    pub fn known(&self) -> (usize, usize) {
        (self.nodes.len(), self.handles.read().unwrap_or_else(PoisonError::into_inner).len())
    }
}

/// Counts what lies in a directory for `account`, and finds what was spilled before; else what failed.
pub(super) fn take_stock(
    root: &OwnedFd,
    account: &Account,
    mut spill: Option<&mut SpillArea>,
) -> std::result::Result<Census, (&'static str, Errno)> {
    let mut present = Vec::new();
    let mut freed = 0;
    let mut found = walk(root, &mut |file| {
        if spill.as_ref().is_some_and(|spill| spill.has(file.stat.st_ino)) {
            present.push(file.stat.st_ino);
            // Killed between the copy and this: the copy is whole, and nobody wrote since.
            if file.stat.st_blocks > 0
                && let Ok(data) = openat(file.directory, file.name, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
                && crate::spill::empty(&data).is_ok()
            {
                freed += charge(file.stat) - fstat(&data).map_or(0, |left| charge(&left)).min(charge(file.stat));
            }
        }
    })
    .map_err(|error| ("failed to count what lies in", error))?;
    // The walk counted what they had before.
    found.bytes -= freed;
    if let Some(spill) = &mut spill {
        spill.keep_only(&present).map_err(|error| ("failed to tidy what was spilled from", error))?;
        let spilled = spill.census().map_err(|error| ("failed to count what was spilled from", error))?;
        spill.account().correct(0, spilled.bytes);
    }
    account.set(found.bytes, found.files);
    Ok(found)
}

/// Bytes of a file system that are used; none where it cannot be asked.
pub(super) fn used_below(at: &OwnedFd) -> u64 {
    fstatvfs(at).map_or(0, |below| below.f_blocks.saturating_sub(below.f_bfree) * below.f_frsize)
}
