//! Every key of `blk.toml`. Rows as in `crate::keys`.

use super::contract_ranges::{BURST_BYTES, DELAY, RATE_BYTES_PER_SECOND_MAX, REQUEST_BYTES};
use super::cpus::CPUS_FORM;
use super::{BlkDeviceSettings, BlkServerSettings, QUEUES_MAX, VmDiskSettings};
use crate::forms::{PATH_FORM, absolute, group_name, show_path};
use crate::key::{Key, Kind, show_duration, show_size, show_text};
use minerva_blocksched::{SchedulerName, TAG_DEPTH_MAX};
use minerva_model::Nanos;

/// The names of the catalogue, which is the only list of them.
const SCHEDULERS: [&str; SchedulerName::ALL.len()] = {
    let mut words = [""; SchedulerName::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = SchedulerName::ALL[at].as_str();
        at += 1;
    }
    words
};

pub(super) const SERVER: &[Key<BlkServerSettings>] = &[
    Key {
        name: "user",
        doc: "Who the server is once images and sockets are open, where it is started by root; unset: whoever starts it.",
        kind: Kind::Text { form: "the name of a user", set: |s, v| group_name(v).map(|name| s.user = Some(name)) },
        show: |s| s.user.as_deref().and_then(show_text),
        example: "\"minerva-blk\"",
    },
    Key {
        name: "socket_group",
        doc: "Whose members may connect to the sockets: the group of QEMU's processes.",
        kind: Kind::Text {
            form: "the name of a group",
            set: |s, v| group_name(v).map(|name| s.socket_group = Some(name)),
        },
        show: |s| s.socket_group.as_deref().and_then(show_text),
        example: "\"kvm\"",
    },
    Key {
        name: "control",
        doc: "Where minervad and `minerva-ctl disk` ask and tell; below the daemon's runtime directory, so that it is found.",
        kind: Kind::Text { form: PATH_FORM, set: |s, v| absolute(v).map(|path| s.control = path) },
        show: |s| show_path(&s.control),
        example: "",
    },
    Key {
        name: "operator_group",
        doc: "Whose members may do so beside root; unset: root alone.",
        kind: Kind::Text {
            form: "the name of a group",
            set: |s, v| group_name(v).map(|name| s.operator_group = Some(name)),
        },
        show: |s| s.operator_group.as_deref().and_then(show_text),
        example: "\"minerva\"",
    },
];

pub(super) const DEVICE: &[Key<BlkDeviceSettings>] = &[
    Key {
        name: "scheduler",
        doc: "What orders the requests of all VM disks on it: `htbs` and `pclock` keep contracts, `mclock` rates and limits, `tag` obeys\n\
              # the priorities of guests' applications, `bfq` and `sfq` share by weight, `noop` orders nothing.",
        kind: Kind::Choice { words: &SCHEDULERS, set: |d, at| d.scheduler = SchedulerName::ALL[at] },
        show: |d| show_text(d.scheduler.as_str()),
        example: "",
    },
    Key {
        name: "depth",
        doc: "Requests that it is given at once, at most; schedulers that keep promises give it fewer.",
        kind: Kind::Whole { least: 1, most: 1024, set: |d, v| d.depth = v as u32 },
        show: |d| Some(d.depth.to_string()),
        example: "",
    },
    Key {
        name: "tag_depth",
        doc: "Requests that `tag` gives it at once, within `depth`; unset: 8 where it seeks, 2 elsewhere. More is more throughput, and\n\
              # longer waits for what is urgent.",
        kind: Kind::Whole { least: 1, most: TAG_DEPTH_MAX as u64, set: |d, v| d.tag_depth = Some(v as u32) },
        show: |d| d.tag_depth.map(|depth| depth.to_string()),
        example: "1",
    },
    Key {
        name: "poll",
        doc: "How long its thread looks for more before it sleeps, at most, where that has been worth it lately; \"0s\" for never. Idle\n\
              # guests cost no processor either way.",
        kind: Kind::Duration { least: Nanos(0), most: Nanos::from_millis(1), set: |d, v| d.poll = v },
        show: |d| show_duration(d.poll),
        example: "",
    },
    Key {
        name: "cpus",
        doc: "Processors on which its threads run; unset: all. Those beside which the disk's interrupts and its guests run are good ones.",
        kind: Kind::Text { form: CPUS_FORM, set: |d, v| v.parse().map(|cpus| d.cpus = Some(cpus)) },
        show: |d| d.cpus.as_ref().and_then(|cpus| show_text(&cpus.to_string())),
        example: "\"2-3\"",
    },
    Key {
        name: "rotational",
        doc: "Whether it seeks; unset: as the kernel says.",
        kind: Kind::Flag { set: |d, v| d.rotational = Some(v) },
        show: |d| d.rotational.map(|is| is.to_string()),
        example: "true",
    },
    Key {
        name: "model",
        doc: "As what its contracts are judged: sata7200-80g, sas10k-300g, sata-ssd, slow-ssd, or the path, with a `/` in it, of a model\n\
              # that `minerva-sim fit` made of measurements; unset: sata7200-80g where it seeks, sata-ssd elsewhere.",
        kind: Kind::Text {
            form: "the name or path of a disk model",
            set: |d, v| model(v).map(|model| d.model = Some(model)),
        },
        show: |d| d.model.as_deref().and_then(show_text),
        example: "\"sata7200-80g\"",
    },
];

/// How a guest uses its disk, as far as its contract is concerned.
const ACCESS: [&str; 2] = ["sequential", "random"];

fn model(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("name a model".to_owned()) } else { Ok(text.to_owned()) }
}

pub(super) const DISK: &[Key<VmDiskSettings>] = &[
    Key {
        name: "image",
        doc: "A raw image or a block device. Nobody else may write it meanwhile.",
        kind: Kind::Text { form: PATH_FORM, set: |d, v| absolute(v).map(|path| d.image = path) },
        show: |_| None,
        example: "\"/var/lib/minerva/vm1.raw\"",
    },
    Key {
        name: "socket",
        doc: "Where QEMU connects; unset: NAME.sock in /run/minerva-blk.",
        kind: Kind::Text { form: PATH_FORM, set: |d, v| absolute(v).map(|path| d.socket = Some(path)) },
        show: |d| d.socket.as_deref().and_then(show_path),
        example: "\"/run/minerva-blk/vm1.sock\"",
    },
    Key {
        name: "read_only",
        doc: "Nothing is written, and several may read it.",
        kind: Kind::Flag { set: |d, v| d.read_only = v },
        show: |d| Some(d.read_only.to_string()),
        example: "",
    },
    Key {
        name: "direct",
        doc: "Past the host's page cache. Without, the schedulers order copies to memory and not the disk.",
        kind: Kind::Flag { set: |d, v| d.direct = v },
        show: |d| Some(d.direct.to_string()),
        example: "",
    },
    Key {
        name: "queues",
        doc: "Rings that the guest may have; as many as it has processors is usual.",
        kind: Kind::Whole { least: 1, most: QUEUES_MAX, set: |d, v| d.queues = v as u16 },
        show: |d| Some(d.queues.to_string()),
        example: "",
    },
    Key {
        name: "weight",
        doc: "Its part beside others, where the scheduler shares by weight; 100 is neutral.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |d, v| d.weight = v as u32 },
        show: |d| Some(d.weight.to_string()),
        example: "",
    },
    Key {
        name: "rate",
        doc: "Its contract: so many bytes a second.",
        kind: Kind::Size { least: 1, most: RATE_BYTES_PER_SECOND_MAX, set: |d, v| d.rate_bytes_per_second = Some(v) },
        show: |d| d.rate_bytes_per_second.and_then(show_size),
        example: "\"8800kB\"",
    },
    Key {
        name: "burst",
        doc: "Its contract: and so many at once.",
        kind: Kind::Size { least: *BURST_BYTES.start(), most: *BURST_BYTES.end(), set: |d, v| d.burst_bytes = v },
        show: |d| show_size(d.burst_bytes),
        example: "",
    },
    Key {
        name: "delay",
        doc: "Its contract: each within this time.",
        kind: Kind::Duration { least: *DELAY.start(), most: *DELAY.end(), set: |d, v| d.delay = v },
        show: |d| show_duration(d.delay),
        example: "",
    },
    Key {
        name: "limit",
        doc: "Never more bytes a second than this (`mclock`).",
        kind: Kind::Size { least: 1, most: RATE_BYTES_PER_SECOND_MAX, set: |d, v| d.limit_bytes_per_second = Some(v) },
        show: |d| d.limit_bytes_per_second.and_then(show_size),
        example: "\"100MB\"",
    },
    Key {
        name: "tag_default",
        doc: "The priority of requests to which the guest's application gave none (`tag`).",
        kind: Kind::Whole { least: 1, most: 254, set: |d, v| d.tag_default = v as u8 },
        show: |d| Some(d.tag_default.to_string()),
        example: "",
    },
    Key {
        name: "tag_max",
        doc: "The greatest priority that an application of the guest can give a request.",
        kind: Kind::Whole { least: 1, most: 254, set: |d, v| d.tag_max = v as u8 },
        show: |d| Some(d.tag_max.to_string()),
        example: "",
    },
    Key {
        name: "access",
        doc: "What its contract is judged for: a guest that reads and writes on in rows, or one that does so here and there.",
        kind: Kind::Choice { words: &ACCESS, set: |d, at| d.is_random = at == 1 },
        show: |d| show_text(ACCESS[usize::from(d.is_random)]),
        example: "",
    },
    Key {
        name: "request",
        doc: "What its contract is judged for: requests of this length.",
        kind: Kind::Size { least: *REQUEST_BYTES.start(), most: *REQUEST_BYTES.end(), set: |d, v| d.request_bytes = v },
        show: |d| show_size(d.request_bytes),
        example: "",
    },
    Key {
        name: "force",
        doc: "Its contract is taken also where the disk cannot keep all contracts on it.",
        kind: Kind::Flag { set: |d, v| d.force = v },
        show: |d| Some(d.force.to_string()),
        example: "",
    },
];
