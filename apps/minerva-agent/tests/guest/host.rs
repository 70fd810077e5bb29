//! The host of a guest: minervad, and a cgroup that is the machine's tenant. Everything is named `minerva-test-…`, and dropping
//! the host removes it.

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

    /// Starts the daemon, with the listeners that `participation` says.
    pub(crate) fn serve(&mut self, minervad: &Path, participation: &str) {
        let (at, name) = (self.directory.path().display(), &self.name);
        let text = format!(
            "mode = \"enforce\"\n[observe]\nslice = \"100ms\"\n\
             [daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\nsocket = \"{at}/minervad.sock\"\n\
             include = [\"{name}\"]\ndevices_only = [\"minerva-test-none\"]\n\
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let status = runtime.block_on(async {
            let mut operator = minerva_api::client::connect(&self.socket).await.ok()?;
            Some(operator.status(v1::StatusRequest {}).await.ok()?.into_inner())
        });
        status?.slice?.tenants.into_iter().find(|tenant| tenant.cgroup == self.cgroup)
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
