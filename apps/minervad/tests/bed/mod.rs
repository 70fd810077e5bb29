//! A test bed on the real kernel: a loop device under BFQ, two tenants that read from it, and the daemon as a child process that
//! looks at these only. Everything is named `minerva-test-…`, and dropping the bed removes it.

mod hierarchy;
mod reader;
pub(crate) mod replay;

use hierarchy::Hierarchy;
use minerva_api::v1;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Far above anything that is waited for; only a broken daemon takes as long.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How many times as long everything takes on this machine as on one with processors of its own: whoever waits is that much more
/// patient, and looks that much less often, as each look takes time from what it waits for.
pub(crate) const SLOWNESS: &str = "MINERVA_TEST_SLOWNESS";
static BEDS: AtomicU32 = AtomicU32::new(0);

/// The seed of what a test draws: a figure's, or one of its own. The test prints it.
pub(crate) fn drawn_seed() -> u64 {
    let given = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| fastrand::u64(..))
}

/// Polls until it holds.
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    until_or_tell(what, holds, String::new);
}

/// Polls until it holds, and tells more when that is in vain.
fn until_or_tell(what: &str, mut holds: impl FnMut() -> bool, more: impl Fn() -> String) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE * slowness(), "waited in vain until {what}\n{}", more());
        std::thread::sleep(LOOK_AGAIN * slowness());
    }
}

/// See [`SLOWNESS`].
pub(crate) fn slowness() -> u32 {
    std::env::var(SLOWNESS).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The bed.
pub(crate) struct Bed {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) device: String,
    pub(crate) name: String,
    pub(crate) hierarchy: &'static Hierarchy,
    readers: Vec<Child>,
    mounted: Option<PathBuf>,
}

impl Bed {
    /// A bed with readers `heavy` and `sparing`; nothing, with the reason printed, where the machine cannot give it.
    pub(crate) fn new() -> Option<Self> {
        Self::with_disk(64 << 20)
    }

    /// The same with a disk of so many bytes.
    pub(crate) fn with_disk(size_bytes: u64) -> Option<Self> {
        let mounted = Hierarchy::mounted().filter(|_| rustix::process::geteuid().is_root());
        let Some(hierarchy) = mounted else {
            eprintln!("skipped: needs root, and the blkio (v1) or io (v2) controller below /sys/fs/cgroup");
            return None;
        };
        let name = format!("minerva-test-apps-{}-{}", std::process::id(), BEDS.fetch_add(1, Ordering::Relaxed));
        sweep(hierarchy.root);
        let directory = tempfile::Builder::new().prefix("minerva-test-apps-").tempdir().expect("a directory");
        let image = directory.path().join(format!("{name}.img"));
        fs::File::create(&image).and_then(|file| file.set_len(size_bytes)).expect("a backing file");
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            eprintln!("skipped: needs a loop device");
            return None;
        };
        let device = String::from_utf8_lossy(&attached.stdout).trim().trim_start_matches("/dev/").to_owned();
        let bed = Self { directory, device, name, hierarchy, readers: Vec::new(), mounted: None };
        let queue = PathBuf::from("/sys/block").join(&bed.device).join("queue");
        if fs::write(queue.join("scheduler"), "bfq").is_err() {
            eprintln!("skipped: needs the bfq elevator");
            return None;
        }
        fs::write(queue.join("iosched/low_latency"), "0").expect("bfq has low_latency");
        for tenant in ["heavy", "sparing"] {
            fs::create_dir_all(bed.cgroup(tenant)).expect("a cgroup");
        }
        hierarchy.make(&bed.root().join(&bed.name));
        Some(bed)
    }

    /// The root of the hierarchy.
    pub(crate) fn root(&self) -> &'static Path {
        Path::new(self.hierarchy.root)
    }

    pub(crate) fn cgroup(&self, tenant: &str) -> PathBuf {
        self.root().join(&self.name).join(tenant)
    }

    /// The disk's number, as knobs name it.
    pub(crate) fn number(&self) -> String {
        let text = fs::read_to_string(format!("/sys/block/{}/dev", self.device)).unwrap_or_default();
        text.trim().to_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("run/minervad.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("minerva.toml")
    }

    /// Writes the operator's file, with `extra` before the sections.
    pub(crate) fn write_config(&self, extra: &str) {
        let (at, name, device) = (self.directory.path().display(), &self.name, &self.device);
        let text = format!(
            "{extra}\n[observe]\nslice = \"100ms\"\n\
             [fennel]\nrecent_half_life = \"1s\"\nlong_term_half_life = \"2s\"\ngroup_change_slices = 2\n\
             [actuation]\nverify_every_slices = 5\n\
             [daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\nsocket = \"{at}/run/minervad.sock\"\n\
             metrics = \"unix:{at}/run/metrics.sock\"\ninclude = [\"{name}\"]\ndevices_only = [\"{device}\"]\n\
             [named]\nparent = \"{name}\"\n[log]\nlevel = \"debug\"\n"
        );
        // Renamed into place, so that the daemon never sees half a file.
        let new = self.directory.path().join("new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, self.config())).expect("the operator's file");
    }

    /// Has the daemon remember for an hour who was heavy.
    pub(crate) fn remember_long(&self) {
        let text = fs::read_to_string(self.config()).expect("the operator's file");
        let text = text.replace(
            "recent_half_life = \"1s\"\nlong_term_half_life = \"2s\"",
            "recent_half_life = \"1h\"\nlong_term_half_life = \"1h\"",
        );
        fs::write(self.config(), text).expect("the operator's file");
    }

    /// Lets both tenants read, the one some thirty times as much as the other.
    pub(crate) fn start_readers(&mut self) {
        for (tenant, count) in [("heavy", 64), ("sparing", 2)] {
            self.start_reader(tenant, count);
        }
    }

    /// Lets a tenant read `count` times 64 KiB, pause, and so on.
    pub(crate) fn start_reader(&mut self, tenant: &str, count: u32) {
        self.start_reader_with_pauses(tenant, count, 0.05);
    }

    /// The same with pauses of so many seconds.
    pub(crate) fn start_reader_with_pauses(&mut self, tenant: &str, count: u32, pause_seconds: f64) {
        let procs = self.cgroup(tenant).join("cgroup.procs");
        let read = format!("dd if=/dev/{} of=/dev/null bs=64k count={count} iflag=direct status=none", self.device);
        let script = format!("echo $$ > {} && while {read}; do sleep {pause_seconds}; done", procs.display());
        let reader = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().expect("a shell");
        self.readers.push(reader);
    }

    /// Lets a tenant read all the time, also while a slow machine would take slices to start another `dd`.
    pub(crate) fn start_reader_without_pauses(&mut self, tenant: &str) {
        self.readers.push(reader::start(&self.device, &self.cgroup(tenant)));
    }

    pub(crate) fn stop_readers(&mut self) {
        for mut reader in self.readers.drain(..) {
            let _ = reader.kill();
            let _ = reader.wait();
        }
    }

    /// The tenant's weight on the bed's disk.
    pub(crate) fn weight(&self, tenant: &str) -> u32 {
        self.weight_of(&self.cgroup(tenant))
    }

    /// A group's.
    pub(crate) fn weight_of(&self, group: &Path) -> u32 {
        let text = fs::read_to_string(group.join(self.hierarchy.weights)).unwrap_or_default();
        let number = self.number();
        let own = text.lines().find_map(|line| line.strip_prefix(&number)?.trim().parse().ok());
        own.or_else(|| text.lines().find_map(|line| line.strip_prefix("default ")?.trim().parse().ok())).unwrap_or(0)
    }

    /// Has the kernel count who uses the bed's disk though it is not under BFQ.
    pub(crate) fn arm_throttle(&self) {
        self.hierarchy.arm(&self.number());
    }

    /// The tenant's cap on the bed's disk, in bytes read (`read`) or written (`write`) a second.
    pub(crate) fn cap(&self, tenant: &str, way: &str) -> Option<u64> {
        self.hierarchy.cap(&self.cgroup(tenant), &self.number(), way)
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn start(&self) -> Daemon {
        self.start_under(&[])
    }

    /// The same, started by a program that changes what it may, such as `setpriv`.
    pub(crate) fn start_under(&self, wrapper: &[String]) -> Daemon {
        let mut daemon = self.launch(wrapper);
        until("the daemon answers", || {
            assert!(daemon.child.try_wait().expect("a child").is_none(), "the daemon ended: {}", daemon.log());
            daemon.slices() > 0
        });
        daemon
    }

    /// The same, without waiting.
    pub(crate) fn launch(&self, wrapper: &[String]) -> Daemon {
        let log = self.directory.path().join("log");
        let stderr = fs::File::options().create(true).append(true).open(&log).expect("a log");
        let daemon = env!("CARGO_BIN_EXE_minervad").to_owned();
        let words: Vec<String> = wrapper.iter().cloned().chain([daemon]).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--config").arg(self.config()).stderr(stderr);
        Daemon { child: command.spawn().expect("the daemon"), log, socket: self.socket() }
    }

    /// Runs the daemon to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minervad"));
        command.arg("--config").arg(self.config()).args(arguments).output().expect("the daemon")
    }

    /// The same by a user who may do nothing, if there is a way to become one.
    pub(crate) fn run_as_nobody(&self, arguments: &[&str]) -> Option<Output> {
        // The build directory may lie where nobody may look.
        let copy = self.directory.path().join("minervad");
        fs::copy(env!("CARGO_BIN_EXE_minervad"), &copy).expect("a copy");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(copy);
        let output = command.arg("--config").arg(self.config()).args(arguments).output();
        if output.is_err() {
            eprintln!("skipped: needs setpriv");
        }
        output.ok()
    }

    /// Another program that sets a tenant's weight all the time.
    pub(crate) fn rival(&self, tenant: &str, weight: u32) -> Child {
        let knob = self.cgroup(tenant).join(self.hierarchy.weights);
        let script = format!("while echo {} {weight} > {}; do sleep 0.02; done", self.number(), knob.display());
        Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().expect("a shell")
    }

    /// Puts a disk of sixteen megabytes, more than the log of SQLite takes, where the store will be; its directory.
    pub(crate) fn small_state_disk(&mut self) -> Option<PathBuf> {
        let state = self.directory.path().join("state");
        fs::create_dir(&state).expect("a directory");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "minerva-test"]).arg(&state).status();
        if !mount.is_ok_and(|status| status.success()) {
            eprintln!("skipped: needs to mount");
            return None;
        }
        self.mounted = Some(state.clone());
        Some(state)
    }

    /// What a Prometheus server would get.
    pub(crate) fn scrape(&self) -> String {
        use std::io::{Read, Write};
        let path = self.directory.path().join("run/metrics.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(path).expect("the metrics socket");
        stream.set_read_timeout(Some(PATIENCE * slowness())).expect("a limit");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("ask");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a header and a body");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        body.to_owned()
    }

    /// One number of it, which is not there before it is first counted.
    pub(crate) fn metric_or_zero(&self, name: &str) -> f64 {
        let text = self.scrape();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    /// One number of it.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.scrape();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no metric {name} in {text}"))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop_readers();
        for suffix in ["", "-named", "-background", "-named-background"] {
            let group = self.root().join(format!("{}{suffix}", self.name));
            // A test that failed may leave a daemon with work in these groups; another panic now would end all other tests.
            if !remove_tree(&group) && !std::thread::panicking() {
                until("the tenants' processes have ended", || remove_tree(&group));
            }
        }
        // A test may have detached the disk itself, and the number may be another bed's by now.
        let backing = Path::new("/sys/block").join(&self.device).join("loop/backing_file");
        if fs::read_to_string(backing).is_ok_and(|file| file.contains(&self.name)) {
            let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.device)]).output();
        }
        if let Some(mounted) = &self.mounted {
            // Lazily: a daemon that a failed test leaves to be killed may still look into it.
            let _ = Command::new("umount").arg("-l").arg(mounted).output();
        }
    }
}

/// Removes a group and those below it; false while processes keep it.
fn remove_tree(group: &Path) -> bool {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}

/// Removes what killed test runs left behind.
fn sweep(root: &str) {
    let is_left = |name: &str| {
        let pid =
            name.split_once("minerva-test-apps-").and_then(|(_, rest)| rest.split('-').next()?.parse::<u32>().ok());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
    };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if is_left(&entry.file_name().to_string_lossy()) {
            remove_tree(&entry.path());
        }
    }
    let loops = Command::new("losetup").args(["--noheadings", "--output", "NAME,BACK-FILE"]).output();
    for line in loops.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default().lines() {
        if let Some((device, file)) = line.split_once(' ')
            && file.rsplit('/').next().is_some_and(is_left)
        {
            let _ = Command::new("losetup").args(["--detach", device]).output();
        }
    }
}

/// The daemon as a child; dropping it kills it.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    log: PathBuf,
    socket: PathBuf,
}

impl Daemon {
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks over the socket.
    pub(crate) fn ask<T>(&self, work: impl AsyncFnOnce(minerva_api::client::Operator) -> T) -> Option<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { Some(work(minerva_api::client::connect(&self.socket).await.ok()?).await) })
    }

    pub(crate) fn status(&self) -> Option<v1::StatusResponse> {
        let answer = self.ask(async |mut client| client.status(v1::StatusRequest {}).await.ok());
        Some(answer??.into_inner())
    }

    pub(crate) fn slices(&self) -> u64 {
        self.status().and_then(|status| status.totals).map_or(0, |totals| totals.slices)
    }

    /// Polls until it holds, and shows the daemon's log when that is in vain.
    pub(crate) fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        until_or_tell(what, holds, || self.log());
    }

    /// Waits for slices that begin from now on.
    pub(crate) fn pass_slices(&self, count: u64) {
        let target = self.slices() + count;
        until("slices pass", || self.slices() >= target);
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
