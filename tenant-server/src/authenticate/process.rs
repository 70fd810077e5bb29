//! Who asks, over a Unix socket: the kernel names the process that connected, the process is in a cgroup, and the cgroup is a
//! tenant's.
//!
//! A process is known by a descriptor (pidfd) that stands for it, so that a later one of the same number is never taken for
//! it. It is looked up when it connects, and again when the tenant that it was is gone: it may have been moved. Between the two
//! a connection stays its tenant's, also when the process hands it to another one, as with any open file.
//!
//! Only a level that is bound to a process, and outlives the daemon, needs the moment of its start. Reading that may take for ever
//! (`minerva-linux-observe`, `aside.rs`), so that nobody waits for it for long.

use minerva_linux_observe::{AsideThreads, Roots};
use nix::errno::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long the moment of a process's start is waited for where everything else waits too.
const PATIENCE: Duration = Duration::from_millis(250);

/// A process that a level is bound to, as it outlives the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number here.
    pub pid: u32,
    /// In clock ticks since boot.
    pub start_ticks: u64,
}

/// A process that connected, or that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct LiveProcess {
    /// Its number here.
    pub(crate) pid: u32,
    /// A pidfd.
    pub(crate) descriptor: Arc<OwnedFd>,
}

/// A process whose end is waited for.
#[derive(Clone, Debug)]
pub struct ProcessHandle {
    /// Which.
    pub process: Process,
    /// A pidfd.
    pub descriptor: Arc<OwnedFd>,
}

impl ProcessHandle {
    /// Whether it has ended by now.
    pub fn has_ended(&self) -> bool {
        has_ended(&self.descriptor)
    }
}

/// What could not be found out about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// A process of another world, such as one of a pid namespace beside the daemon's.
    #[error("The kernel does not say which process connected; connect from this host, or from a container on it.")]
    Unknown,
    /// The kernel has no descriptor of it for the daemon.
    #[error("The kernel does not say whether process {0} still runs ({1}); connect again.")]
    NoDescriptor(u32, Errno),
    /// It ended.
    #[error("Process {0} has ended; connect again.")]
    Ended(u32),
    /// It is in no group of the disk controller's hierarchy.
    #[error(
        "Process {0} is in the root cgroup, which is no tenant; start it in a cgroup of its own, for example with \
         `minerva-ctl run` or as a service."
    )]
    Root(u32),
}

impl LiveProcess {
    /// The process at the other end of a socket, and its cgroup.
    pub(crate) fn of_peer(
        socket: &tokio::net::UnixStream,
        roots: &Roots,
    ) -> Result<(Self, String), AuthenticationError> {
        let credentials = socket.peer_cred().map_err(|_| AuthenticationError::Unknown)?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        let pid = pid.ok_or(AuthenticationError::Unknown)?;
        let told = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerPidfd);
        Self { pid, descriptor: Arc::new(peer_descriptor(pid, told)?) }.with_cgroup(roots)
    }

    /// The process that has this number now, and its cgroup.
    pub(crate) fn of_number(pid: u32, roots: &Roots) -> Result<(Self, String), AuthenticationError> {
        let descriptor = open(pid).map_err(|_| AuthenticationError::Ended(pid))?;
        Self { pid, descriptor: Arc::new(descriptor) }.with_cgroup(roots)
    }

    fn with_cgroup(self, roots: &Roots) -> Result<(Self, String), AuthenticationError> {
        let cgroup = self.cgroup(roots)?;
        Ok((self, cgroup))
    }

    /// The cgroup in which it is now. It is what `/proc` says under the number, if the process is alive afterwards: then the
    /// number was its own all the time.
    pub(crate) fn cgroup(&self, roots: &Roots) -> Result<String, AuthenticationError> {
        let cgroup = roots.cgroup_of(self.pid);
        if has_ended(&self.descriptor) {
            return Err(AuthenticationError::Ended(self.pid));
        }
        cgroup.filter(|path| !path.is_empty()).ok_or(AuthenticationError::Root(self.pid))
    }

    /// With the moment of its start, as `/proc` said under the number just now.
    pub(crate) fn started(self, start_ticks: Option<u64>) -> Result<ProcessHandle, AuthenticationError> {
        let Self { pid, descriptor } = self;
        match start_ticks {
            Some(start_ticks) if !has_ended(&descriptor) => {
                Ok(ProcessHandle { process: Process { pid, start_ticks }, descriptor })
            }
            _ => Err(AuthenticationError::Ended(pid)),
        }
    }
}

impl Process {
    /// The same process, with a descriptor that stands for it; nothing when it has ended. Waits for a bounded time: one of which nobody says
    /// when it started is taken for the same if it is in the tenant's cgroup, as who lets others wait is not to lose what it set. Elsewhere it
    /// is another one, that has the number by now.
    pub fn again(self, tenant_path: &str, roots: &Roots, threads: &AsideThreads) -> Option<ProcessHandle> {
        let (live, cgroup) = LiveProcess::of_number(self.pid, roots).ok()?;
        let place = roots.clone();
        let start_ticks = match threads.within(PATIENCE, move || place.start_ticks_of(self.pid)) {
            Some(start_ticks) => start_ticks,
            None => is_within(&cgroup, tenant_path).then_some(self.start_ticks),
        };
        let bound = live.started(start_ticks).ok()?;
        (bound.process == self).then_some(bound)
    }
}

/// Whether a cgroup is a tenant's, or one in it.
fn is_within(cgroup: &str, tenant_path: &str) -> bool {
    let rest = cgroup.trim_matches('/').strip_prefix(tenant_path.trim_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A descriptor that stands for the process that connected, from what the kernel said of `SO_PEERPIDFD`.
fn peer_descriptor(pid: u32, told: Result<OwnedFd, Errno>) -> Result<OwnedFd, AuthenticationError> {
    match told {
        Ok(descriptor) => Ok(descriptor),
        // A kernel before 6.5. Should the process have ended since it connected, its number can be another's by now.
        Err(Errno::ENOPROTOOPT) => open(pid).map_err(|_| AuthenticationError::Ended(pid)),
        Err(Errno::ESRCH) => Err(AuthenticationError::Ended(pid)),
        // Whatever else it is, the number alone proves nothing.
        Err(error) => Err(AuthenticationError::NoDescriptor(pid, error)),
    }
}

fn open(pid: u32) -> rustix::io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
    pidfd_open(pid, PidfdFlags::empty())
}

/// A pidfd is readable when its process has ended.
fn has_ended(process: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::{AuthenticationError, LiveProcess, Process, is_within, open, peer_descriptor};
    use crate::tests::OneGroup;
    use minerva_linux_observe::{AsideThreads, Roots};
    use nix::errno::Errno;

    #[test]
    fn a_peer_without_a_descriptor_is_refused_unless_the_kernel_knows_none() {
        let own = std::process::id();
        assert!(peer_descriptor(own, open(own).map_err(|_| Errno::ESRCH)).is_ok());
        assert!(peer_descriptor(own, Err(Errno::ENOPROTOOPT)).is_ok(), "a kernel before 6.5");
        // The number is that of a process that lives, and need not be the one that connected.
        assert_eq!(peer_descriptor(own, Err(Errno::ESRCH)).err(), Some(AuthenticationError::Ended(own)));
        for error in [Errno::EINVAL, Errno::ENODATA, Errno::EMFILE] {
            let refused = peer_descriptor(own, Err(error)).err();
            assert_eq!(refused, Some(AuthenticationError::NoDescriptor(own, error)));
        }
    }

    #[test]
    fn a_peer_is_the_process_that_connected_and_one_that_ended_is_nobody() {
        let Ok(roots) = Roots::detect() else { return eprintln!("skipped: needs /proc") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let peer = runtime.block_on(async {
            let (ours, _theirs) = tokio::net::UnixStream::pair().expect("sockets");
            LiveProcess::of_peer(&ours, &roots)
        });
        match peer {
            Ok((process, cgroup)) => {
                assert_eq!(process.pid, std::process::id());
                assert_eq!(process.cgroup(&roots), Ok(cgroup));
            }
            // Where tests run in the root cgroup.
            Err(error) => assert_eq!(error, AuthenticationError::Root(std::process::id())),
        }
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("a process");
        let known = LiveProcess::of_number(child.id(), &roots).map(|(_, cgroup)| cgroup);
        child.kill().and_then(|()| child.wait()).expect("an end");
        assert!(!matches!(known, Err(AuthenticationError::Ended(_))));
        let ended = LiveProcess::of_number(child.id(), &roots).err();
        assert_eq!(ended, Some(AuthenticationError::Ended(child.id())));
    }

    #[test]
    fn a_level_is_bound_again_to_the_process_that_it_was_bound_to_and_to_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let host = OneGroup::of_this_process(folder.path());
        let pid = std::process::id();
        let start_ticks = host.start_ticks_of(pid).expect("it lives");
        let threads = AsideThreads::new(1);
        let again = |start_ticks| Process { pid, start_ticks }.again("p", &host, &threads).map(|bound| bound.process);
        assert_eq!(again(start_ticks), Some(Process { pid, start_ticks }));
        assert_eq!(again(start_ticks + 1), None);
        // Nobody can say when it started: it is the one that it was if it is where the tenant is.
        let nobody = AsideThreads::new(0);
        for (tenant_path, is_same) in [("p", true), ("p/q", false), ("other", false), ("pp", false)] {
            let bound = Process { pid, start_ticks }.again(tenant_path, &host, &nobody);
            assert_eq!(bound.is_some(), is_same, "{tenant_path}");
        }
        assert!(is_within("/p/q", "p"));
    }
}
