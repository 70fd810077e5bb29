//! What a program makes belongs to it from the first instant: the thread takes its user and group for one call.

use crate::file_system::{Caller, Result};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::umask;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::cell::Cell;

thread_local! {
    // A new thread shares the mask of new files with all others until it asks for its own, once.
    static HAS_OWN_MASK: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped the thread makes files as the caller would.
pub(crate) struct ActingAs {
    has_uid: bool,
    has_gid: bool,
}

impl ActingAs {
    /// The kernel has judged already whether the caller may; so the thread keeps the right to go where the caller's further groups let it.
    pub(crate) fn new(caller: Caller) -> Result<Self> {
        if !HAS_OWN_MASK.get() {
            unshare(CloneFlags::CLONE_FS).map_err(|error| Errno::from_raw_os_error(error as i32))?;
            HAS_OWN_MASK.set(true);
        }
        umask(Mode::from_raw_mode(caller.umask));
        let acting = Self { has_uid: caller.uid != 0, has_gid: caller.gid != 0 };
        if acting.has_gid {
            setfsgid(Gid::from_raw(caller.gid));
        }
        if acting.has_uid {
            setfsuid(Uid::from_raw(caller.uid));
            let mut sets = capabilities(None)?;
            sets.effective |= sets.permitted & CapabilitySet::DAC_OVERRIDE;
            set_capabilities(None, sets)?;
        }
        Ok(acting)
    }
}

impl Drop for ActingAs {
    fn drop(&mut self) {
        // Back at user 0 the kernel gives the thread its capabilities over files again.
        if self.has_uid {
            setfsuid(Uid::from_raw(0));
        }
        if self.has_gid {
            setfsgid(Gid::from_raw(0));
        }
    }
}
