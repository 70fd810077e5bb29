//! In whose name a place outside the pool is touched: for one call the thread may do what the asker may, and no more.

use minerva_linux_observe::PeerCredentials;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::process::getgroups;
use rustix::thread::set_thread_groups;
use std::io;

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

impl From<PeerCredentials> for User {
    fn from(peer: PeerCredentials) -> Self {
        Self { uid: peer.uid, gid: peer.gid, groups: peer.groups }
    }
}

/// Back as it was when it is dropped.
struct Acting {
    groups: Vec<rustix::process::Gid>,
}

impl Drop for Acting {
    fn drop(&mut self) {
        setfsuid(Uid::from_raw(0));
        setfsgid(Gid::from_raw(0));
        if set_thread_groups(&self.groups).is_err() {
            // With another's groups this thread would go on to do what it may not.
            std::process::abort();
        }
    }
}

impl User {
    /// Who sees everything.
    pub(crate) const fn root() -> Self {
        Self { uid: 0, gid: 0, groups: Vec::new() }
    }

    /// Does it as this user. The kernel takes the thread's rights over others' files with the user, and gives them back.
    pub(crate) fn act<T, E: From<io::Error>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.uid == 0 {
            return work();
        }
        let groups = getgroups().map_err(io::Error::from)?;
        let asked: Vec<_> = self.groups.iter().map(|group| rustix::process::Gid::from_raw(*group)).collect();
        let acting = Acting { groups };
        set_thread_groups(&asked).map_err(io::Error::from)?;
        setfsgid(Gid::from_raw(self.gid));
        setfsuid(Uid::from_raw(self.uid));
        let done = work();
        drop(acting);
        done
    }
}
