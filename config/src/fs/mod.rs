//! The file of the cache, `/etc/minerva/fs.toml`.

mod keys;
mod machine;
mod reader;
mod unit;

pub use machine::{MACHINE_IDS, machine_attach_lines, machine_mistakes};
pub use unit::PoolUnit;

use crate::missing;
use crate::problem::{ConfigError, ConfigErrors, Problem};
use crate::settings::Metrics;
use crate::template::write_keys;
use keys::{MIGRATION, SERVER, STABLE, TEMPORARY, TENANT};
use minerva_model::Nanos;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What `minerva-fs` serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsConfig {
    /// The service itself.
    pub server: FsServerSettings,
    /// The pool in memory.
    pub temporary: TemporaryPoolSettings,
    /// The pool on a disk set aside.
    pub stable: StablePoolSettings,
    /// Files that are to go to a place of their own.
    pub migration: MigrationSettings,
    /// Who has a tree, by name.
    pub tenants: BTreeMap<String, FsTenantSettings>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Problem>,
}

impl FsConfig {
    /// When a tenant's files go from memory to the disk: as its own table says, else as for all.
    pub fn watermarks_of(&self, tenant: &str) -> TemporaryPoolSettings {
        let own = self.tenants.get(tenant);
        let of = |own: Option<u32>, of_all: u32| own.unwrap_or(of_all);
        TemporaryPoolSettings {
            watermark_percent: of(own.and_then(|own| own.watermark_percent), self.temporary.watermark_percent),
            spill_to_percent: of(own.and_then(|own| own.spill_to_percent), self.temporary.spill_to_percent),
        }
    }
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsServerSettings {
    /// Below it every tenant has a directory, and in that `temporary` and `stable`.
    pub mount: PathBuf,
    /// Where the memory of tenants is mounted and the socket is.
    pub runtime: PathBuf,
    /// Requests of one file system that are served at once.
    pub threads: u32,
    /// It runs in a machine whose host serves the trees, and moves files from there to the machine's own disks.
    pub is_guest: bool,
    /// Where metrics can be read.
    pub metrics: Metrics,
    /// The group that may connect to the sockets of machines, QEMU's; none for root alone.
    pub socket_group: Option<String>,
}

impl Default for FsServerSettings {
    fn default() -> Self {
        Self {
            mount: PathBuf::from("/minerva"),
            runtime: PathBuf::from("/run/minerva-fs"),
            threads: 2,
            is_guest: false,
            metrics: Metrics::None,
            socket_group: None,
        }
    }
}

/// `[pools.temporary]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryPoolSettings {
    /// Percent of a tenant's quota above which closed files go to the stable pool's disk.
    pub watermark_percent: u32,
    /// And below which that ends.
    pub spill_to_percent: u32,
}

impl Default for TemporaryPoolSettings {
    fn default() -> Self {
        Self { watermark_percent: 80, spill_to_percent: 60 }
    }
}

/// `[pools.stable]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StablePoolSettings {
    /// A directory on the disk set aside.
    pub path: PathBuf,
    /// What stays free there.
    pub reserve_bytes: u64,
    /// Tenants share it by their weights.
    pub is_scheduled: bool,
    /// Requests that are there at once then.
    pub depth: u32,
    /// Who counts what tenants use beside the service.
    pub second_account: SecondAccount,
}

/// Whose count of what tenants use is compared with the service's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecondAccount {
    /// Nobody's between starts.
    #[default]
    None,
    /// That of a walk from time to time, and of memory the kernel's.
    Walk,
    /// The kernel's by project quota; where it does not count, that of a walk.
    Kernel,
}

impl SecondAccount {
    /// All, in the order of the words of the file.
    pub const ALL: [Self; 3] = [Self::None, Self::Walk, Self::Kernel];
}

impl Default for StablePoolSettings {
    fn default() -> Self {
        Self {
            path: PathBuf::from("/var/lib/minerva/pool"),
            reserve_bytes: 64 << 20,
            is_scheduled: true,
            depth: 4,
            second_account: SecondAccount::None,
        }
    }
}

/// `[migration]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationSettings {
    /// The daemon's socket, which is asked who uses a disk; where nobody listens the disk's own counters tell.
    pub daemon: PathBuf,
    /// Percent of a tenant's pool up to which files are taken that are to go elsewhere later.
    pub defer_up_to_percent: u32,
    /// A file that has waited longer moves also while others use its disk.
    pub wait_max: Nanos,
}

impl Default for MigrationSettings {
    fn default() -> Self {
        Self {
            daemon: PathBuf::from("/run/minerva/minervad.sock"),
            defer_up_to_percent: 90,
            wait_max: Nanos::from_secs(86_400),
        }
    }
}

/// `[tenants.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsTenantSettings {
    /// Where it stands, as `file:line`, for what turns out to be wrong with it later.
    pub place: String,
    /// Who owns the roots of its trees; none for root.
    pub user: Option<String>,
    /// The group of the same.
    pub group: Option<String>,
    /// Quota in memory.
    pub temporary_bytes: u64,
    /// Files and directories in memory.
    pub temporary_files: u64,
    /// Quota on the disk.
    pub stable_bytes: u64,
    /// Files and directories on the disk.
    pub stable_files: u64,
    /// Its part of the pool's disk beside others, 1 to 10,000.
    pub weight: u32,
    /// At the limit of `temporary` closed files make room on the stable pool's disk.
    pub spills_when_full: bool,
    /// The service reads files in memory, so that one that somebody reads can go over to the disk while it is written.
    pub service_reads: bool,
    /// The kernel writes files in memory by itself, and the memory's size keeps the quota.
    pub kernel_writes: bool,
    /// Percent of its quota above which its closed files go to the disk; none for what holds of all.
    pub watermark_percent: Option<u32>,
    /// And below which that ends.
    pub spill_to_percent: Option<u32>,
    /// Units that write directories' files to its pool.
    pub units: Vec<PoolUnit>,
    /// The virtual machine whose tenant this is, by QEMU's or libvirt's name; none for users of the host.
    pub machine: Option<String>,
    /// The host's number of that machine's root; its other users have those that follow, [`MACHINE_IDS`] in all. 0 without a machine.
    pub ids: u32,
}

impl Default for FsTenantSettings {
    fn default() -> Self {
        Self {
            place: String::new(),
            user: None,
            group: None,
            temporary_bytes: 256 << 20,
            temporary_files: 100_000,
            stable_bytes: 10 << 30,
            stable_files: 1_000_000,
            weight: 100,
            spills_when_full: false,
            service_reads: false,
            kernel_writes: false,
            watermark_percent: None,
            spill_to_percent: None,
            units: Vec::new(),
            machine: None,
            ids: 0,
        }
    }
}

/// Judges one text; `origin` is the name that errors show.
pub fn parse_fs(text: &str, origin: &Path) -> Result<FsConfig, ConfigErrors> {
    reader::read_all([(origin.to_owned(), text.to_owned())])
}

/// Judges the file at `path` and its drop-ins, `path` + `.d/*.toml`, in the order of their names.
pub fn load_fs(path: &Path) -> Result<FsConfig, ConfigError> {
    let files = crate::read_with_drop_ins(path).map_err(|error| missing::told(error, "minerva-fs", path))?;
    Ok(reader::read_all(files)?)
}

/// The commented default file.
pub fn fs_default_file() -> String {
    let mut out = "\
# The pool of memory and fast disk that minerva-fs serves. Every key stands here with its default. Drop-ins, fs.toml.d/*.toml beside
# this file, are read after it in the order of their names, and what they say wins. `minerva-fs --check` judges it all and mounts
# nothing.

# The service itself.
[server]
"
    .to_owned();
    write_keys(&mut out, SERVER, &FsServerSettings::default(), false);
    out.push_str("\n# Memory: a tmpfs for each tenant.\n[pools.temporary]\n");
    write_keys(&mut out, TEMPORARY, &TemporaryPoolSettings::default(), false);
    out.push_str("\n# A directory on a disk set aside.\n[pools.stable]\n");
    write_keys(&mut out, STABLE, &StablePoolSettings::default(), false);
    out.push_str("\n# Files in the pool that are to go to a place of their own when its disk is quiet.\n[migration]\n");
    write_keys(&mut out, MIGRATION, &MigrationSettings::default(), false);
    out.push_str(
        "\n# One table a tenant; its trees are MOUNT/NAME/temporary and MOUNT/NAME/stable.\n# [tenants.web]\n",
    );
    write_keys(&mut out, TENANT, &FsTenantSettings::default(), true);
    out
}
