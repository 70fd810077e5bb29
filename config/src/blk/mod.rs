//! The file of the server for VM disks, `/etc/minerva/blk.toml`.

mod attach;
pub mod contract_ranges;
mod cpus;
mod keys;
mod reader;

pub use attach::attach_lines;
pub(crate) use attach::{SHARED_MEMORY_ARGUMENTS, SHARED_MEMORY_XML};
pub use cpus::CpuSet;

use crate::missing;
use crate::problem::{ConfigError, ConfigErrors, Problem};
use crate::template::write_keys;
use keys::{DEVICE, DISK, SERVER};
use minerva_blocksched::SchedulerName;
use minerva_model::Nanos;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rings of one VM disk.
pub(crate) const QUEUES_MAX: u64 = 64;
/// The device that stands for all that lies on no disk of its own: memory, network.
pub const DEVICE_OTHER: &str = "other";
/// What [`is_vm_disk_name`] wants, for messages.
pub const VM_DISK_NAME_FORM: &str = "1 to 20 letters, digits, `-`, `_` and `.`";
/// Bytes that a serial number has room for.
const NAME_BYTES_MAX: usize = 20;

/// Whether a disk of a guest can have this name: it is its serial number, and part of the names of a socket and a file.
#[must_use]
pub fn is_vm_disk_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.')
}

/// What `minerva-blk` serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlkConfig {
    /// The server itself.
    pub server: BlkServerSettings,
    /// Disks of this host, by kernel name.
    pub devices: BTreeMap<String, BlkDeviceSettings>,
    /// Disks of guests, by their names.
    pub disks: BTreeMap<String, VmDiskSettings>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Problem>,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkServerSettings {
    /// Who the server is once everything is open; none for whoever starts it.
    pub user: Option<String>,
    /// Whose members may connect to the sockets.
    pub socket_group: Option<String>,
    /// Where `minervad` and `minerva-ctl disk` ask and tell.
    pub control: PathBuf,
    /// Whose members may, beside root.
    pub operator_group: Option<String>,
}

impl Default for BlkServerSettings {
    fn default() -> Self {
        let control = PathBuf::from("/run/minerva/servers/blk");
        Self { user: None, socket_group: None, control, operator_group: None }
    }
}

/// `[devices.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkDeviceSettings {
    /// What orders requests.
    pub scheduler: SchedulerName,
    /// Requests at the disk at once; some schedulers take fewer.
    pub depth: u32,
    /// Requests that `tag` has at the disk at once; none for its own choice.
    pub tag_depth: Option<u32>,
    /// How long its thread looks for more before it sleeps, at most.
    pub poll: Nanos,
    /// Processors on which its threads run; none for all.
    pub cpus: Option<CpuSet>,
    /// Whether it seeks; none for what the kernel says.
    pub rotational: Option<bool>,
    /// As what contracts are judged: a built-in model or the path of one; none for the built-in one of its kind.
    pub model: Option<String>,
}

impl Default for BlkDeviceSettings {
    fn default() -> Self {
        let poll = Nanos::from_micros(32);
        let scheduler = SchedulerName::Bfq;
        Self { scheduler, depth: 32, tag_depth: None, poll, cpus: None, rotational: None, model: None }
    }
}

/// `[disks.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmDiskSettings {
    /// Where it stands, as `file:line`, for what turns out to be wrong with it later.
    pub place: String,
    /// What it is made of.
    pub image: PathBuf,
    /// Where QEMU connects; none for the usual place.
    pub socket: Option<PathBuf>,
    /// Nothing is written.
    pub read_only: bool,
    /// Past the host's page cache.
    pub direct: bool,
    /// Rings.
    pub queues: u16,
    /// 1 to 10,000; 100 is neutral.
    pub weight: u32,
    /// What it is promised; none for nothing.
    pub rate_bytes_per_second: Option<u64>,
    /// How much more at once.
    pub burst_bytes: u64,
    /// Within what time.
    pub delay: Nanos,
    /// What it never has more of.
    pub limit_bytes_per_second: Option<u64>,
    /// Of requests without a tag.
    pub tag_default: u8,
    /// Of any request.
    pub tag_max: u8,
    /// The contract is judged for requests here and there, and not in rows.
    pub is_random: bool,
    /// The contract is judged for requests of this length.
    pub request_bytes: u64,
    /// The contract is taken whether the disk can keep it or not.
    pub force: bool,
}

impl Default for VmDiskSettings {
    fn default() -> Self {
        Self {
            place: String::new(),
            image: PathBuf::new(),
            socket: None,
            read_only: false,
            direct: true,
            queues: 4,
            weight: 100,
            rate_bytes_per_second: None,
            burst_bytes: 1 << 20,
            delay: Nanos::from_millis(200),
            limit_bytes_per_second: None,
            tag_default: 64,
            tag_max: 128,
            is_random: false,
            request_bytes: 64 << 10,
            force: false,
        }
    }
}

/// Judges one text; `origin` is the name that errors show.
pub fn parse_blk(text: &str, origin: &Path) -> Result<BlkConfig, ConfigErrors> {
    reader::read_all([(origin.to_owned(), text.to_owned())])
}

/// Judges the file at `path` and its drop-ins, `path` + `.d/*.toml`, in the order of their names.
pub fn load_blk(path: &Path) -> Result<BlkConfig, ConfigError> {
    let files = crate::read_with_drop_ins(path).map_err(|error| missing::told(error, "minerva-blk", path))?;
    Ok(reader::read_all(files)?)
}

/// The commented default file.
pub fn blk_default_file() -> String {
    let mut out = "\
# What minerva-blk serves. Every key stands here with its default. Drop-ins, blk.toml.d/*.toml beside this file, are read after
# it in the order of their names, and what they say wins. `minerva-blk --check` judges it all without serving anything.

# The server itself.
[server]
"
    .to_owned();
    write_keys(&mut out, SERVER, &BlkServerSettings::default(), false);
    out.push_str("\n# One table a disk of this host, by kernel name; `other` is all that lies on none. All VM disks on it share one scheduler.\n# [devices.sda]\n");
    write_keys(&mut out, DEVICE, &BlkDeviceSettings::default(), true);
    out.push_str(
        "\n# One table a disk of a guest. The name is also the serial number that the guest sees.\n# [disks.vm1]\n",
    );
    write_keys(&mut out, DISK, &VmDiskSettings::default(), true);
    out
}
