//! A pool of a test's own, and the service over it. Whatever it makes is gone with it.

use minerva_api::cache::{Answer, Request, TenantStatus, ask};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const TENANT: &str = "web";

/// Directories of a test.
pub(crate) struct PoolFolder {
    pub(crate) folder: tempfile::TempDir,
}

/// The service; killed when dropped.
pub(crate) struct Service(pub(crate) Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for PoolFolder {
    fn drop(&mut self) {
        for tenant in [TENANT, "other"] {
            for kind in ["temporary", "stable"] {
                let _ = unmount(self.folder.path().join("mount").join(tenant).join(kind), UnmountFlags::DETACH);
            }
            let _ = unmount(self.folder.path().join("run/temporary").join(tenant), UnmountFlags::DETACH);
        }
    }
}

impl PoolFolder {
    /// One tenant with these settings.
    pub(crate) fn new(tenant: &str) -> Self {
        Self::with(tenant, "")
    }

    /// And further tables.
    pub(crate) fn with(tenant: &str, tables: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("minerva-test-fs-").tempdir().unwrap();
        let place = Self { folder };
        place.write(tenant, tables);
        place
    }

    pub(crate) fn write(&self, tenant: &str, tables: &str) {
        self.write_tables(&format!("[tenants.{TENANT}]\n{tenant}\n{tables}\n"));
    }

    /// The same without the one tenant.
    pub(crate) fn write_tables(&self, tables: &str) {
        let path = self.folder.path().display();
        let text = format!(
            "[server]\nmount = \"{path}/mount\"\nruntime = \"{path}/run\"\n[pools.stable]\npath = \"{path}/pool\"\n{tables}"
        );
        std::fs::write(self.config(), text).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("fs.toml")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("mount").join(TENANT).join("temporary")
    }

    pub(crate) fn stable(&self) -> PathBuf {
        self.folder.path().join("mount").join(TENANT).join("stable")
    }

    /// Where the data of `stable` really lie.
    pub(crate) fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-fs"));
        command.arg("--config").arg(self.config());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Starts it, and waits until it serves.
    pub(crate) fn serve(&self) -> Service {
        self.wait_for(self.command())
    }

    /// The same, and it kills itself at a step of a move.
    pub(crate) fn serve_dying(&self, step: u32) -> Service {
        let mut command = self.command();
        command.env("MINERVA_TEST_DIE_AT_STEP", step.to_string());
        self.wait_for(command)
    }

    /// The same, and it may have so many files open.
    pub(crate) fn serve_with_descriptors(&self, most: u64) -> Service {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={most}:{most}")).arg(env!("CARGO_BIN_EXE_minerva-fs"));
        command.arg("--config").arg(self.config());
        self.wait_for(command)
    }

    /// The program with these arguments in a namespace of mounts of its own, which a shell prepares.
    pub(crate) fn in_namespace(&self, prepare: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        let script = format!("set -e; {prepare}; exec \"$0\" \"$@\"");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        command.arg(env!("CARGO_BIN_EXE_minerva-fs")).arg("--config").arg(self.config()).args(arguments);
        command
    }

    /// Starts it, and waits until it serves.
    pub(crate) fn wait_for(&self, command: Command) -> Service {
        self.wait_with(command, Stdio::inherit())
    }

    /// The same, and what it says goes to a file.
    pub(crate) fn wait_with_log(&self, command: Command, log: &Path) -> Service {
        self.wait_with(command, std::fs::File::create(log).unwrap().into())
    }

    fn wait_with(&self, mut command: Command, log: Stdio) -> Service {
        let mut service = Service(command.stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while !self.is_ready() {
            assert!(service.0.try_wait().unwrap().is_none(), "the service ended before it served");
            assert!(begun.elapsed() < PATIENCE, "the service does not serve");
            std::thread::sleep(Duration::from_millis(5));
        }
        service
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("run/control.sock")
    }

    /// What is answered to a user who is not root, by a line as it goes over the socket.
    pub(crate) fn ask_as_nobody(&self, line: &str) -> Answer {
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode())\n\
                      print(s.makefile().readline())";
        let mut command = Command::new("python3");
        command.arg("-c").arg(script).arg(self.socket()).arg(line);
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        std::os::unix::process::CommandExt::gid(&mut command, 65534);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn is_ready(&self) -> bool {
        ask(&self.socket(), &Request::Status).is_ok()
    }

    pub(crate) fn tenants(&self) -> Vec<TenantStatus> {
        match ask(&self.socket(), &Request::Status).unwrap() {
            Answer::Status { tenants, .. } => tenants,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&self) -> TenantStatus {
        self.tenants().into_iter().find(|tenant| tenant.name == TENANT).unwrap()
    }

    /// Long enough for the service, which looks once a second for what is to leave memory, to have looked: nothing tells that it
    /// looked and let all of it stay.
    pub(crate) fn let_it_look(&self) {
        std::thread::sleep(Duration::from_millis(1500));
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&TenantStatus) -> bool) {
        self.until_status(what, |tenants| tenants.iter().find(|tenant| tenant.name == TENANT).is_some_and(&is_so));
    }

    /// The same of all tenants.
    pub(crate) fn until_status(&self, what: &str, is_so: impl Fn(&[TenantStatus]) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.tenants()) {
            assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", self.tenants());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Service {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(mut self) -> bool {
        kill_process(self.pid(), Signal::TERM).unwrap();
        self.0.wait().unwrap().success()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Whether the kernel reads files by itself here; where not, the test that needs it says so.
pub(crate) fn is_mounted(at: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(4) == at.to_str())
}
