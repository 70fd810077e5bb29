//! A server in this process, with sockets and images of a test's own.

#![allow(dead_code, reason = "each test program uses a part of it")]

use minerva_blk::tag::TagBounds;
use minerva_blk::{
    ContractTerms, Failure, Image, ImageOptions, PhysicalDisk, Resumption, Server, TransferKind, VmDisk, VmTerms,
};
use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName};
use minerva_model::Nanos;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// For so long a test waits for what happens in another thread.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One VM disk of a test.
pub(crate) struct TestDisk {
    pub(crate) image: PathBuf,
    pub(crate) options: ImageOptions,
    pub(crate) parameters: FlowParameters,
    /// What is measured.
    pub(crate) contract: Option<ContractTerms>,
    pub(crate) queues: u16,
}

/// A folder, and what is served from it.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Option<Server>,
    /// The name of its worker's thread.
    pub(crate) worker: String,
}

/// What was told of what images failed, of all servers of one program.
pub(crate) static FAILURES_TOLD: Mutex<Vec<Failure>> = Mutex::new(Vec::new());

fn tell_failure(_disk: &str, failure: Failure) {
    FAILURES_TOLD.lock().unwrap().push(failure);
}

/// Tests of one program run beside each other.
static NUMBER: AtomicU32 = AtomicU32::new(0);

pub(crate) const IMAGE_BYTES: u64 = 8 << 20;

impl Bench {
    pub(crate) fn folder() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("minerva-test-blk-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }

    /// One disk of [`IMAGE_BYTES`] without a scheduler's order, past the page cache where the file system can.
    pub(crate) fn one(queues: u16) -> Self {
        let folder = Self::folder();
        let disk = TestDisk { queues, ..disk(&folder.path().join("disk0")) };
        Self::start(folder, SchedulerName::Noop, 32, TransferKind::Uring, vec![disk])
    }

    /// Disks on one physical disk.
    pub(crate) fn start(
        folder: tempfile::TempDir,
        scheduler: SchedulerName,
        depth: u32,
        transfer: TransferKind,
        disks: Vec<TestDisk>,
    ) -> Self {
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let physical = physical(&name, scheduler, BuildOptions::for_disk(false, depth), transfer);
        Self::start_on(folder, physical, disks)
    }

    /// The same, of a disk of this host as it is given.
    pub(crate) fn start_on(folder: tempfile::TempDir, physical: PhysicalDisk, disks: Vec<TestDisk>) -> Self {
        let name = physical.name.clone();
        let disks = disks.into_iter().enumerate().map(|(number, disk)| VmDisk {
            name: format!("disk{number}"),
            image: Arc::new(Image::open(&disk.image, disk.options).unwrap()),
            physical: 0,
            socket: socket(folder.path(), number),
            terms: terms(disk.parameters, disk.contract),
            queues: disk.queues,
            tell_hang_up: |_, _| {},
            tell_failure,
        });
        let server = Some(Server::start(&[physical], disks.collect()).unwrap());
        Self { folder, server, worker: format!("blk-{name}") }
    }

    /// A second server goes on with the first disk, with nothing promised.
    pub(crate) fn hand_over(&mut self, scheduler: SchedulerName) {
        let suspended = self.server.take().unwrap().suspend();
        let build = BuildOptions::for_disk(false, 4);
        let physical = [physical(&self.worker[4..], scheduler, build, TransferKind::Uring)];
        let mut resumption = Resumption::prepare(&physical).unwrap();
        for disk in suspended {
            let next = VmDisk {
                name: disk.name.clone(),
                image: Arc::clone(&disk.image),
                physical: 0,
                socket: self.socket(0),
                terms: terms(FlowParameters::default(), None),
                queues: 3,
                tell_hang_up: |_, _| {},
                tell_failure,
            };
            resumption.add(next, disk).unwrap();
        }
        self.server = Some(resumption.go_on().unwrap());
    }

    pub(crate) fn socket(&self, number: usize) -> PathBuf {
        socket(self.folder.path(), number)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("disk0")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// A disk of this host with defaults.
pub(crate) fn physical(
    name: &str,
    scheduler: SchedulerName,
    build: BuildOptions,
    transfer: TransferKind,
) -> PhysicalDisk {
    PhysicalDisk {
        name: name.to_owned(),
        scheduler,
        build,
        transfer,
        poll_max: Nanos::from_micros(32),
        cpus: Vec::new(),
        request_log: None,
    }
}

/// What is promised, and measured.
pub(crate) fn terms(parameters: FlowParameters, contract: Option<ContractTerms>) -> VmTerms {
    VmTerms { parameters, tags: TagBounds { default: 64, max: 254 }, contract }
}

fn socket(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("socket{number}"))
}

/// A new image.
pub(crate) fn disk(image: &Path) -> TestDisk {
    File::create(image).unwrap().set_len(IMAGE_BYTES).unwrap();
    let direct = ImageOptions { is_read_only: false, is_direct: true };
    let options = match Image::open(image, direct) {
        Ok(_) => direct,
        Err(_) => ImageOptions { is_direct: false, ..direct },
    };
    TestDisk { image: image.to_owned(), options, parameters: FlowParameters::default(), contract: None, queues: 1 }
}

/// Waits until this is said of why the first disk's front end is not served.
pub(crate) fn wait_for_reason(bench: &Bench, why: &str) {
    let begun = Instant::now();
    loop {
        let said = bench.server.as_ref().unwrap().hang_up("disk0").map(|why| why.to_string()).unwrap_or_default();
        if said.contains(why) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "`{why}` is not said, but `{said}`");
        std::thread::sleep(Duration::from_millis(5));
    }
}
