//! Emulated disks: a FUSE file whose reads and writes take a disk model's service time, a loop device on top of it, and
//! a real elevator on that. What the kernel's block layer sees is a slow disk like any other.
//!
//! A [`Disk`] owns every part and removes them in the right order when it is dropped, also by a panic. What a killed
//! owner leaves behind, [`sweep`](crate::sweep::sweep) removes.

mod claim;
mod control;
mod file_system;
mod loop_device;
mod partition;
mod queue;
mod served;
mod service;

pub use claim::{DiskInfo, RUNTIME_DIRECTORY};
pub use control::{DiskStatus, destroy, list, status};
pub use file_system::{FileSystem, FileSystemKind};
pub use queue::{BlockQueue, QueueBefore};
pub use service::DiskStatistics;

pub(crate) use claim::{Claim, leftover_names, remove_leftover, source_name};

use crate::error::{At, LabError, Result};
use crate::priority::hurry;
use control::Control;
use fuser::{Config, MountOption, Session};
use loop_device::LoopDevice;
use minerva_sim_device::{Media, Profile};
use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;
use served::{FILE_NAME, Served};
use service::{Message, Service};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long a disk waits at its end for others to close it, before it fails their requests.
const PATIENCE: Duration = Duration::from_secs(3);
/// One thread reads requests while the other hands one over; the device thread does the waiting.
const FUSE_THREADS: usize = 2;

/// What disk to make.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    /// Its name: 1 to 64 letters, digits, `-` or `_`.
    pub name: String,
    /// Name of a disk profile, see [`profiles`], or a file that holds one, whose name then ends in `.toml`.
    pub profile: String,
    /// Size in bytes if not the profile's own, in whole sectors.
    pub size_bytes: Option<u64>,
    /// The elevator on top: `bfq`, `mq-deadline`, `kyber` or `none`.
    pub elevator: String,
    /// A file to keep the contents in. Without one, writes are forgotten and reads are zeros.
    pub backing: Option<PathBuf>,
    /// Requests the disk takes at once, if fewer than the profile's.
    pub queue_depth: Option<u32>,
    /// Whether it can have partitions; the kernel looks for some at its start then.
    pub has_partitions: bool,
    /// Seed of whatever in the model is random.
    pub seed: u64,
}

impl DiskSpec {
    /// A disk with BFQ and forgotten contents.
    pub fn new(name: impl Into<String>, profile: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            profile: profile.into(),
            size_bytes: None,
            elevator: "bfq".to_owned(),
            backing: None,
            queue_depth: None,
            has_partitions: false,
            seed: 1,
        }
    }
}

/// The disk profiles there are.
pub fn profiles() -> Vec<Profile> {
    minerva_sim_device::profile_names().iter().filter_map(|name| minerva_sim_device::profile(name)).collect()
}

/// A running emulated disk. Dropping it removes the device, the mount, the threads and the name, in this order: fields
/// are dropped from top to bottom.
#[derive(Debug)]
pub struct Disk {
    info: DiskInfo,
    statistics: Sender<Message>,
    _control: Control,
    _loop_device: LoopDevice,
    _mounted: Mounted,
    _device_thread: DeviceThread,
    _claim: Claim,
}

impl Disk {
    /// Makes a disk.
    ///
    /// # Errors
    ///
    /// When the machine lacks FUSE, loop devices or root, when the name, profile or elevator is no good, or when the
    /// kernel refuses a step. Nothing is left behind then.
    pub fn create(spec: &DiskSpec) -> Result<Self> {
        check_machine()?;
        let profile = find_profile(spec)?;
        let rotational = matches!(profile.media, Media::Hdd(_));
        let model = profile.build(spec.size_bytes, spec.seed);
        let size_bytes = model.capacity_bytes();
        let backing = spec.backing.as_deref().map(|path| open_backing(path, size_bytes)).transpose()?;

        // Each of these undoes itself; a failure below drops the earlier ones, last first.
        let claim = Claim::take(&spec.name)?;
        let device_thread = DeviceThread::spawn(Service::new(model))?;
        let served = Served { device: device_thread.messages.clone(), size_bytes, backing };
        let mounted = Mounted::mount(served, &claim.mount_point(), &spec.name)?;
        let loop_device = attach(&claim.mount_point().join(FILE_NAME), spec.has_partitions)?;
        let queue = BlockQueue::new(&loop_device.name());
        queue.write("rotational", if rotational { "1" } else { "0" })?;
        queue.set_elevator(&spec.elevator)?;
        let info = DiskInfo {
            name: spec.name.clone(),
            profile: spec.profile.clone(),
            device: loop_device.path.clone(),
            kernel_name: loop_device.name(),
            id: loop_device.id()?,
            size_bytes,
            elevator: queue.elevator()?,
            backing: spec.backing.clone(),
            owner_pid: std::process::id(),
        };
        let statistics = device_thread.messages.clone();
        let control = Control::serve(&claim.socket(), info.clone(), statistics.clone())?;
        Ok(Self {
            info,
            statistics,
            _control: control,
            _loop_device: loop_device,
            _mounted: mounted,
            _device_thread: device_thread,
            _claim: claim,
        })
    }

    /// What it is and where.
    pub fn info(&self) -> &DiskInfo {
        &self.info
    }

    /// The block device, such as `/dev/loop0`.
    pub fn device(&self) -> &Path {
        &self.info.device
    }

    /// Its request queue.
    pub fn queue(&self) -> BlockQueue {
        BlockQueue::new(&self.info.kernel_name)
    }

    /// What it has done so far.
    pub fn statistics(&self) -> DiskStatistics {
        ask_statistics(&self.statistics)
    }
}

/// Zeros when the device thread is gone, which it is only at the very end.
fn ask_statistics(device: &Sender<Message>) -> DiskStatistics {
    let (to, from) = channel();
    let _ = device.send(Message::Statistics(to));
    from.recv().unwrap_or_default()
}

/// Says what the machine lacks for an emulated disk, if anything.
pub fn check_machine() -> Result<()> {
    let what = "an emulated disk";
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::Missing { what, needs: "root", remedy: "run it with sudo" });
    }
    if !Path::new("/dev/fuse").exists() {
        let remedy = "run `modprobe fuse`, or start the container with `--device /dev/fuse`";
        return Err(LabError::Missing { what, needs: "/dev/fuse", remedy });
    }
    if !Path::new("/dev/loop-control").exists() {
        let remedy = "run `modprobe loop`, or start the container with `--device /dev/loop-control`";
        return Err(LabError::Missing { what, needs: "/dev/loop-control", remedy });
    }
    Ok(())
}

/// The profile, with what the caller wants otherwise.
fn find_profile(spec: &DiskSpec) -> Result<Profile> {
    let unknown = || LabError::UnknownProfile {
        name: spec.profile.clone(),
        known: minerva_sim_device::profile_names().join(", "),
    };
    let mut profile = if spec.profile.ends_with(".toml") {
        let text = std::fs::read_to_string(&spec.profile).at("read the disk profile", &spec.profile)?;
        Profile::parse(&text).map_err(|error| LabError::BadPlan(format!("{}: {error}", spec.profile)))?
    } else {
        minerva_sim_device::profile(&spec.profile).ok_or_else(unknown)?
    };
    profile.queue_depth = spec.queue_depth.unwrap_or(profile.queue_depth);
    if let Some(problem) = profile.problem() {
        return Err(LabError::BadPlan(format!("profile `{}`, {problem}", spec.profile)));
    }
    if let Some(size) = spec.size_bytes.filter(|size| *size < (1 << 20) || size % 4096 != 0) {
        return Err(LabError::BadPlan(format!(
            "a disk of {size} bytes is no good: use at least 1 MiB, in whole blocks of 4096 bytes"
        )));
    }
    Ok(profile)
}

/// Opens the file for the contents, made and made long enough if need be, with its directory, as a fresh machine has none.
fn open_backing(path: &Path, size_bytes: u64) -> Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).at("create", directory)?;
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path).at("open", path)?;
    if file.metadata().at("examine", path)?.len() < size_bytes {
        file.set_len(size_bytes).at("enlarge", path)?;
    }
    Ok(file)
}

fn attach(file: &Path, has_partitions: bool) -> Result<LoopDevice> {
    let opened =
        rustix::fs::open(file, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).at("open", file)?;
    let device = LoopDevice::attach(&opened, file, has_partitions)?;
    if !device.is_direct() {
        loop_device::set_direct(&device)?;
    }
    Ok(device)
}

/// The thread that owns the model.
#[derive(Debug)]
struct DeviceThread {
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceThread {
    fn spawn(service: Service) -> Result<Self> {
        let (messages, from) = channel();
        let thread = Builder::new().name("disk-model".to_owned()).spawn(move || service.run(&from));
        Ok(Self { messages, thread: Some(thread.at("start the thread of", "the disk model")?) })
    }
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        // A panic in there was printed already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The FUSE mount and the threads that serve it.
#[derive(Debug)]
struct Mounted {
    mount_point: PathBuf,
    server: Option<JoinHandle<()>>,
}

impl Mounted {
    fn mount(served: Served, mount_point: &Path, name: &str) -> Result<Self> {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(source_name(name)), MountOption::NoExec];
        config.n_threads = Some(FUSE_THREADS);
        let session =
            Session::new(served, mount_point, &config).at("mount the emulated disk's file at", mount_point)?;
        let serve = move || {
            hurry();
            // It ends when the mount goes, which is the only way it is ever ended.
            let _ = session.run();
        };
        let server = Builder::new().name("disk-fuse".to_owned()).spawn(serve).at("start the server of", mount_point)?;
        Ok(Self { mount_point: mount_point.to_owned(), server: Some(server) })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.mount_point);
        // A panic in there was printed already.
        let _ = self.server.take().map(JoinHandle::join);
    }
}

/// Unmounts, by force if somebody still uses it: requests then fail instead of waiting for ever.
pub(crate) fn unmount(mount_point: &Path) {
    if rustix::mount::unmount(mount_point, UnmountFlags::empty()).is_err() {
        let _ = rustix::mount::unmount(mount_point, UnmountFlags::FORCE | UnmountFlags::DETACH);
    }
}

#[cfg(test)]
mod tests {
    use super::open_backing;

    #[test]
    fn contents_are_made_also_where_their_directory_is_not_there_yet() {
        let fresh = tempfile::tempdir().expect("a directory");
        let path = fresh.path().join("minerva-lab/disk.contents");
        let file = open_backing(&path, 1 << 20).expect("a file");
        assert_eq!(file.metadata().expect("its length").len(), 1 << 20);
        std::fs::write(&path, "kept").expect("written");
        let again = open_backing(&path, 2).expect("the same file");
        assert_eq!(again.metadata().expect("its length").len(), 4, "what it holds stays");
    }
}
