//! In whose name a place outside the pool is touched: for one call the thread may do what the asker may, and no more.
//!
//! A disk quota does not hold for `CAP_SYS_RESOURCE`, which the service has for its own limits, and which does not go with the user as
//! rights over files do: it is given up here, and by threads that move files for good.

use minerva_linux_observe::PeerCredentials;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::process::getgroups;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups};
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

/// From now on quotas hold for this thread, whoever it works for. What it had before.
pub(crate) fn keep_to_quotas() -> io::Result<CapabilitySets> {
    let had = capabilities(None)?;
    let effective = had.effective.difference(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, CapabilitySets { effective, ..had })?;
    Ok(had)
}

/// Back as it was when it is dropped.
struct Acting {
    groups: Vec<rustix::process::Gid>,
    capabilities: CapabilitySets,
}

impl Drop for Acting {
    fn drop(&mut self) {
        setfsuid(Uid::from_raw(0));
        setfsgid(Gid::from_raw(0));
        if set_thread_groups(&self.groups).is_err() {
            // With another's groups this thread would go on to do what it may not.
            std::process::abort();
        }
        // Without it this thread could do less, and no more.
        let _ = set_capabilities(None, self.capabilities);
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
        let acting = Acting { groups, capabilities: keep_to_quotas()? };
        set_thread_groups(&asked).map_err(io::Error::from)?;
        setfsgid(Gid::from_raw(self.gid));
        setfsuid(Uid::from_raw(self.uid));
        let done = work();
        drop(acting);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::{User, keep_to_quotas};
    use rustix::thread::{CapabilitySet, capabilities};
    use std::io;
    use std::thread;

    fn has_override() -> bool {
        capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_RESOURCE)
    }

    #[test]
    fn quotas_hold_for_who_acts_as_a_user_and_for_a_thread_that_keeps_to_them() {
        if !has_override() {
            println!("skipped: needs CAP_SYS_RESOURCE");
            return;
        }
        let nobody = User { uid: 65534, gid: 65534, groups: Vec::new() };
        let acted = nobody.act(|| Ok::<_, io::Error>(has_override())).unwrap();
        assert!(!acted && has_override(), "it is given up for one call");
        let (kept, acted) = thread::spawn(move || {
            keep_to_quotas().unwrap();
            (has_override(), nobody.act(|| Ok::<_, io::Error>(())).map(|()| has_override()).unwrap())
        })
        .join()
        .unwrap();
        assert!(!kept && !acted, "acting as somebody does not bring it back");
        assert!(has_override(), "it is given up by one thread");
    }
}
