//! The cgroup of whoever asks for a file, which is kept with it: whose credits it is that moving it earns.

use minerva_linux_observe::Roots;
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

/// A group as the redo log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskerGroup {
    /// The boot in which it was: inodes say nothing in another.
    pub(super) boot: String,
    /// In the disk controller's hierarchy, without a leading slash.
    pub(super) path: String,
    /// Of each group on that path, the outermost first.
    pub(super) inodes: Vec<u64>,
}

/// The process at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(super) pid: u32,
    process: OwnedFd,
}

impl Peer {
    /// Nothing where it cannot be told.
    pub(crate) fn of(stream: &UnixStream) -> Option<Self> {
        let pid = socket_peercred(stream).ok()?.pid;
        // Before 6.5 the kernel has no descriptor of who connected; who waits for the answer lives.
        let process = match getsockopt(stream, PeerPidfd) {
            Ok(process) => process,
            Err(Errno::ENOPROTOOPT) => pidfd_open(pid, PidfdFlags::empty()).ok()?,
            Err(_) => return None,
        };
        Some(Self { pid: u32::try_from(pid.as_raw_nonzero().get()).ok()?, process })
    }

    /// A pidfd is readable when its process has ended.
    pub(super) fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }
}

impl AskerGroup {
    /// The group of the process at the other end of a connection; nothing where that cannot be told for sure, or is the root, which is
    /// nobody's.
    pub(super) fn of_peer(stream: &UnixStream, roots: &Roots) -> Option<Self> {
        let peer = Peer::of(stream)?;
        let group = Self::at(roots, roots.cgroup_of(peer.pid)?)?;
        // If it lives now, the number was its own all the time.
        peer.is_alive().then_some(group)
    }

    fn at(roots: &Roots, path: String) -> Option<Self> {
        let mut place = roots.cgroup.clone();
        let mut inodes = Vec::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            place.push(name);
            inodes.push(fs::metadata(&place).ok()?.ino());
        }
        (!inodes.is_empty()).then(|| Self { boot: boot(roots), path, inodes })
    }

    /// As it is kept.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What was kept, if it is of this boot.
    pub(super) fn from_text(text: &str, boot: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|group: &Self| group.boot == boot)
    }
}

/// Which boot this is.
pub(super) fn boot(roots: &Roots) -> String {
    let text = fs::read_to_string(roots.proc.join("sys/kernel/random/boot_id")).unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{AskerGroup, boot};
    use minerva_linux_observe::Roots;
    use minerva_model::CgroupVersion;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_group_is_known_by_its_path_its_inodes_and_its_boot() {
        let folder = tempfile::tempdir().unwrap();
        let roots = Roots {
            cgroup: folder.path().to_owned(),
            version: CgroupVersion::V2,
            proc: "/proc".into(),
            sys: "/sys".into(),
        };
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let group = AskerGroup::at(&roots, "a/b".to_owned()).unwrap();
        assert_eq!(group.inodes.len(), 2);
        assert_eq!(AskerGroup::from_text(&group.to_text(), &boot(&roots)), Some(group.clone()));
        assert_eq!(AskerGroup::from_text(&group.to_text(), "another boot"), None);
        assert_eq!(AskerGroup::from_text("", &boot(&roots)), None);
        // The root is nobody's, and a group that is gone is none.
        assert_eq!(AskerGroup::at(&roots, String::new()), None);
        assert_eq!(AskerGroup::at(&roots, "a/c".to_owned()), None);
        std::fs::rename(folder.path().join("a/b"), folder.path().join("a/old")).unwrap();
        std::fs::create_dir(folder.path().join("a/b")).unwrap();
        assert_ne!(AskerGroup::at(&roots, "a/b".to_owned()), Some(group), "another of the same name");
    }

    #[test]
    fn a_peer_is_in_the_group_of_its_process() {
        let Ok(roots) = Roots::detect() else { return eprintln!("skipped: needs /proc") };
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let own = roots.cgroup_of(std::process::id()).filter(|path| !path.is_empty());
        assert_eq!(AskerGroup::of_peer(&ours, &roots).map(|group| group.path), own);
    }
}
