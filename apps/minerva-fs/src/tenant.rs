//! One tenant's two trees, from its directories to its mounts.

use crate::mount::Mount;
use crate::owner::Owner;
use crate::pool;
use crate::second_account::SecondAccounts;
use crate::user::User;
use anyhow::Context;
use minerva_api::cache::Pool;
use minerva_cachefs::{Account, Descriptors, DiskFlow, DiskQueue, SpillArea, Tree, TreeOptions};
use minerva_config::{FsConfig, FsTenantSettings, MACHINE_IDS};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// A tenant's directory, through which everybody walks to trees that say themselves who may enter.
const MODE_OF_FOLDER: u32 = 0o751;

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
    /// Opens a tenant's directories, counts what is there, mounts both trees, and says what an operator may not have meant.
    pub(crate) fn start(
        config: &FsConfig,
        name: &str,
        settings: &FsTenantSettings,
        shared: &Shared,
    ) -> anyhow::Result<Self> {
        let tenant = Self::open(config, name, settings, shared)?;
        tenant.warn();
        Ok(tenant)
    }

    /// The same, but says nothing.
    pub(crate) fn open(
        config: &FsConfig,
        name: &str,
        settings: &FsTenantSettings,
        shared: &Shared,
    ) -> anyhow::Result<Self> {
        let owner = Owner::find(settings)?;
        let folder = folder(config, name)?;
        let stable_root = pool::stable_tree(config, name, owner)?;
        let memory = pool::memory(config, name, settings, owner)?;
        set_who_enters(&folder, [&stable_root, &memory.tree], settings, owner)?;
        let disk = shared.queue.as_ref().map(|queue| queue.flow(settings.weight));
        let deferring_root = settings.machine.is_some().then_some((owner.uid, owner.gid));
        let stable_account = Arc::new(Account::new(settings.stable_bytes, settings.stable_files));
        let stable = Tree::open(
            &stable_root,
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
        let spill = SpillArea::open(&pool::spill_folder(config, name, &memory.instance)?, stable_account)?;
        let options = in_memory(config, settings, shared, disk.clone(), deferring_root);
        let account = Arc::new(Account::new(settings.temporary_bytes, settings.temporary_files));
        let temporary = Tree::open(&memory.tree, account, options, Some(spill))?;
        let second = SecondAccounts::open(config, name, &temporary, &stable)?;
        Ok(Self {
            name: name.to_owned(),
            owner,
            second,
            is_machine: settings.machine.is_some(),
            temporary: Mount::new(temporary, &folder.join("temporary"), config)?,
            stable: Mount::new(stable, &folder.join("stable"), config)?,
            disk,
            settings: settings.clone(),
            leaving: String::new(),
        })
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
    make_way(&folder, MODE_OF_FOLDER)?;
    Ok(folder)
}

/// Who comes into a tenant's directory, and into its trees by their roots.
fn set_who_enters(folder: &Path, roots: [&Path; 2], settings: &FsTenantSettings, owner: Owner) -> anyhow::Result<()> {
    let is_machine = settings.machine.is_some();
    let set = if is_machine { let_machine_in(folder, owner) } else { take_back(folder, roots, owner) };
    set.with_context(|| format!("failed to set who may enter {}", folder.display()))
}

/// The virtiofsd of a machine, which is root nowhere on the host, lists its directory. Users of the host do not come in.
fn let_machine_in(folder: &Path, owner: Owner) -> io::Result<()> {
    chown(folder, None, Some(owner.gid))?;
    fs::set_permissions(folder, Permissions::from_mode(0o750))
}

/// The directory of a tenant that was a machine when it was served last is root's again. The roots of its trees, which all of the machine's
/// users shared, are as new ones are: everybody would come to them now. What an operator did with another directory stays.
fn take_back(folder: &Path, roots: [&Path; 2], owner: Owner) -> io::Result<()> {
    let machine = fs::metadata(folder)?.gid();
    if machine < MACHINE_IDS {
        return Ok(());
    }
    for root in roots {
        let number = fs::metadata(root)?.uid().checked_sub(machine);
        if number.is_some_and(|number| number < MACHINE_IDS) {
            chown(root, Some(owner.uid), Some(owner.gid))?;
            fs::set_permissions(root, Permissions::from_mode(pool::MODE_OF_USER))?;
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(MODE_OF_FOLDER))?;
    // Last, for it says that there is something to take back.
    chown(folder, None, Some(0))
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

#[cfg(test)]
mod tests {
    use super::{let_machine_in, take_back};
    use crate::owner::Owner;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::path::Path;

    #[test]
    fn what_a_machine_was_let_into_is_taken_back_and_what_an_operator_set_stays() {
        let (machine, owner) = (Owner { uid: 1_800_000, gid: 1_800_000 }, Owner { uid: 1000, gid: 1001 });
        let place = tempfile::tempdir().unwrap();
        let [folder, shared, handed_over] = ["folder", "shared", "handed-over"].map(|name| place.path().join(name));
        [&folder, &shared, &handed_over].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        if let_machine_in(&folder, machine).is_err() {
            return eprintln!("skipped: only root gives a directory away");
        }
        let of = |path: &Path| {
            let about = fs::metadata(path).unwrap();
            (about.uid(), about.gid(), about.mode() & 0o7777)
        };
        assert_eq!(of(&folder), (0, 1_800_000, 0o750));
        for (path, uid) in [(&shared, 1_800_000), (&handed_over, 1002)] {
            chown(path, Some(uid), Some(uid)).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o1777)).unwrap();
        }
        take_back(&folder, [&shared, &handed_over], owner).unwrap();
        assert_eq!(of(&folder), (0, 0, 0o751));
        assert_eq!(of(&shared), (1000, 1001, 0o770));
        assert_eq!(of(&handed_over), (1002, 1002, 0o1777), "it was given to somebody already");
        chown(&folder, None, Some(1003)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        take_back(&folder, [&shared, &handed_over], owner).unwrap();
        assert_eq!(of(&folder), (0, 1003, 0o750), "no machine has such numbers");
    }
}
