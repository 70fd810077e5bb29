//! Making, naming and removing.

use super::Tree;
use crate::caller::ActingAs;
use crate::file_system::{Attributes, Caller, Result};
use crate::node::{Node, charge};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, linkat, mkdirat, mknodat, openat, renameat_with, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bits of a mode beside the kind.
const PERMISSIONS: u32 = 0o7777;

impl Tree {
    /// Makes something below `parent` in the caller's name, if one more file is allowed.
    fn make(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        make: impl FnOnce(&OwnedFd) -> Result<()>,
    ) -> Result<Attributes> {
        let parent = self.node(parent)?;
        self.refuse_own(&parent, name)?;
        self.refuse_when_full()?;
        self.reserve_file()?;
        let made = ActingAs::new(caller).and_then(|_acting| make(&parent.path));
        if let Err(error) = made {
            self.account.release_file();
            return Err(error);
        }
        self.name_new(&parent, name)
    }

    /// What was just made, as the kernel is told of it.
    pub(super) fn name_new(&self, parent: &Arc<Node>, name: &OsStr) -> Result<Attributes> {
        let node = self.look_up(parent, name)?;
        let mut state = node.lock();
        state.unsynced_parent = self.options.is_durable.then(|| Arc::clone(parent));
        node.attributes(&state)
    }

    /// Names take room too, in their directory.
    fn refuse_when_full(&self) -> Result<()> {
        if self.is_disk_full() { Err(Errno::NOSPC) } else { Ok(()) }
    }

    pub(super) fn reserve_file(&self) -> Result<()> {
        // What is made and cannot be told of would be there all the same.
        self.hold(1)?;
        if self.account.reserve_file() {
            return Ok(());
        }
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        Err(Errno::NOSPC)
    }

    pub(super) fn do_make_node(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        mode: u32,
        device: u32,
    ) -> Result<Attributes> {
        let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode & PERMISSIONS));
        self.make(caller, parent, name, |parent| mknodat(parent, name, kind, mode, device.into()))
    }

    pub(super) fn do_make_directory(&self, caller: Caller, parent: u64, name: &OsStr, mode: u32) -> Result<Attributes> {
        let mode = Mode::from_raw_mode(mode & PERMISSIONS);
        self.make(caller, parent, name, |parent| mkdirat(parent, name, mode))
    }

    pub(super) fn do_make_symlink(
        &self,
        caller: Caller,
        parent: u64,
        name: &OsStr,
        target: &OsStr,
    ) -> Result<Attributes> {
        self.make(caller, parent, name, |parent| symlinkat(target, parent, name))
    }

    pub(super) fn do_link(&self, node: u64, parent: u64, name: &OsStr) -> Result<Attributes> {
        let (node, parent) = (self.node(node)?, self.node(parent)?);
        self.refuse_own(&parent, name)?;
        self.refuse_when_full()?;
        {
            let mut state = node.lock();
            // Whoever moves the file to its place would leave this name behind with what is no longer the file.
            state.change()?;
            linkat(&node.path, "", &parent.path, name, AtFlags::EMPTY_PATH)?;
        }
        self.name_new(&parent, name)
    }

    pub(super) fn do_remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> Result<()> {
        let parent = self.node(parent)?;
        self.refuse_own(&parent, name)?;
        let victim = peek(&parent, name)?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        unlinkat(&parent.path, name, flags)?;
        self.note_gone(&parent, name, &victim);
        self.after_removal(victim);
        Ok(())
    }

    pub(super) fn do_rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> Result<()> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        if flags.contains(RenameFlags::WHITEOUT) {
            return Err(Errno::INVAL);
        }
        let (old, new) = (self.node(from.0)?, self.node(to.0)?);
        self.refuse_own(&old, from.1)?;
        self.refuse_own(&new, to.1)?;
        if old.number != new.number {
            self.refuse_when_full()?;
        }
        let is_over = !flags.intersects(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE);
        let victim = if is_over { peek(&new, to.1).ok() } else { None };
        renameat_with(&old.path, from.1, &new.path, to.1, flags)?;
        if let Some(victim) = victim {
            self.after_removal(victim);
        }
        let moved = |parent: &Arc<Node>, (directory, name): (u64, &OsStr)| {
            if let Some(node) = peek(parent, name).and_then(|path| fstat(&path)).ok()
                && let Some(node) = self.nodes.get(node.st_ino)
            {
                node.set_name(directory, name);
                if self.options.is_durable {
                    node.lock().unsynced_parent = Some(Arc::clone(parent));
                }
            }
        };
        moved(&new, to);
        if flags.contains(RenameFlags::EXCHANGE) {
            moved(&old, from);
        }
        Ok(())
    }

    /// A name is gone: with the last one the file is off the account, and its bytes too unless somebody has it open.
    pub(super) fn after_removal(&self, victim: OwnedFd) {
        let Ok(stat) = fstat(&victim) else { return };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if stat.st_nlink > 0 && !is_directory {
            return;
        }
        self.account.release_file();
        match self.nodes.get(stat.st_ino) {
            Some(node) => {
                let mut state = node.lock();
                // Where the disk cannot be read what lies there is removed at the next start.
                let _ = self.find_spilled(&node, &mut state);
                state.is_gone = true;
                if state.opens == 0 {
                    self.close(&node, &mut state);
                }
            }
            None => match self.spill.as_ref().filter(|spill| spill.has(stat.st_ino)) {
                Some(spill) => {
                    let occupied = spill.open_data(stat.st_ino).and_then(fstat).map_or(0, |stat| charge(&stat));
                    spill.account().correct(occupied, 0);
                    spill.remove(stat.st_ino);
                }
                None => self.account.correct(charge(&stat), 0),
            },
        }
    }
}

/// What a name stands for, kept from being given to another.
fn peek(parent: &Node, name: &OsStr) -> Result<OwnedFd> {
    openat(&parent.path, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}
