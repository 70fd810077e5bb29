//! The pools: for each tenant memory of its own, and one directory on the disk set aside, which one process uses at a time.

use crate::mount_point::{State, state};
use crate::owner::Owner;
use crate::pool_disk;
use anyhow::{Context, bail};
use minerva_config::{FsConfig, FsTenantSettings};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Its name is in the table of mounts.
const SOURCE: &str = "minerva-fs";
/// Beyond the quota, so that the quota speaks first: what the kernel itself needs, and files whose last user is about to let go.
const SPARE_BYTES: u64 = 16 << 20;
/// What the file beside the tree takes that says which memory it is: a page.
const MARKER_BYTES: u64 = 4096;
/// The root of a tree that is a user's.
pub(crate) const MODE_OF_USER: u32 = 0o770;
const SPARE_INODES: u64 = 1024;
/// Every read is noted in a file's times, which costs no disk anything: who was used longest ago spills first.
const MEMORY_FLAGS: MountFlags = MountFlags::NODEV.union(MountFlags::NOSUID).union(MountFlags::STRICTATIME);

/// One process has the pools.
#[derive(Debug)]
pub(crate) struct PoolLock {
    // Held until the process ends.
    _files: Vec<File>,
}

impl PoolLock {
    /// Takes the pools, or says who has them.
    pub(crate) fn take(config: &FsConfig) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        pool_disk::judge(config)?;
        make_private(&config.stable.path)?;
        make_runtime(&config.server.runtime)?;
        for folder in [&config.stable.path, &config.server.runtime] {
            files.push(lock(&folder.join("minerva-fs.lock"))?);
        }
        pool_disk::adopt(config)?;
        Ok(Self { _files: files })
    }
}

fn lock(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).write(true).create(true).truncate(false).open(path);
    let mut file = opened.with_context(|| format!("failed to open {}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        let folder = path.parent().unwrap_or(path).display();
        bail!("{folder} is used by another minerva-fs, process {}; stop it first, or name another", holder.trim());
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .with_context(|| format!("failed to write {}; is the disk full or read-only?", path.display()))?;
    Ok(file)
}

/// A directory that only root enters: tenants come in by their mounts.
fn make_private(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
        .with_context(|| format!("failed to close {} to others", folder.display()))
}

/// Tenants find the socket in it, and nothing else.
fn make_runtime(folder: &Path) -> anyhow::Result<()> {
    make_private(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o711))
        .with_context(|| format!("failed to let tenants through {}", folder.display()))
}

/// A tenant's directory on the disk set aside.
pub(crate) fn stable_tree(config: &FsConfig, name: &str, owner: Owner) -> anyhow::Result<PathBuf> {
    let mode = config.tenants.get(name).map_or(MODE_OF_USER, root_mode);
    let tree = config.stable.path.join("tenants").join(name);
    make_tree(&tree, owner, mode)?;
    Ok(tree)
}

/// A tenant's memory, mounted unless it is still there from before.
pub(crate) struct Memory {
    pub(crate) tree: PathBuf,
    /// Names this memory: another one, after a restart of the machine, has another name.
    pub(crate) instance: String,
}

/// Mounts a tenant's memory, or finds what an earlier process left, with everything in it.
pub(crate) fn memory(
    config: &FsConfig,
    name: &str,
    settings: &FsTenantSettings,
    owner: Owner,
) -> anyhow::Result<Memory> {
    let at = config.server.runtime.join("temporary").join(name);
    make_private(&at)?;
    if state(&at)? == State::Mounted {
        resize_memory(config, name, settings);
    } else {
        let options =
            CString::new(memory_options(settings) + ",inode64").context("options of a mount have no zeros")?;
        mount(SOURCE, &at, "tmpfs", MEMORY_FLAGS, options.as_c_str())
            .with_context(|| format!("failed to mount memory at {}", at.display()))?;
    }
    let marker = at.join("instance");
    let instance = match fs::read_to_string(&marker) {
        Ok(text) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => {
            let new = uuid::Uuid::new_v4().to_string();
            fs::write(&marker, &new).with_context(|| format!("failed to write {}", marker.display()))?;
            new
        }
    };
    let tree = at.join("tree");
    make_tree(&tree, owner, root_mode(settings))?;
    Ok(Memory { tree, instance })
}

fn memory_options(settings: &FsTenantSettings) -> String {
    // Where the kernel writes by itself this is the quota; else the service keeps it, and this catches what passes a mapping.
    let spare = if settings.kernel_writes { MARKER_BYTES } else { settings.temporary_bytes / 16 + SPARE_BYTES };
    let size = settings.temporary_bytes + spare;
    let inodes = settings.temporary_files + SPARE_INODES;
    format!("size={size},nr_inodes={inodes},mode=0700")
}

/// Makes a tenant's mounted memory as large as its quota. Below what is in it memory is not made smaller: then it stays as it was, and the
/// quota holds all the same.
pub(crate) fn resize_memory(config: &FsConfig, name: &str, settings: &FsTenantSettings) {
    let at = config.server.runtime.join("temporary").join(name);
    if let Ok(options) = CString::new(memory_options(settings)) {
        let _ = mount_remount(&at, MEMORY_FLAGS, options.as_c_str());
    }
}

/// Gives a tenant's memory back, if nothing is in it; whether it was given back.
pub(crate) fn give_back(config: &FsConfig, name: &str) -> bool {
    let at = config.server.runtime.join("temporary").join(name);
    let is_empty = fs::read_dir(at.join("tree")).is_ok_and(|mut entries| entries.next().is_none());
    is_empty && unmount(&at, UnmountFlags::empty()).is_ok() && fs::remove_dir(&at).is_ok()
}

/// Where a tenant's memory spills to. What was spilled from memory that is no more goes with it.
pub(crate) fn spill_folder(config: &FsConfig, name: &str, instance: &str) -> anyhow::Result<PathBuf> {
    let of_tenant = config.stable.path.join("spilled").join(name);
    make_private(&of_tenant)?;
    let read = fs::read_dir(&of_tenant).with_context(|| format!("failed to read {}", of_tenant.display()))?;
    for entry in read {
        let entry = entry.with_context(|| format!("failed to read {}", of_tenant.display()))?;
        if entry.file_name() != instance {
            fs::remove_dir_all(entry.path()).with_context(|| format!("failed to remove {}", entry.path().display()))?;
        }
    }
    Ok(of_tenant.join(instance))
}

/// The root of a tree. Its owner is set when it is made: later the tenant may have changed it.
/// All users of a machine share its trees as they share its /tmp; nobody else comes to them.
fn root_mode(settings: &FsTenantSettings) -> u32 {
    if settings.machine.is_some() { 0o1777 } else { MODE_OF_USER }
}

fn make_tree(tree: &Path, owner: Owner, mode: u32) -> anyhow::Result<()> {
    if tree.is_dir() {
        return Ok(());
    }
    // No tenant's name begins so.
    let new = tree.with_file_name(".new");
    let make = || {
        let _ = fs::remove_dir(&new);
        fs::create_dir_all(&new)?;
        std::os::unix::fs::chown(&new, Some(owner.uid), Some(owner.gid))?;
        fs::set_permissions(&new, Permissions::from_mode(mode))?;
        fs::rename(&new, tree)
    };
    make().with_context(|| format!("failed to make {}", tree.display()))
}
