//! The servers that are compared: ours as a process of its own, and QEMU's.

use minerva_blk::tag::TagBounds;
use minerva_blk::{Image, ImageOptions, PhysicalDisk, Server, TransferKind, VmDisk, VmTerms};
use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName, UNIT_BYTES};
use minerva_linux_threads::shorten_time_slice;
use minerva_model::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The word with which this program is the server.
pub(crate) const SERVE: &str = "serve";
pub(crate) const CLIENT_PROCESSOR: usize = 1;
pub(crate) const SERVER_PROCESSOR: usize = 0;
const DEPTH: u32 = 128;
/// What each disk is promised under a scheduler that keeps contracts: a little, so that most is sent on spare time.
const RATE: f64 = 16e6;
const BURST: f64 = 262_144.0;
const DELAY: Nanos = Nanos::from_millis(20);

/// What is behind the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackEnd {
    /// Nothing: ours, and QEMU's `null-co`.
    Null,
    /// A file in tmpfs, through the page cache.
    File,
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::File => "file",
        })
    }
}

/// Which server is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    /// Of ours; none for QEMU's.
    pub(crate) scheduler: Option<&'static str>,
    pub(crate) back_end: BackEnd,
    pub(crate) disks: usize,
}

/// A server, ended when dropped.
pub(crate) struct Running {
    child: Child,
    folder: PathBuf,
    pub(crate) disks: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// On a processor of its own.
    pub(crate) fn start(arm: Arm, folder: &Path, image: &Path) -> Self {
        (0..arm.disks).for_each(|disk| drop(fs::remove_file(socket(folder, disk))));
        let mut command = match arm.scheduler {
            Some(scheduler) => ours(arm, scheduler, folder, image),
            None => qemu(arm.back_end, &socket(folder, 0), image),
        };
        // A child has the processors of who starts it.
        pin(SERVER_PROCESSOR);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a server");
        pin(CLIENT_PROCESSOR);
        Self { child, folder: folder.to_owned(), disks: arm.disks }
    }

    pub(crate) fn socket(&self, disk: usize) -> PathBuf {
        socket(&self.folder, disk)
    }

    /// What all its threads used, in seconds.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("schedstat")).ok();
        let texts = threads.filter_map(|thread| of(thread.ok()?));
        texts.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
    }

    /// What of its memory is nobody else's and of no file.
    pub(crate) fn anonymous_bytes(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
    }
}

/// This thread, and what it starts, runs there; where there is no such processor, anywhere.
pub(crate) fn pin(processor: usize) {
    let allowed = sched_getaffinity(None).map_or(0, |set| set.count());
    if allowed == 0 || std::thread::available_parallelism().is_ok_and(|count| count.get() == 1 && allowed > 1) {
        return;
    }
    let mut set = CpuSet::new();
    set.set(processor);
    // Where it is refused the figure says nothing wrong, only more widely.
    let _ = sched_setaffinity(None, &set);
}

fn socket(folder: &Path, disk: usize) -> PathBuf {
    folder.join(format!("socket{disk}"))
}

pub(crate) fn has_qemu() -> bool {
    Command::new("qemu-storage-daemon").arg("--version").stdout(Stdio::null()).status().is_ok()
}

fn qemu(back_end: BackEnd, socket: &Path, image: &Path) -> Command {
    let mut command = Command::new("qemu-storage-daemon");
    command.args(["--object", "iothread,id=t"]);
    match back_end {
        BackEnd::Null => {
            let length = fs::metadata(image).expect("the image").len();
            command.arg("--blockdev").arg(format!("driver=null-co,node-name=d,size={length}"));
        }
        BackEnd::File => {
            let file = format!("driver=file,node-name=f,filename={},aio=io_uring,locking=off", image.display());
            command.arg("--blockdev").arg(file).args(["--blockdev", "driver=raw,node-name=d,file=f"]);
        }
    }
    let socket = format!("addr.type=unix,addr.path={}", socket.display());
    command.arg("--export").arg(format!("type=vhost-user-blk,id=e,node-name=d,writable=on,iothread=t,{socket}"));
    command
}

fn ours(arm: Arm, scheduler: &str, folder: &Path, image: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args([SERVE, scheduler, &arm.back_end.to_string(), &arm.disks.to_string()]).arg(folder).arg(image);
    command
}

/// Serves until its standard input ends: scheduler, back end, disks, folder, image.
pub(crate) fn serve(arguments: &[String]) {
    let [scheduler, back_end, disks, folder, image] = arguments else { panic!("five words: {arguments:?}") };
    // As `minerva-blk` does.
    if std::env::var_os("MINERVA_SPEED_USUAL_SLICE").is_none() {
        shorten_time_slice().expect("a time slice");
    }
    let scheduler = *SchedulerName::ALL.iter().find(|name| name.as_str() == scheduler).expect("a scheduler");
    let transfer = if back_end == "null" { TransferKind::Null } else { TransferKind::Uring };
    let build = BuildOptions::for_disk(false, DEPTH);
    let poll_max = Nanos::from_micros(std::env::var("MINERVA_SPEED_POLL_US").map_or(32, |text| text.parse().unwrap()));
    let (name, cpus) = ("speed".to_owned(), Vec::new());
    let physical = PhysicalDisk { name, scheduler, build, transfer, poll_max, cpus, request_log: None };
    // All read one file, which only readers may do.
    let options = ImageOptions { is_read_only: true, is_direct: false };
    let contract = Some(scheduler.contract(RATE, BURST, DELAY, UNIT_BYTES));
    let disk = |number| VmDisk {
        name: format!("disk{number}"),
        image: Arc::new(Image::open(image.as_ref(), options).expect("the image")),
        physical: 0,
        socket: socket(folder.as_ref(), number),
        terms: VmTerms {
            parameters: FlowParameters { contract, ..FlowParameters::default() },
            tags: TagBounds { default: 64, max: 254 },
            contract: None,
        },
        queues: 1,
        tell_hang_up: |_, _| {},
        tell_failure: |_, _| {},
    };
    let disks = (0..disks.parse().expect("a number")).map(disk).collect();
    let server = Server::start(&[physical], disks).expect("a server");
    let _ = std::io::stdin().read(&mut [0]);
    server.stop();
}
