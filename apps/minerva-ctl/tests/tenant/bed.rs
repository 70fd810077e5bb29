//! A daemon in `enforce` on a loop device under BFQ, and a cgroup that is a tenant. Everything is named `minerva-test-…`, and
//! dropping the bed removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CGROUPS: &str = "/sys/fs/cgroup/blkio";
const PREFIX: &str = "minerva-test-ctl-tenant-";
static BEDS: AtomicU32 = AtomicU32::new(0);

/// The tool, which goes to the server at this address.
pub(crate) fn tool(address: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.args(arguments).env("MINERVA_ADDRESS", address);
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Polls until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) struct Bed {
    pub(crate) directory: tempfile::TempDir,
    name: String,
    /// The loop device, such as `loop3`.
    pub(crate) device: String,
    daemon: Option<Child>,
}

impl Bed {
    /// Nothing, with the reason printed, where the machine cannot give it.
    pub(crate) fn new() -> Option<Self> {
        let minervad = Path::new(env!("CARGO_BIN_EXE_minerva-ctl")).with_file_name("minervad");
        if !minervad.exists() {
            eprintln!("skipped: needs minervad beside minerva-ctl (cargo build -p minervad)");
            return None;
        }
        if !rustix::process::geteuid().is_root() || !Path::new(CGROUPS).join("blkio.throttle.io_serviced").exists() {
            eprintln!("skipped: needs root and the blkio controller of cgroup v1 at {CGROUPS}");
            return None;
        }
        sweep();
        let name = format!("{PREFIX}{}-{}", std::process::id(), BEDS.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir().expect("a directory");
        let image = directory.path().join(format!("{name}.img"));
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a backing file");
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            eprintln!("skipped: needs a loop device");
            return None;
        };
        let device = text(&attached.stdout).trim().trim_start_matches("/dev/").to_owned();
        let mut bed = Self { directory, name, device, daemon: None };
        let queue = Path::new("/sys/block").join(&bed.device).join("queue");
        if fs::write(queue.join("scheduler"), "bfq").is_err() {
            eprintln!("skipped: needs the bfq elevator");
            return None;
        }
        fs::write(queue.join("iosched/low_latency"), "0").expect("bfq has low_latency");
        fs::create_dir_all(bed.cgroup()).expect("a cgroup");
        fs::write(bed.config(), bed.settings()).expect("the operator's file");
        let log = fs::File::create(bed.directory.path().join("log")).expect("a log");
        let daemon = Command::new(minervad).arg("--config").arg(bed.config()).stderr(log).spawn().expect("the daemon");
        bed.daemon = Some(daemon);
        until("the daemon answers", || bed.as_operator(&["--json", "status"]).status.code() != Some(2));
        Some(bed)
    }

    fn settings(&self) -> String {
        let (at, name, device) = (self.directory.path().display(), &self.name, &self.device);
        format!(
            "mode = \"enforce\"\n[observe]\nslice = \"100ms\"\n\
             [daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\nsocket = \"{at}/run/minervad.sock\"\n\
             include = [\"{name}\"]\ndevices_only = [\"{device}\"]\n\
             [named]\nparent = \"{name}/named\"\n[participation]\nsocket = \"{at}/run/tenant.sock\"\n"
        )
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("minerva.toml")
    }

    fn cgroup(&self) -> PathBuf {
        Path::new(CGROUPS).join(&self.name).join("vm")
    }

    /// The disk's kernel number, `MAJ:MIN`.
    pub(crate) fn number(&self) -> String {
        fs::read_to_string(format!("/sys/block/{}/dev", self.device)).expect("the disk").trim().to_owned()
    }

    /// The disk's node.
    pub(crate) fn node(&self) -> String {
        format!("/dev/{}", self.device)
    }

    /// Where the bed keeps its files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where tenants are served.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}/run/tenant.sock", self.directory.path().display())
    }

    /// The tool as an operator uses it.
    pub(crate) fn as_operator(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        // Without an address: the operator's file says where tenants are served.
        command.arg("--config").arg(self.config()).args(arguments).env_remove("MINERVA_ADDRESS");
        command.output().expect("the tool")
    }

    /// A shell in the tenant's cgroup, which knows the tool as `$CTL`.
    pub(crate) fn tenant_shell(&self, script: &str) -> Command {
        let script = format!("echo $$ > {}/cgroup.procs || exit 99; {script}", self.cgroup().display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("CTL", env!("CARGO_BIN_EXE_minerva-ctl"));
        command.env("MINERVA_ADDRESS", self.address());
        command
    }

    /// The same, run to its end.
    pub(crate) fn as_tenant(&self, script: &str) -> Output {
        self.tenant_shell(script).output().expect("a shell")
    }

    /// One object that the tool printed for the tenant.
    pub(crate) fn whoami(&self) -> serde_json::Value {
        let output = self.as_tenant("$CTL --json whoami");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}\n{}", text(&output.stderr), self.log()))
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(daemon.id()).unwrap_or(0)) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let begin = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) && begin.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(20));
            }
            // One that hangs would have all of this wait for ever.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // What still runs in the tenant's cgroup is a test's that failed.
        for pid in fs::read_to_string(self.cgroup().join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        remove_groups(&Path::new(CGROUPS).join(&self.name).join("named"));
        remove_groups(&Path::new(CGROUPS).join(&self.name));
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.device)]).output();
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
    let owner_lives = |name: &str| {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).unwrap_or_default();
        Path::new("/proc").join(pid).exists()
    };
    for entry in fs::read_dir(CGROUPS).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PREFIX) && !owner_lives(&name) {
            remove_groups(&entry.path().join("named"));
            remove_groups(&entry.path());
        }
    }
    let listed = Command::new("losetup").args(["--list", "--noheadings", "--output", "NAME,BACK-FILE"]).output();
    for line in listed.map(|output| text(&output.stdout)).unwrap_or_default().lines() {
        let Some((node, file)) = line.trim().split_once(' ') else { continue };
        let name = Path::new(file.trim().trim_end_matches(" (deleted)")).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(PREFIX) && !owner_lives(&name) {
            let _ = Command::new("losetup").args(["--detach", node]).output();
        }
    }
}
