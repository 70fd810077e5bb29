//! A disk's name and its place below `/run`. The name is held by a file lock, which the kernel gives up when the owner
//! dies, however it dies: whoever gets the lock knows that what lies there is a leftover.

use super::loop_device::{attached, detach_leftover};
use super::{PATIENCE, unmount};
use crate::error::{At, LabError, Result};
use crate::mounts::read_mounts;
use minerva_model::DeviceId;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the disks' mount points, sockets and locks are.
pub const RUNTIME_DIRECTORY: &str = "/run/minerva-lab";

/// What the name of a file system's mount point begins with; the disk's name follows.
const FILES_PREFIX: &str = "files-";

/// What a disk is and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskInfo {
    /// The name it was given.
    pub name: String,
    /// The profile it was built from.
    pub profile: String,
    /// The block device, such as `/dev/loop0`.
    pub device: PathBuf,
    /// Its name in `/sys/block`.
    pub kernel_name: String,
    /// Its number.
    pub id: DeviceId,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The elevator it was given.
    pub elevator: String,
    /// Where its contents live, if anywhere.
    pub backing: Option<PathBuf>,
    /// The process that owns it.
    pub owner_pid: u32,
}

/// The source by which `mount` shows the disk's file: the name, marked as ours.
pub(crate) fn source_name(name: &str) -> String {
    if name.starts_with("minerva-") { name.to_owned() } else { format!("minerva-lab-{name}") }
}

/// A name that is held, with an empty directory for it.
#[derive(Debug)]
pub(crate) struct Claim {
    name: String,
    _lock: File,
}

impl Claim {
    /// Takes the name. What a dead owner of the same name left behind is removed first.
    pub(crate) fn take(name: &str) -> Result<Self> {
        check_name(name)?;
        fs::create_dir_all(RUNTIME_DIRECTORY).at("create", RUNTIME_DIRECTORY)?;
        let lock = lock(name)?.ok_or_else(|| LabError::NameTaken { name: name.to_owned() })?;
        clear(name);
        let claim = Self { name: name.to_owned(), _lock: lock };
        let mount_point = claim.mount_point();
        fs::create_dir_all(&mount_point).at("create", &mount_point)?;
        Ok(claim)
    }

    pub(super) fn mount_point(&self) -> PathBuf {
        directory(&self.name).join("mount")
    }

    pub(super) fn socket(&self) -> PathBuf {
        socket(&self.name)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        clear(&self.name);
        // While the lock is still held, so that nobody else can have it in between.
        let _ = fs::remove_file(lock_path(&self.name));
    }
}

/// Where the disk answers questions.
pub(super) fn socket(name: &str) -> PathBuf {
    directory(name).join("control")
}

/// Where a file system on the disk is mounted.
pub(super) fn files(name: &str) -> PathBuf {
    Path::new(RUNTIME_DIRECTORY).join(format!("{FILES_PREFIX}{name}"))
}

fn directory(name: &str) -> PathBuf {
    Path::new(RUNTIME_DIRECTORY).join(name)
}

fn lock_path(name: &str) -> PathBuf {
    Path::new(RUNTIME_DIRECTORY).join(format!("{name}.lock"))
}

fn check_name(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(good) {
        Ok(())
    } else {
        Err(LabError::BadName { name: name.to_owned() })
    }
}

/// The lock on `name`, or nothing when a living process has it.
fn lock(name: &str) -> Result<Option<File>> {
    let path = lock_path(name);
    loop {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&path).at("open", &path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // The last owner may have removed the file between our opening and our locking it: then this lock is on a
        // file that nobody else will find.
        let held = file.metadata().at("examine", &path)?.ino();
        if fs::metadata(&path).is_ok_and(|found| found.ino() == held) {
            return Ok(Some(file));
        }
    }
}

/// The names that have anything on this machine, alive or not.
pub(crate) fn leftover_names() -> BTreeSet<String> {
    let entries = fs::read_dir(RUNTIME_DIRECTORY).into_iter().flatten().flatten();
    let locks = entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".lock")?.to_owned()));
    let mounts = read_mounts().into_iter().filter_map(|mount| {
        let relative = mount.mount_point.strip_prefix(RUNTIME_DIRECTORY).ok()?;
        let first = relative.iter().next()?.to_str()?;
        // Of a disk, or of the file system on one.
        let of_disk = mount.kind.starts_with("fuse").then_some(first);
        of_disk.or_else(|| first.strip_prefix(FILES_PREFIX)).map(str::to_owned)
    });
    locks.chain(mounts).collect()
}

/// Removes what is left of the disk `name`, unless its owner lives. True if there was something to remove.
pub(crate) fn remove_leftover(name: &str) -> Result<bool> {
    let nothing = [lock_path(name), directory(name), files(name)].iter().all(|path| !path.exists());
    if check_name(name).is_err() || nothing {
        return Ok(false);
    }
    let Some(_lock) = lock(name)? else { return Ok(false) };
    clear(name);
    clear_run(name);
    let path = lock_path(name);
    fs::remove_file(&path).at("remove", &path)?;
    Ok(true)
}

/// What runs leave beside a disk of theirs. An owner that lives removes these itself.
fn clear_run(name: &str) {
    let _ = fs::remove_file(Path::new(RUNTIME_DIRECTORY).join(format!("{name}.contents")));
    let steering = format!("steering-{name}");
    // A disk may be named so.
    if !lock_path(&steering).exists() {
        let _ = fs::remove_dir_all(directory(&steering));
    }
}

/// Detaches, unmounts and removes whatever carries the name. The caller holds the lock.
fn clear(name: &str) {
    // First, as a loop device is not detached while a file system on it is mounted.
    let files = files(name);
    for mount in read_mounts().into_iter().filter(|mount| mount.mount_point == files) {
        unmount(&mount.mount_point);
    }
    let _ = fs::remove_dir(files);
    let directory = directory(name);
    for (number, _) in attached().into_iter().filter(|(_, file)| file.starts_with(&directory)) {
        detach_leftover(number, PATIENCE);
    }
    let mounted = read_mounts().into_iter().filter(|mount| mount.mount_point.starts_with(&directory));
    for mount in mounted {
        unmount(&mount.mount_point);
    }
    // Only what we put there is removed: were the mount still in place, its contents must not be.
    let _ = fs::remove_file(directory.join("control"));
    let _ = fs::remove_file(directory.join("log"));
    let _ = fs::remove_dir(directory.join("mount"));
    let _ = fs::remove_dir(&directory);
}
