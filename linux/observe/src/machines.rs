//! Which process is the virtual machine of a number (CID) on vsock.
//!
//! The kernel tells nobody to whom it gave a number, and a command line is its process's own choice. So a process is taken for the
//! machine only if all of this holds: it says so, it has the kernel's device open, and it is in a group that a manager of
//! virtual machines made as root for one ([`Roots::is_machine`]). Two that say so are none. Of all others the command line is
//! not even read: a process says itself where its arguments lie, and how many they are.

use crate::classify::{NAMED_PARENTS_DEFAULT, classify};
use crate::parse::parse_guest_cids;
use crate::read::{Reader, directory_facts};
use crate::roots::Roots;
use minerva_model::TenantKind;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The device whose opener the kernel gives the number to.
const DEVICE: &str = "/dev/vhost-vsock";
/// Processes are not looked through more often than this.
const PERIOD: Duration = Duration::from_millis(200);

/// Looks for machines, for all who ask at once with one look through the host's processes.
#[derive(Debug)]
pub struct Machines {
    roots: Roots,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: Option<Look>,
    reader: Reader,
}

/// What one look found.
#[derive(Debug)]
struct Look {
    began_at: Instant,
    /// Processes, by the numbers that they claim.
    by_cid: BTreeMap<u32, Vec<u32>>,
}

/// Why a number is no machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMachine {
    /// Nobody who may says so.
    #[error(
        "No virtual machine of this host is known to have the number {0} on vsock: no process in a group that libvirt, \
         systemd-machined or Proxmox made for a machine. Name it in [[identities]] of the operator's file (vsock_cid)."
    )]
    Unknown(u32),
    /// More than one does.
    #[error(
        "More than one process says that it is the machine {0} on vsock; name it in [[identities]] of the operator's file."
    )]
    Ambiguous(u32),
}

impl Machines {
    /// Looks where `roots` say.
    pub fn new(roots: Roots) -> Self {
        Self { roots, state: Mutex::new(State { last: None, reader: Reader::new() }) }
    }

    /// The process of the machine with a number, as of `asked_at` or later. Blocks while a look is under way; one that began
    /// after the question serves it as well.
    pub fn of_cid(&self, cid: u32, asked_at: Instant) -> Result<u32, NoMachine> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { last, reader } = &mut *state;
        if last.as_ref().is_none_or(|look| look.began_at < asked_at) {
            if let Some(look) = last.as_ref() {
                std::thread::sleep(PERIOD.saturating_sub(look.began_at.elapsed()));
            }
            *last = Some(self.look(reader));
        }
        match last.as_ref().and_then(|look| look.by_cid.get(&cid)).map_or(&[][..], Vec::as_slice) {
            [] => Err(NoMachine::Unknown(cid)),
            [pid] => Ok(*pid),
            _ => Err(NoMachine::Ambiguous(cid)),
        }
    }

    fn look(&self, reader: &mut Reader) -> Look {
        let began_at = Instant::now();
        let mut by_cid: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for entry in fs::read_dir(&self.roots.proc).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if !self.is_in_machine(pid) || !has_open(&entry.path(), DEVICE) {
                continue;
            }
            let cids = reader.path(&entry.path().join("cmdline")).map(parse_guest_cids).unwrap_or_default();
            cids.into_iter().for_each(|cid| by_cid.entry(cid).or_default().push(pid));
        }
        Look { began_at, by_cid }
    }

    fn is_in_machine(&self, pid: u32) -> bool {
        self.roots.cgroup_of(pid).is_some_and(|cgroup| self.roots.is_machine(&cgroup))
    }
}

impl Roots {
    /// Whether a group is, or lies in, one that root made for a virtual machine: a manager's (libvirt and systemd-machined in
    /// `machine.slice`, Proxmox in `qemu.slice`), and in no group that was delegated to somebody else.
    pub fn is_machine(&self, cgroup: &str) -> bool {
        let Some(root) = directory_facts(rustix::fs::CWD, &self.cgroup.to_string_lossy()) else { return false };
        let ends = cgroup.match_indices('/').map(|(end, _)| end).chain([cgroup.len()]).filter(|end| *end > 0);
        for path in ends.map(|end| &cgroup[..end]) {
            if classify(path, &NAMED_PARENTS_DEFAULT).kind == TenantKind::VirtualMachine {
                return true;
            }
            let facts = directory_facts(rustix::fs::CWD, &self.cgroup.join(path).to_string_lossy());
            if facts.is_none_or(|facts| facts.access.is_delegated(root.access)) {
                return false;
            }
        }
        false
    }
}

fn has_open(process: &Path, device: &str) -> bool {
    let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).any(|target| target == Path::new(device))
}

#[cfg(test)]
mod tests {
    use super::{DEVICE, Machines, NoMachine, PERIOD};
    use crate::roots::Roots;
    use minerva_model::CgroupVersion;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::Path;
    use std::time::Instant;

    const MACHINE: &str = r"machine.slice/machine-qemu\x2d1\x2dweb.scope";

    fn host(folder: &Path) -> Roots {
        let roots = Roots {
            cgroup: folder.join("cgroup"),
            version: CgroupVersion::V2,
            proc: folder.join("proc"),
            sys: folder.join("sys"),
        };
        fs::create_dir_all(roots.cgroup.join(MACHINE).join("libvirt/emulator")).unwrap();
        fs::create_dir_all(&roots.proc).unwrap();
        roots
    }

    fn process(roots: &Roots, pid: u32, cgroup: &str, line: &str, device: &str) {
        let folder = roots.proc.join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::create_dir_all(roots.cgroup.join(cgroup)).unwrap();
        fs::write(folder.join("cmdline"), line).unwrap();
        fs::write(folder.join("cgroup"), format!("0::/{cgroup}\n")).unwrap();
        symlink(device, folder.join("fd/9")).unwrap();
    }

    #[test]
    fn who_only_says_so_is_not_believed_and_does_not_hide_who_is() {
        let folder = tempfile::tempdir().unwrap();
        let roots = host(folder.path());
        let line = |cid: u32| format!("qemu-kvm\0-device\0{{\"driver\":\"vhost-vsock-pci\",\"guest-cid\":{cid}}}\0");
        process(&roots, 41, &format!("{MACHINE}/libvirt/emulator"), &line(3), DEVICE);
        // A login session with the device open; a machine without it.
        process(&roots, 42, "user.slice/session-1.scope", &line(3), DEVICE);
        process(&roots, 43, MACHINE, &line(4), "/dev/null");
        let machines = Machines::new(roots.clone());
        assert_eq!(machines.of_cid(3, Instant::now()), Ok(41));
        assert_eq!(machines.of_cid(4, Instant::now()), Err(NoMachine::Unknown(4)));
        // Whoever opens this waits for somebody who never comes.
        let endless = roots.proc.join("42/cmdline");
        fs::remove_file(&endless).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &endless, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(machines.of_cid(3, Instant::now()), Ok(41), "of others nothing is read");
        process(&roots, 44, "qemu.slice/100.scope", &line(3), DEVICE);
        assert_eq!(machines.of_cid(3, Instant::now()), Err(NoMachine::Ambiguous(3)));
    }

    #[test]
    fn a_group_that_a_user_may_make_is_no_machines() {
        let folder = tempfile::tempdir().unwrap();
        let roots = host(folder.path());
        assert!(
            roots.is_machine(MACHINE)
                && roots.is_machine("qemu.slice/100.scope") == roots.cgroup.join("qemu.slice").is_dir()
        );
        fs::create_dir_all(roots.cgroup.join("user.slice/mine").join(MACHINE)).unwrap();
        assert!(!roots.is_machine("user.slice/mine"));
        if chown(roots.cgroup.join("user.slice/mine"), Some(1_000), None).is_err() {
            return println!("skipped: needs the right to give a directory away");
        }
        assert!(!roots.is_machine(&format!("user.slice/mine/{MACHINE}")));
    }

    #[test]
    fn one_look_serves_all_who_asked_before_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let machines = Machines::new(host(folder.path()));
        let began = || machines.state.lock().unwrap().last.as_ref().unwrap().began_at;
        let asked_at = Instant::now();
        machines.of_cid(1, asked_at).unwrap_err();
        let first = began();
        assert!((0..1_000).all(|cid| machines.of_cid(cid, asked_at).is_err()));
        assert_eq!(began(), first);
        machines.of_cid(1, Instant::now()).unwrap_err();
        assert!(began() >= first + PERIOD, "and whoever asks later has another, not at once");
    }
}
