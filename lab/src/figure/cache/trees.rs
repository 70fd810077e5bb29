//! Where a file may lie whose speed is measured: memory and a disk as they are, the service's trees on both, and other FUSE file
//! systems over the same memory.

use super::migration::{Kept, pool_disk};
use super::service::{ServedTenant, Service, ServiceConfig};
use crate::disk::{Claim, RUNTIME_DIRECTORY, unmount};
use crate::error::{At, LabError, Result};
use crate::mounts::read_mounts;
use crate::scene::Directory;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const TENANT: &str = "speed";
/// A FUSE file system that is not there by then will not be.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// What to measure.
#[derive(Clone, Debug)]
pub struct ThroughputPlan {
    /// `minerva-fs`.
    pub service: PathBuf,
    /// A directory on the disk for `stable`; without it a disk is emulated.
    pub pool: Option<PathBuf>,
    /// The emulated disk's profile.
    pub pool_profile: String,
    /// Bytes of the file that is read, and of the one that is written.
    pub bytes: u64,
    /// How long random requests go on each time.
    pub span: Duration,
    /// How often everything is measured, in an order that is drawn.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
    /// libfuse's example, if it is there.
    pub passthrough_hp: Option<PathBuf>,
    /// A FUSE file system that Debian packages, if it is there.
    pub bindfs: Option<PathBuf>,
}

/// A directory tree on one kind of file system.
#[derive(Clone, Debug)]
pub(super) struct FileTree {
    pub(super) name: &'static str,
    /// Files are made here.
    pub(super) directory: PathBuf,
    /// Where the same files lie without anything above, on a disk.
    pub(super) below: Option<PathBuf>,
}

/// All trees, and what keeps them. Dropped from top to bottom.
pub(super) struct Bed {
    pub(super) trees: Vec<FileTree>,
    /// What is not measured, and why.
    pub(super) missing: Vec<String>,
    pub(super) service: Service,
    _peers: Vec<Peer>,
    _memory: Memory,
    _pool: Option<Kept>,
    _folder: Option<Directory>,
}

impl Bed {
    pub(super) fn prepare(plan: &ThroughputPlan, interrupted: &AtomicBool) -> Result<Self> {
        let name = format!("cachespeed-{}", std::process::id());
        let folder = plan.pool.as_ref().map(|pool| Directory::create(pool.join(&name))).transpose()?;
        let pool = if folder.is_none() { Some(pool_disk(&name, &plan.pool_profile)?) } else { None };
        let disk = folder.as_ref().map(Directory::path).or(pool.as_ref().map(|pool| pool.files.path()));
        let disk = disk.unwrap_or(Path::new(RUNTIME_DIRECTORY)).to_owned();
        // Each tree has a file that is read and one that is written.
        let room = 3 * plan.bytes + (64 << 20);
        let tenant = ServedTenant { name: TENANT.to_owned(), temporary_bytes: room, stable_bytes: room, files: 1000 };
        let config = ServiceConfig {
            program: &plan.service,
            name: format!("{name}-service"),
            pool: &disk.join("pool"),
            tenants: &[tenant],
            daemon: None,
            group: None,
        };
        let service = Service::start(&config, interrupted)?;
        let memory = Memory::mount(&format!("{name}-memory"), 8 * plan.bytes)?;
        let raw = disk.join("raw");
        fs::create_dir_all(&raw).at("create", &raw)?;
        let tree = |name, directory: &Path, below: Option<&Path>| FileTree {
            name,
            directory: directory.to_owned(),
            below: below.map(Path::to_owned),
        };
        let mut trees = vec![
            tree("tmpfs", &memory.directory("raw")?, None),
            tree("temporary", &service.tree(TENANT, "temporary"), None),
            tree("disk", &raw, Some(&raw)),
            tree("stable", &service.tree(TENANT, "stable"), Some(&disk.join("pool/tenants").join(TENANT))),
        ];
        let (mut peers, mut missing) = (Vec::new(), Vec::new());
        for (name, program, arguments) in
            [("passthrough_hp", &plan.passthrough_hp, ["--foreground"].as_slice()), ("bindfs", &plan.bindfs, &["-f"])]
        {
            let Some(program) = program else {
                missing.push(format!("{name} is not there"));
                continue;
            };
            match Peer::start(program, arguments, &memory.directory(name)?, memory.claimed.join(format!("{name}-at"))) {
                Ok(peer) => {
                    trees.push(tree(name, &peer.at, None));
                    peers.push(peer);
                }
                Err(error) => missing.push(error.to_string()),
            }
        }
        Ok(Self { trees, missing, service, _peers: peers, _memory: memory, _pool: pool, _folder: folder })
    }
}

/// A tmpfs of our own.
struct Memory {
    at: PathBuf,
    claimed: PathBuf,
    _claim: Claim,
}

impl Memory {
    fn mount(name: &str, bytes: u64) -> Result<Self> {
        let claim = Claim::take(name)?;
        let claimed = Path::new(RUNTIME_DIRECTORY).join(name);
        let at = claimed.join("mount");
        let options = CString::new(format!("size={bytes},mode=0700")).unwrap_or_default();
        mount("minerva-lab", &at, "tmpfs", MountFlags::NODEV, options.as_c_str())
            .map_err(std::io::Error::from)
            .at("mount memory at", &at)?;
        Ok(Self { at, claimed, _claim: claim })
    }

    fn directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.at.join(name);
        fs::create_dir_all(&directory).at("create", &directory)?;
        Ok(directory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unmount(&self.at);
    }
}

/// Another FUSE file system over a directory.
struct Peer {
    child: Child,
    at: PathBuf,
}

impl Peer {
    fn start(program: &Path, arguments: &[&str], source: &Path, at: PathBuf) -> Result<Self> {
        fs::create_dir_all(&at).at("create", &at)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(source).arg(&at).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().inspect_err(|_| drop(fs::remove_dir(&at))).at("start", program)?;
        let mut peer = Self { child, at };
        let begun = Instant::now();
        while !read_mounts().iter().any(|mount| mount.mount_point == peer.at) {
            if peer.child.try_wait().at("look after", program)?.is_some() || begun.elapsed() > PATIENCE {
                return Err(LabError::BadPlan(format!("{} did not mount", program.display())));
            }
            std::thread::sleep(LOOK);
        }
        Ok(peer)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        unmount(&self.at);
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir(&self.at);
    }
}
