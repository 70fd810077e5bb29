//! One tenant's two trees, from its directories to its mounts.

use crate::mount::Mount;
use crate::owner::Owner;
use crate::pool;
use crate::second_account::SecondAccounts;
use crate::user::User;
use anyhow::Context;
use minerva_api::cache::Pool;
use minerva_cachefs::{Account, Descriptors, DiskFlow, DiskQueue, SpillArea, Tree, TreeOptions};
use minerva_config::{FsConfig, FsTenantSettings};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// Everybody who is served.
pub(crate) type Tenants = Arc<RwLock<Vec<Tenant>>>;

/// What all tenants share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) descriptors: Arc<Descriptors>,
    /// Who uses the pool's disk next; none where nobody says.
    pub(crate) queue: Option<Arc<DiskQueue>>,
}

/// One tenant.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    /// It is a virtual machine: its root, who is nobody on the host, can change everything in its trees.
    pub(crate) is_machine: bool,
    pub(crate) temporary: Mount,
    pub(crate) stable: Mount,
    /// Before the disk of the pool, where it is shared by weight.
    pub(crate) disk: Option<Arc<DiskFlow>>,
    /// Who counts what it uses beside its trees.
    pub(crate) second: SecondAccounts,
    /// What the operator's file said of it when that was put in force last, but for what takes a restart.
    pub(crate) settings: FsTenantSettings,
    /// The operator's file does not name it any more: why it is there all the same. Empty where the file names it.
    pub(crate) leaving: String,
}

impl Tenant {
    /// Opens a tenant's directories, counts what is there, and mounts both trees.
    pub(crate) fn start(
        config: &FsConfig,
        name: &str,
        settings: &FsTenantSettings,
        shared: &Shared,
    ) -> anyhow::Result<Self> {
        let owner = Owner::find(settings)?;
        let folder = folder(config, name)?;
        if settings.machine.is_some() {
            let_machine_in(&folder, owner)?;
        }
        let disk = shared.queue.as_ref().map(|queue| queue.flow(settings.weight));
        let deferring_root = settings.machine.is_some().then_some((owner.uid, owner.gid));
        let stable_account = Arc::new(Account::new(settings.stable_bytes, settings.stable_files));
        let stable = Tree::open(
            &pool::stable_tree(config, name, owner)?,
            Arc::clone(&stable_account),
            TreeOptions {
                has_xattrs: true,
                is_durable: true,
                has_passthrough: true,
                reserve_bytes: config.stable.reserve_bytes,
                deferring_root,
                descriptors: Arc::clone(&shared.descriptors),
                disk: disk.clone(),
                // The kernel does not write by itself: nothing below keeps a tenant's quota.
                ..TreeOptions::default()
            },
            None,
        )?;
        let memory = pool::memory(config, name, settings, owner)?;
        let spill = SpillArea::open(&pool::spill_folder(config, name, &memory.instance)?, stable_account)?;
        let options = in_memory(config, settings, shared, disk.clone(), deferring_root);
        let account = Arc::new(Account::new(settings.temporary_bytes, settings.temporary_files));
        let temporary = Tree::open(&memory.tree, account, options, Some(spill))?;
        let second = SecondAccounts::open(config, name, &temporary, &stable)?;
        let tenant = Self {
            name: name.to_owned(),
            owner,
            second,
            is_machine: settings.machine.is_some(),
            temporary: Mount::new(temporary, &folder.join("temporary"), config)?,
            stable: Mount::new(stable, &folder.join("stable"), config)?,
            disk,
            settings: settings.clone(),
            leaving: String::new(),
        };
        tenant.warn();
        Ok(tenant)
    }

    /// In a guest: both trees, which the host serves.
    pub(crate) fn of_guest(name: &str, temporary: Mount, stable: Mount) -> Self {
        Self {
            name: name.to_owned(),
            owner: Owner { uid: 0, gid: 0 },
            is_machine: false,
            temporary,
            stable,
            disk: None,
            second: SecondAccounts::default(),
            settings: FsTenantSettings::default(),
            leaving: String::new(),
        }
    }

    /// Whether a user may defer files by it: its owner and members of its group, who may write in the roots of its trees; in a guest
    /// everybody, as whose the files are is judged by owner and mode.
    pub(crate) fn is_for(&self, user: &User) -> bool {
        let is_member = user.gid == self.owner.gid || user.groups.contains(&self.owner.gid);
        user.uid == 0
            || self.is_owned_by(user)
            || (is_member && !self.is_machine)
            || self.stable.tree.is_served_elsewhere()
    }

    /// Whether it is this user's own, and not only open to a group.
    pub(crate) fn is_owned_by(&self, user: &User) -> bool {
        self.owner.uid == user.uid
    }

    /// The tree in a pool.
    pub(crate) fn mount(&self, pool: Pool) -> &Mount {
        match pool {
            Pool::Temporary => &self.temporary,
            Pool::Stable => &self.stable,
        }
    }

    /// Says what an operator may not have meant.
    fn warn(&self) {
        for (kind, mount) in [("temporary", &self.temporary), ("stable", &self.stable)] {
            let usage = mount.tree.usage();
            if usage.bytes > usage.bytes_max || usage.files > usage.files_max {
                eprintln!(
                    "minerva-fs: {}/{kind} uses more than its quota ({} of {} bytes, {} of {} files): nothing can be added",
                    self.name, usage.bytes, usage.bytes_max, usage.files, usage.files_max
                );
            }
            if !mount.has_passthrough() {
                eprintln!(
                    "minerva-fs: {}/{kind} has no passthrough here (it needs Linux 6.9 or later and a pool that is \
                     not on overlayfs): reads go through this process and are slower",
                    self.name
                );
            }
        }
    }
}

/// How a tree in memory is served.
fn in_memory(
    config: &FsConfig,
    settings: &FsTenantSettings,
    shared: &Shared,
    disk: Option<Arc<DiskFlow>>,
    deferring_root: Option<(u32, u32)>,
) -> TreeOptions {
    TreeOptions {
        has_passthrough: true,
        reserve_bytes: config.stable.reserve_bytes,
        spills_when_full: settings.spills_when_full,
        service_reads: settings.service_reads,
        kernel_writes: settings.kernel_writes,
        deferring_root,
        descriptors: Arc::clone(&shared.descriptors),
        disk,
        ..TreeOptions::default()
    }
}

/// Where a tenant's trees are mounted, made if it is not there.
fn folder(config: &FsConfig, name: &str) -> anyhow::Result<PathBuf> {
    let folder = config.server.mount.join(name);
    make_way(&config.server.mount, 0o711)?;
    make_way(&folder, 0o751)?;
    Ok(folder)
}

/// The virtiofsd of a machine, which is root nowhere on the host, lists its directory. Users of the host do not come in.
fn let_machine_in(folder: &Path, owner: Owner) -> anyhow::Result<()> {
    chown(folder, None, Some(owner.gid))
        .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o750)))
        .with_context(|| format!("failed to let the machine into {}", folder.display()))
}

/// A directory that others than root only walk through.
fn make_way(folder: &Path, mode: u32) -> anyhow::Result<()> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    if is_new {
        fs::set_permissions(folder, Permissions::from_mode(mode))
            .with_context(|| format!("failed to set who may enter {}", folder.display()))?;
    }
    Ok(())
}
