//! Every key of `fs.toml`. Rows as in `crate::keys`.

use super::machine::{IDS_MAX, IDS_MIN, machine_name};
use super::unit::{FORM, PoolUnit};
use super::{
    FsServerSettings, FsTenantSettings, MigrationSettings, SecondAccount, StablePoolSettings, TemporaryPoolSettings,
};
use crate::forms::{METRICS_FORM, PATH_FORM, absolute, group_name, parse_metrics, show_path};
use crate::key::{Key, Kind, show_duration, show_size, show_text, show_texts};
use minerva_model::Nanos;

const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 1 << 50;
const FILES_MAX: u64 = 1 << 32;
/// Who says whose request is next.
const SCHEDULERS: [&str; 2] = ["sfq", "none"];
/// Who counts beside the service, in the order of `SecondAccount::ALL`.
const SECOND_ACCOUNTS: [&str; 3] = ["none", "walk", "kernel"];
/// What a tenant may choose for a full `temporary`.
const WHEN_FULL: [&str; 2] = ["refuse", "spill"];

/// Who writes files in memory.
const WRITES: [&str; 2] = ["service", "kernel"];

/// Who reads files in memory of a tenant whose files go over to the disk.
const READS: [&str; 2] = ["kernel", "service"];

/// Whose trees it works with.
const ROLES: [&str; 2] = ["host", "guest"];

pub(super) const SERVER: &[Key<FsServerSettings>] = &[
    Key {
        name: "role",
        doc: "\"host\": it serves trees to tenants. \"guest\": it runs in a virtual machine whose host serves the trees, mounted at `mount`, and moves deferred files from there to the machine's own disks.",
        kind: Kind::Choice { words: &ROLES, set: |s, at| s.is_guest = at == 1 },
        show: |s| show_text(ROLES[usize::from(s.is_guest)]),
        example: "",
    },
    Key {
        name: "mount",
        doc: "Below it every tenant has a directory, and in that `temporary` and `stable`.",
        kind: Kind::Text { form: PATH_FORM, set: |s, v| absolute(v).map(|path| s.mount = path) },
        show: |s| show_path(&s.mount),
        example: "",
    },
    Key {
        name: "runtime",
        doc: "Where the memory of tenants is mounted, and where `control.sock` is. Programs and minerva-ctl look for that in the default directory only: with another one set MINERVA_CACHE_SOCKET, or `minerva-ctl cache --server`.",
        kind: Kind::Text { form: PATH_FORM, set: |s, v| absolute(v).map(|path| s.runtime = path) },
        show: |s| show_path(&s.runtime),
        example: "",
    },
    Key {
        name: "threads",
        doc: "Requests of one file system that are served at once.",
        kind: Kind::Whole { least: 1, most: 64, set: |s, v| s.threads = v as u32 },
        show: |s| Some(s.threads.to_string()),
        example: "",
    },
    Key {
        name: "metrics",
        doc: "Where Prometheus reads: \"none\", \"loopback:9562\", or \"unix:/run/minerva-fs/metrics.sock\", which only root can connect to.",
        kind: Kind::Text { form: METRICS_FORM, set: |s, v| parse_metrics(v).map(|metrics| s.metrics = metrics) },
        show: |s| show_text(&s.metrics.to_string()),
        example: "",
    },
    Key {
        name: "socket_group",
        doc: "The group of the sockets by which machines have their trees, a name or number: QEMU's. Unset: root alone connects.",
        kind: Kind::Text { form: "a group", set: |s, v| group_name(v).map(|name| s.socket_group = Some(name)) },
        show: |s| s.socket_group.as_deref().and_then(show_text),
        example: "\"kvm\"",
    },
];

pub(super) const TEMPORARY: &[Key<TemporaryPoolSettings>] = &[
    Key {
        name: "watermark",
        doc: "Percent of a tenant's quota above which its closed files go to the stable pool's disk, oldest first.",
        kind: Kind::Whole { least: 1, most: 100, set: |p, v| p.watermark_percent = v as u32 },
        show: |p| Some(p.watermark_percent.to_string()),
        example: "",
    },
    Key {
        name: "spill_to",
        doc: "And percent below which that ends.",
        kind: Kind::Whole { least: 0, most: 99, set: |p, v| p.spill_to_percent = v as u32 },
        show: |p| Some(p.spill_to_percent.to_string()),
        example: "",
    },
];

pub(super) const STABLE: &[Key<StablePoolSettings>] = &[
    Key {
        name: "path",
        doc: "A directory on the disk set aside, which nobody else writes.",
        kind: Kind::Text { form: PATH_FORM, set: |p, v| absolute(v).map(|path| p.path = path) },
        show: |p| show_path(&p.path),
        example: "",
    },
    Key {
        name: "scheduler",
        doc: "Who uses that disk next, among tenants that read, write and sync beside one another: start-time fair queueing, or nobody says.",
        kind: Kind::Choice { words: &SCHEDULERS, set: |p, at| p.is_scheduled = at == 0 },
        show: |p| show_text(SCHEDULERS[usize::from(!p.is_scheduled)]),
        example: "",
    },
    Key {
        name: "depth",
        doc: "Requests that are at that disk at once by it.",
        kind: Kind::Whole { least: 1, most: 256, set: |p, v| p.depth = v as u32 },
        show: |p| Some(p.depth.to_string()),
        example: "",
    },
    Key {
        name: "second_account",
        doc: "Whose count of what tenants use is compared with the service's own, every few seconds or minutes: \"none\"; \"walk\" walks through trees and asks the kernel of memory; \"kernel\" lets the kernel count on the disk as well, by a project for each tenant (ext4 and XFS mounted with `prjquota`), and walks where it does not. A restart takes it.",
        kind: Kind::Choice { words: &SECOND_ACCOUNTS, set: |p, at| p.second_account = SecondAccount::ALL[at] },
        show: |p| show_text(SECOND_ACCOUNTS[p.second_account as usize]),
        example: "",
    },
    Key {
        name: "reserve",
        doc: "What stays free on that disk whatever the quotas say.",
        kind: Kind::Size { least: 0, most: BYTES_MAX, set: |p, v| p.reserve_bytes = v },
        show: |p| show_size(p.reserve_bytes),
        example: "",
    },
];

pub(super) const MIGRATION: &[Key<MigrationSettings>] = &[
    Key {
        name: "daemon",
        doc: "The socket of minervad, which is asked who uses a disk; where nobody listens the disk's own counters tell. In a guest that of its agent, /run/minerva/agent.sock unless it is set; where nobody answers there, files wait.",
        kind: Kind::Text { form: PATH_FORM, set: |m, v| absolute(v).map(|path| m.daemon = path) },
        show: |m| show_path(&m.daemon),
        example: "",
    },
    Key {
        name: "defer_up_to",
        doc: "Percent of a tenant's pool up to which it takes files that are to go elsewhere later; above it programs write to the place itself.",
        kind: Kind::Whole { least: 0, most: 100, set: |m, v| m.defer_up_to_percent = v as u32 },
        show: |m| Some(m.defer_up_to_percent.to_string()),
        example: "",
    },
    Key {
        name: "wait_max",
        doc: "A file that has waited longer for its disk to be quiet moves beside others, in a tenth of the time.",
        kind: Kind::Duration {
            least: Nanos::from_secs(1),
            most: Nanos::from_secs(365 * 86_400),
            set: |m, v| m.wait_max = v,
        },
        show: |m| show_duration(m.wait_max),
        example: "",
    },
];

pub(super) const TENANT: &[Key<FsTenantSettings>] = &[
    Key {
        name: "user",
        doc: "Who owns the roots of its trees, a name or number; unset: root.",
        kind: Kind::Text { form: "a user", set: |t, v| group_name(v).map(|name| t.user = Some(name)) },
        show: |t| t.user.as_deref().and_then(show_text),
        example: "\"www-data\"",
    },
    Key {
        name: "group",
        doc: "The group of the same; unset: the user's.",
        kind: Kind::Text { form: "a group", set: |t, v| group_name(v).map(|name| t.group = Some(name)) },
        show: |t| t.group.as_deref().and_then(show_text),
        example: "\"www-data\"",
    },
    Key {
        name: "temporary",
        doc: "Its quota in memory.",
        kind: Kind::Size { least: BYTES_MIN, most: BYTES_MAX, set: |t, v| t.temporary_bytes = v },
        show: |t| show_size(t.temporary_bytes),
        example: "",
    },
    Key {
        name: "temporary_files",
        doc: "Files, directories and links in memory.",
        kind: Kind::Whole { least: 1, most: FILES_MAX, set: |t, v| t.temporary_files = v },
        show: |t| Some(t.temporary_files.to_string()),
        example: "",
    },
    Key {
        name: "stable",
        doc: "Its quota on the disk.",
        kind: Kind::Size { least: BYTES_MIN, most: BYTES_MAX, set: |t, v| t.stable_bytes = v },
        show: |t| show_size(t.stable_bytes),
        example: "",
    },
    Key {
        name: "stable_files",
        doc: "Files, directories and links on the disk.",
        kind: Kind::Whole { least: 1, most: FILES_MAX, set: |t, v| t.stable_files = v },
        show: |t| Some(t.stable_files.to_string()),
        example: "",
    },
    Key {
        name: "weight",
        doc: "Its part of the pool's disk beside other tenants there; 100 is neutral.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |t, v| t.weight = v as u32 },
        show: |t| Some(t.weight.to_string()),
        example: "",
    },
    Key {
        name: "when_full",
        doc: "At the limit of `temporary` a write is refused with ENOSPC, or files go over to the stable pool's disk.",
        kind: Kind::Choice { words: &WHEN_FULL, set: |t, at| t.spills_when_full = at == 1 },
        show: |t| show_text(WHEN_FULL[usize::from(t.spills_when_full)]),
        example: "",
    },
    Key {
        name: "reads",
        doc: "With `when_full = \"spill\"`, who reads files in `temporary`: the kernel by itself, which keeps a file in memory for as long as a reader that opened it first has it open, so that a write beyond the quota is short meanwhile; or the service, which lets every file go over to the disk while it is written, and reads more slowly. One that is open keeps to what it was opened with.",
        kind: Kind::Choice { words: &READS, set: |t, at| t.service_reads = at == 1 },
        show: |t| show_text(READS[usize::from(t.service_reads)]),
        example: "",
    },
    Key {
        name: "writes",
        doc: "Who writes files in `temporary`: the service, which counts each write before it is done, or the kernel by itself, which makes small writes several times as fast and leaves the quota to the memory's own size; not with `when_full = \"spill\"`. A restart takes it.",
        kind: Kind::Choice { words: &WRITES, set: |t, at| t.kernel_writes = at == 1 },
        show: |t| show_text(WRITES[usize::from(t.kernel_writes)]),
        example: "",
    },
    Key {
        name: "watermark",
        doc: "Percent of its quota in memory above which its closed files go to the disk; unset: that of `[pools.temporary]`.",
        kind: Kind::Whole { least: 1, most: 100, set: |t, v| t.watermark_percent = Some(v as u32) },
        show: |t| t.watermark_percent.map(|percent| percent.to_string()),
        example: "80",
    },
    Key {
        name: "spill_to",
        doc: "And percent below which that ends; unset: that of `[pools.temporary]`.",
        kind: Kind::Whole { least: 0, most: 99, set: |t, v| t.spill_to_percent = Some(v as u32) },
        show: |t| t.spill_to_percent.map(|percent| percent.to_string()),
        example: "60",
    },
    Key {
        name: "units",
        doc: "systemd services whose files below a directory go to its pool, and to their place after each run: \"UNIT:DIRECTORY\", or \"UNIT:DIRECTORY:temporary\". `minerva-ctl cache units` writes the drop-ins.",
        kind: Kind::Texts {
            form: FORM,
            check: |text| PoolUnit::parse(text).map(drop),
            set: |t, v| t.units = v.iter().filter_map(|text| PoolUnit::parse(text).ok()).collect(),
        },
        show: |t| {
            if t.units.is_empty() { None } else { show_texts(&t.units.iter().map(PoolUnit::text).collect::<Vec<_>>()) }
        },
        example: "[\"dump.service:/srv/dump\"]",
    },
    Key {
        name: "machine",
        doc: "The virtual machine whose trees these are, by QEMU's or libvirt's name; takes `ids`, and neither `user` nor `group`. `minerva-ctl cache attach-line MACHINE` says how it gets them.",
        kind: Kind::Text { form: "a machine", set: |t, v| machine_name(v).map(|name| t.machine = Some(name)) },
        show: |t| t.machine.as_deref().and_then(show_text),
        example: "\"vm1\"",
    },
    Key {
        name: "ids",
        doc: "Which user of the host the machine's root is; its other users and groups are the 65,535 numbers that follow, which nobody else may have.",
        kind: Kind::Whole { least: IDS_MIN, most: IDS_MAX, set: |t, v| t.ids = v as u32 },
        show: |t| if t.ids == 0 { None } else { Some(t.ids.to_string()) },
        example: "1000000",
    },
];
