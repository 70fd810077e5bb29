//! The host of a guest: the cache with two tenants, and what serves one's trees to the guest. Whatever it makes is gone with it.

use minerva_api::cache::{Request, ask};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The first of the guest's users on the host.
pub(crate) const IDS: u32 = 1_700_000;
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Host {
    folder: tempfile::TempDir,
    service: Arc<Mutex<Option<Running>>>,
    virtiofsd: Arc<Mutex<Option<Running>>>,
}

/// A program that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let begun = Instant::now();
        // One that waits in the kernel for somebody else's answer ends when that comes, which may be never.
        while matches!(self.0.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Ends what watches when it is dropped.
pub(crate) struct Watch(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(JoinHandle::join);
    }
}

impl Host {
    /// Nothing, with the reason printed, where the machine cannot give it.
    pub(crate) fn new(tenant: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            println!("skipped: needs root and /dev/fuse");
            return None;
        }
        let programs = ["/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd"];
        if !programs.iter().any(|program| Path::new(program).exists()) {
            println!("skipped: needs virtiofsd (Debian 12: qemu-system-common)");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("minerva-test-machine-").tempdir().unwrap();
        let path = folder.path().display();
        // Those who serve the guest come through it.
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let text = format!(
            "[server]\nmount = \"{path}/mount\"\nruntime = \"{path}/run\"\n[pools.stable]\npath = \"{path}/pool\"\n\
             [tenants.vm]\nmachine = \"guest-of-test\"\nids = {IDS}\n{tenant}\n[tenants.other]\n"
        );
        std::fs::write(folder.path().join("fs.toml"), text).unwrap();
        // As the root of a host under systemd is: what is mounted below later is seen in other namespaces.
        let mounts = folder.path().join("mount");
        std::fs::create_dir(&mounts).unwrap();
        mount_bind(&mounts, &mounts).unwrap();
        mount_change(&mounts, MountPropagationFlags::SHARED).unwrap();
        let host = Self { folder, service: Arc::default(), virtiofsd: Arc::default() };
        *host.service.lock().unwrap() = Some(serve(host.folder.path()));
        std::fs::write(mounts.join("other/stable/secret"), "of another").unwrap();
        Some(host)
    }

    /// Starts what serves the trees; the socket for QEMU.
    pub(crate) fn attach(&mut self) -> PathBuf {
        let socket = self.folder.path().join("run/machines/vm.sock");
        let mut command = minerva_fs(self.folder.path());
        let virtiofsd = command.args(["virtiofs", "guest-of-test"]).stderr(Stdio::inherit()).spawn().unwrap();
        let virtiofsd = Running(virtiofsd);
        let begun = Instant::now();
        while !is_virtiofsd(&virtiofsd.0) {
            assert!(begun.elapsed() < PATIENCE, "virtiofsd does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
        *self.virtiofsd.lock().unwrap() = Some(virtiofsd);
        socket
    }

    /// Does what the guest asks for by files: kills the service and starts it again, or kills virtiofsd.
    pub(crate) fn act_for_guest(&self) -> Watch {
        let (folder, ended) = (self.folder.path().to_owned(), Arc::new(AtomicBool::new(false)));
        let (service, virtiofsd) = (Arc::clone(&self.service), Arc::clone(&self.virtiofsd));
        let tree = folder.join("pool/tenants/vm");
        let until = Arc::clone(&ended);
        let work = move || {
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
                if tree.join("kill-service").exists() {
                    end(&service);
                    std::fs::remove_file(tree.join("kill-service")).unwrap();
                    *service.lock().unwrap() = Some(serve(&folder));
                }
                if tree.join("kill-virtiofsd").exists() {
                    end(&virtiofsd);
                    return;
                }
            }
        };
        Watch(ended, Some(std::thread::spawn(work)))
    }

    /// A program beside the service, stripped so that it fits a guest's memory; nothing, with the reason printed, where it is not built.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let built = Path::new(env!("CARGO_BIN_EXE_minerva-fs")).with_file_name(name);
        let copy = self.folder.path().join(name);
        let stripped = Command::new("strip").arg("-o").arg(&copy).arg(&built).status();
        if !stripped.is_ok_and(|status| status.success()) {
            println!("skipped: needs {name} built beside minerva-fs (cargo build -p {name}), and `strip`");
            return None;
        }
        Some(copy)
    }

    /// Whose a file of the guest is.
    pub(crate) fn owner_of(&self, name: &str) -> (u32, u32) {
        let shown = std::fs::symlink_metadata(self.folder.path().join("pool/tenants/vm").join(name)).unwrap();
        (shown.uid(), shown.gid())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // With a service that hangs virtiofsd waits in the kernel, and ends only when the service does: both are killed before either
        // is waited for.
        for process in [&self.service, &self.virtiofsd] {
            if let Some(running) = held(process).as_mut() {
                let _ = running.0.kill();
            }
        }
        let at = self.folder.path();
        for tenant in ["vm", "other"] {
            for kind in ["temporary", "stable"] {
                let _ = unmount(at.join("mount").join(tenant).join(kind), UnmountFlags::DETACH);
            }
            let _ = unmount(at.join("run/temporary").join(tenant), UnmountFlags::DETACH);
        }
        let _ = unmount(at.join("mount"), UnmountFlags::DETACH);
        end(&self.service);
        end(&self.virtiofsd);
    }
}

fn minerva_fs(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-fs"));
    command.arg("--config").arg(folder.join("fs.toml"));
    command
}

fn serve(folder: &Path) -> Running {
    let service = Running(minerva_fs(folder).stderr(Stdio::inherit()).spawn().unwrap());
    let begun = Instant::now();
    while ask(&folder.join("run/control.sock"), &Request::Status).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the service does not serve");
        std::thread::sleep(Duration::from_millis(20));
    }
    service
}

/// Whether the process has become it, with the socket and the namespaces that it got.
fn is_virtiofsd(process: &Child) -> bool {
    std::fs::read_to_string(format!("/proc/{}/comm", process.id())).is_ok_and(|name| name.trim() == "virtiofsd")
}

/// Also after a panic of whoever had it: a second one while the host is dropped would end all tests.
fn held(process: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end(process: &Mutex<Option<Running>>) {
    drop(held(process).take());
}
