//! Who connected to a Unix socket, as the kernel noted it at that moment. Nothing is read from `/proc`: the number of a process
//! that has ended is given to another one, and groups are given up and gained.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Groups for which there is room at the first try; few processes have more.
const GROUPS_LIKELY: usize = 64;
/// No process has more (`NGROUPS_MAX`).
const GROUPS_MAX: usize = 65_536;

/// User and groups of a process when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The supplementary ones.
    pub groups: Vec<u32>,
}

impl PeerCredentials {
    /// Of the process at the other end, by `SO_PEERCRED` and `SO_PEERGROUPS`. A kernel that does not know the latter (before
    /// 4.13) shows no supplementary groups; every other failure is an error.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let credentials = rustix::net::sockopt::socket_peercred(socket)?;
        let groups = match peer_groups(socket) {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Vec::new(),
            groups => groups?,
        };
        Ok(Self { uid: credentials.uid.as_raw(), gid: credentials.gid.as_raw(), groups })
    }

    /// Whether it was in a group.
    pub fn is_member(&self, group: u32) -> bool {
        self.gid == group || self.groups.contains(&group)
    }
}

/// Supplementary groups of the process at the other end, when it connected.
fn peer_groups(socket: &impl AsFd) -> io::Result<Vec<u32>> {
    let descriptor = socket.as_fd().as_raw_fd();
    let mut room = GROUPS_LIKELY;
    loop {
        let mut groups: Vec<libc::gid_t> = vec![0; room];
        let mut bytes = libc::socklen_t::try_from(size_of_val(groups.as_slice())).map_err(io::Error::other)?;
        // SAFETY: the descriptor is open while `socket` is borrowed; the buffer has room for `bytes` bytes, which is all that the
        // kernel writes, and any bytes make good group numbers.
        let result = unsafe {
            libc::getsockopt(
                descriptor,
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        if result == 0 {
            groups.truncate(bytes as usize / size_of::<libc::gid_t>());
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // The kernel says how many bytes it needs.
        let needed = bytes as usize / size_of::<libc::gid_t>();
        if error.raw_os_error() != Some(libc::ERANGE) || needed <= room || needed > GROUPS_MAX {
            return Err(error);
        }
        room = needed;
    }
}

#[cfg(test)]
mod tests {
    use super::PeerCredentials;

    #[test]
    fn credentials_are_those_of_this_process() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let peer = PeerCredentials::of(&ours).expect("the kernel says who it is");
        let mut expected: Vec<u32> =
            rustix::process::getgroups().expect("groups").into_iter().map(|group| group.as_raw()).collect();
        let mut groups = peer.groups.clone();
        expected.sort_unstable();
        groups.sort_unstable();
        assert_eq!((peer.uid, groups), (rustix::process::geteuid().as_raw(), expected));
        assert!(peer.is_member(peer.gid) && !peer.is_member(u32::MAX - 1));
    }
}
