//! The host of a guest: minervad, and a cgroup that is the machine's tenant. Everything is named `minerva-test-…`, and dropping
//! the host removes it.

use minerva_api::client::Operator;
use minerva_api::v1;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CGROUPS: &str = "/sys/fs/cgroup/blkio";
const PREFIX: &str = "minerva-test-agent-guest-";
/// The machine's tenant.
pub(crate) const TENANT: &str = "vm";
/// Far above anything that is waited for; only a broken daemon takes as long.
const PATIENCE: Duration = Duration::from_secs(60);
static HOSTS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Host {
    pub(crate) directory: tempfile::TempDir,
    name: String,
    daemon: Option<Child>,
}

impl Host {
    /// Nothing, with the reason printed, where the machine cannot give it.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new(CGROUPS).join("blkio.throttle.io_serviced").exists() {
            println!("skipped: needs root and the blkio controller of cgroup v1 at {CGROUPS}");
            return None;
        }
        sweep();
        let name = format!("{PREFIX}{}-{}", std::process::id(), HOSTS.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("a directory");
        let host = Self { directory, name, daemon: None };
        fs::create_dir_all(host.cgroup()).expect("a cgroup");
        Some(host)
    }

    /// A program beside the agent, stripped so that it fits a guest's memory.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let built = Path::new(env!("CARGO_BIN_EXE_minerva-agent")).with_file_name(name);
        let copy = self.path(name);
        let stripped = Command::new("strip").arg("-o").arg(&copy).arg(&built).status();
        if !stripped.is_ok_and(|status| status.success()) {
            println!("skipped: needs {name} built beside minerva-agent (cargo build -p {name}), and `strip`");
            return None;
        }
        Some(copy)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where the machine runs.
    pub(crate) fn cgroup(&self) -> PathBuf {
        Path::new(CGROUPS).join(&self.name).join(TENANT)
    }

    /// Starts the daemon, with the listeners that `participation` says and without a disk.
    pub(crate) fn serve(&mut self, minervad: &Path, participation: &str) {
        self.serve_disk(minervad, participation, "minerva-test-none");
    }

    /// The same with a disk, by its kernel name.
    pub(crate) fn serve_disk(&mut self, minervad: &Path, participation: &str, disk: &str) {
        let (at, name) = (self.directory.path().display(), &self.name);
        let text = format!(
            "mode = \"enforce\"\n[observe]\nslice = \"100ms\"\n\
             [daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\nsocket = \"{at}/minervad.sock\"\n\
             include = [\"{name}\"]\ndevices_only = [\"{disk}\"]\n\
             [named]\nparent = \"{name}-named\"\n[[rules]]\npattern = \"{name}/{TENANT}\"\nname = \"{TENANT}\"\n\
             [participation]\n{participation}"
        );
        let config = self.path("minerva.toml");
        fs::write(&config, text).expect("the operator's file");
        let log = fs::File::create(self.path("log")).expect("a log");
        let daemon = Command::new(minervad).arg("--config").arg(&config).stderr(log).spawn().expect("the daemon");
        self.daemon = Some(daemon);
        let begin = Instant::now();
        while Watch::of(self).tenant().is_none() {
            assert!(begin.elapsed() < PATIENCE, "the daemon does not see the tenant:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
        remove_groups(&Path::new(CGROUPS).join(format!("{}-named", self.name)));
        remove_groups(&Path::new(CGROUPS).join(&self.name));
    }
}

/// Looks at the machine's tenant as an operator does.
#[derive(Clone)]
pub(crate) struct Watch {
    socket: PathBuf,
    cgroup: String,
}

impl Watch {
    pub(crate) fn of(host: &Host) -> Self {
        Self { socket: host.path("minervad.sock"), cgroup: format!("{}/{TENANT}", host.name) }
    }

    pub(crate) fn tenant(&self) -> Option<v1::Tenant> {
        let status =
            self.ask(async |mut operator| Some(operator.status(v1::StatusRequest {}).await.ok()?.into_inner()));
        status?.slice?.tenants.into_iter().find(|tenant| tenant.cgroup == self.cgroup)
    }

    /// What the machine owes; nothing where the daemon does not answer.
    pub(crate) fn owed(&self) -> Option<Vec<v1::BackgroundQueue>> {
        let asked = v1::BackgroundRequest::default();
        let answer = self.ask(async |mut operator| Some(operator.background(asked).await.ok()?.into_inner()))?;
        Some(answer.queues.into_iter().filter(|queue| queue.kind == "owed").collect())
    }

    fn ask<T>(&self, question: impl AsyncFnOnce(Operator) -> Option<T>) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { question(minerva_api::client::connect(&self.socket).await.ok()?).await })
    }
}

/// A disk under BFQ, which nobody uses. Dropping it detaches it.
pub(crate) struct LoopDisk {
    /// Its kernel name.
    pub(crate) name: String,
}

impl LoopDisk {
    /// Nothing, with the reason printed, where the machine cannot give it.
    pub(crate) fn new(host: &Host) -> Option<Self> {
        let image = host.path("disk.img");
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a backing file");
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            println!("skipped: needs a loop device");
            return None;
        };
        let name = String::from_utf8_lossy(&attached.stdout).trim().trim_start_matches("/dev/").to_owned();
        let disk = Self { name };
        if fs::write(format!("/sys/block/{}/queue/scheduler", disk.name), "bfq").is_err() {
            println!("skipped: needs the bfq elevator");
            return None;
        }
        Some(disk)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]).status();
    }
}

/// Removes a group with those below it, once they are empty.
fn remove_groups(parent: &Path) {
    let children = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    for group in children.filter(|path| path.is_dir()).collect::<Vec<_>>().into_iter().chain([parent.to_owned()]) {
        for _ in 0..50 {
            match fs::remove_dir(&group) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => break,
            }
        }
    }
}

/// Removes what killed tests left.
fn sweep() {
    for entry in fs::read_dir(CGROUPS).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove_groups(&entry.path());
        }
    }
}
