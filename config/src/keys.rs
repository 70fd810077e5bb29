//! Every key of the file, with its range and its meaning. To add one, add a row.
//!
//! Ranges are wide: they refuse what cannot be meant (a share of 0, a slice of a week), not what is merely unusual.

use crate::actuation_keys::ACTUATION;
use crate::fennel_keys::FENNEL;
use crate::forecast_keys::{FORECAST, FORECAST_WORDS};
use crate::forms::{
    DISK_FORM, GLOB_FORM, METRICS_FORM, NAME_FORM, PATH_FORM, absolute, check_cgroup_path, check_disk_name, check_glob,
    check_name, group_name, parse_metrics, show_path,
};
use crate::key::{Key, Kind, show_duration, show_size, show_text, show_texts};
use crate::listener_keys::PARTICIPATION;
use crate::part_keys::{COORDINATION, CREDITS, LEVELS};
use crate::settings::{Config, LogFormat, LogLevel};
use minerva_model::{BackEnd, DeviceSettings, ForecastMode, Mode, Nanos, Role, TenantRule};

/// A table of the file that fills a part of the [`Config`].
pub(crate) struct Section {
    /// Empty for the keys above the first table.
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key<Config>],
}

const MINUTE: Nanos = Nanos::from_secs(60);
const YEAR: Nanos = Nanos::from_secs(365 * 24 * 3600);
const MODES: [Mode; 3] = [Mode::Observe, Mode::Shadow, Mode::Enforce];
const MODE_WORDS: [&str; 3] = ["observe", "shadow", "enforce"];
const BACK_ENDS: &[BackEnd] =
    &[BackEnd::Bfq, BackEnd::BfqV1, BackEnd::IoCost, BackEnd::Max, BackEnd::ThrottleV1, BackEnd::Observe];
/// Of all of them, so that none that is added there can be left out here.
const BACK_END_WORDS: [&str; BACK_ENDS.len()] = {
    let mut words = [""; BACK_ENDS.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = BACK_ENDS[at].as_str();
        at += 1;
    }
    words
};
const LEVEL_WORDS: [&str; 5] = [
    LogLevel::ALL[0].as_str(),
    LogLevel::ALL[1].as_str(),
    LogLevel::ALL[2].as_str(),
    LogLevel::ALL[3].as_str(),
    LogLevel::ALL[4].as_str(),
];
const FORMAT_WORDS: [&str; 2] = [LogFormat::ALL[0].as_str(), LogFormat::ALL[1].as_str()];
/// The elevators of the mainline kernel.
const ELEVATORS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "",
        doc: "",
        keys: &[Key {
            name: "mode",
            doc: "How far to go: `observe` watches, `shadow` also decides and says so, `enforce` also writes to the kernel.",
            kind: Kind::Choice { words: &MODE_WORDS, set: |c, at| c.engine.mode = MODES[at] },
            show: |c| MODES.iter().position(|m| *m == c.engine.mode).and_then(|at| show_text(MODE_WORDS[at])),
            example: "",
        }],
    },
    Section {
        name: "observe",
        doc: "What counts as use.",
        keys: &[
            Key {
                name: "slice",
                doc: "How often counters are read and shares decided.",
                kind: Kind::Duration {
                    least: Nanos::from_millis(100),
                    most: MINUTE,
                    set: |c, v| c.engine.observe.slice = v,
                },
                show: |c| show_duration(c.engine.observe.slice),
                example: "",
            },
            Key {
                name: "active_ops",
                doc: "A tenant that completes this many requests in a slice counts as using the disk.",
                kind: Kind::Whole { least: 1, most: 1_000_000, set: |c, v| c.engine.observe.active_ops = v },
                show: |c| Some(c.engine.observe.active_ops.to_string()),
                example: "",
            },
        ],
    },
    Section { name: "fennel", doc: "Sparing tenants rise, heavy ones sink.", keys: FENNEL },
    Section { name: "credits", doc: "What stepping back earns, and what it buys.", keys: CREDITS },
    Section { name: "levels", doc: "What the levels mean at which tenants step back.", keys: LEVELS },
    Section {
        name: "coordination",
        doc: "Operations that tenants announce, to be told when to begin.",
        keys: COORDINATION,
    },
    Section {
        name: "participation",
        doc: "Where tenants ask. All but the certificates and the limits, the last six, takes a restart.",
        keys: PARTICIPATION,
    },
    Section { name: "forecast", doc: "What tenants are expected to do.", keys: FORECAST },
    Section { name: "actuation", doc: "How knobs are written.", keys: ACTUATION },
    Section { name: "daemon", doc: "Where the daemon keeps its things, and what it looks at.", keys: DAEMON },
    Section {
        name: "log",
        doc: "What is written to the log.",
        keys: &[
            Key {
                name: "level",
                doc: "Nothing below this is logged.",
                kind: Kind::Choice { words: &LEVEL_WORDS, set: |c, at| c.daemon.log.level = LogLevel::ALL[at] },
                show: |c| show_text(c.daemon.log.level.as_str()),
                example: "",
            },
            Key {
                name: "format",
                doc: "`text` for people, `json` for one object a line.",
                kind: Kind::Choice { words: &FORMAT_WORDS, set: |c, at| c.daemon.log.format = LogFormat::ALL[at] },
                show: |c| show_text(c.daemon.log.format.as_str()),
                example: "",
            },
        ],
    },
    Section {
        name: "named",
        doc: "Process groups that `minerva-ctl run` starts and `minerva-ctl attach` adopts.",
        keys: &[Key {
            name: "parent",
            doc: "The cgroup in which each gets one of its own. Background work has its groups in one beside it, `<parent>-background`.",
            kind: Kind::Text {
                form: "the path of a cgroup, without a leading slash",
                set: |c, v| {
                    check_cgroup_path(v)?;
                    c.named.parent = v.to_owned();
                    Ok(())
                },
            },
            show: |c| show_text(&c.named.parent),
            example: "",
        }],
    },
];

const DAEMON: &[Key<Config>] = &[
    Key {
        name: "runtime_dir",
        doc: "What may vanish with a reboot: the journal of knobs, the lock.",
        kind: Kind::Text { form: PATH_FORM, set: |c, v| absolute(v).map(|path| c.daemon.runtime_dir = path) },
        show: |c| show_path(&c.daemon.runtime_dir),
        example: "",
    },
    Key {
        name: "state_dir",
        doc: "What must not vanish: the store of histories and decisions. Best on a disk that is not steered.",
        kind: Kind::Text { form: PATH_FORM, set: |c, v| absolute(v).map(|path| c.daemon.state_dir = path) },
        show: |c| show_path(&c.daemon.state_dir),
        example: "",
    },
    Key {
        name: "socket",
        doc: "Where tools talk to the daemon.",
        kind: Kind::Text { form: PATH_FORM, set: |c, v| absolute(v).map(|path| c.daemon.socket = path) },
        show: |c| show_path(&c.daemon.socket),
        example: "",
    },
    Key {
        name: "socket_group",
        doc: "The group whose members may use the sockets besides root, by name or number; unset: the daemon's own.",
        kind: Kind::Text {
            form: "a group",
            set: |c, v| group_name(v).map(|group| c.daemon.socket_group = Some(group)),
        },
        show: |c| c.daemon.socket_group.as_deref().and_then(show_text),
        example: "\"disk\"",
    },
    Key {
        name: "viewer_group",
        doc: "The group whose members may look: status, top, explain, forecast, audit, jobs, and background list, plan and explain; nothing else. Unset: nobody.",
        kind: Kind::Text {
            form: "a group",
            set: |c, v| group_name(v).map(|group| c.daemon.viewer_group = Some(group)),
        },
        show: |c| c.daemon.viewer_group.as_deref().and_then(show_text),
        example: "\"adm\"",
    },
    Key {
        name: "metrics",
        doc: "Where Prometheus reads: \"none\", \"loopback:9561\", or \"unix:/run/minerva/metrics.sock\", which root and members of `socket_group` can connect to.",
        kind: Kind::Text { form: METRICS_FORM, set: |c, v| parse_metrics(v).map(|metrics| c.daemon.metrics = metrics) },
        show: |c| show_text(&c.daemon.metrics.to_string()),
        example: "",
    },
    Key {
        name: "cgroup_root",
        doc: "The hierarchy with the io (v2) or blkio (v1) controller; unset, it is found where it is mounted.",
        kind: Kind::Text { form: PATH_FORM, set: |c, v| absolute(v).map(|path| c.daemon.cgroup_root = Some(path)) },
        show: |c| c.daemon.cgroup_root.as_deref().and_then(show_path),
        example: "\"/sys/fs/cgroup\"",
    },
    Key {
        name: "include",
        doc: "Only cgroups at or below a match of these globs are tenants; empty: all.",
        kind: Kind::Texts { form: GLOB_FORM, check: check_glob, set: |c, v| c.daemon.include = v },
        show: |c| show_texts(&c.daemon.include),
        example: "",
    },
    Key {
        name: "devices_only",
        doc: "Only these disks are looked at, by kernel name such as \"sda\"; empty: all.",
        kind: Kind::Texts { form: DISK_FORM, check: check_disk_name, set: |c, v| c.daemon.devices_only = v },
        show: |c| show_texts(&c.daemon.devices_only),
        example: "",
    },
    Key {
        name: "guard",
        doc: "A second process puts every knob back when the daemon dies without having done so.",
        kind: Kind::Flag { set: |c, v| c.daemon.guard = v },
        show: |c| Some(c.daemon.guard.to_string()),
        example: "",
    },
];

pub(crate) const DEVICE: &[Key<DeviceSettings>] = &[
    Key {
        name: "back_end",
        doc: "The back end to use whatever the disk's facts say; unset: the best that bites.",
        kind: Kind::Choice { words: &BACK_END_WORDS, set: |d, at| d.back_end = Some(BACK_ENDS[at]) },
        show: |d| d.back_end.and_then(|b| show_text(b.as_str())),
        example: "\"bfq\"",
    },
    Key {
        name: "elevator",
        doc: "Put this elevator in force, and the former one back at the end.",
        kind: Kind::Choice { words: &ELEVATORS, set: |d, at| d.elevator = Some(ELEVATORS[at].to_owned()) },
        show: |d| d.elevator.as_deref().and_then(show_text),
        example: "\"bfq\"",
    },
    Key {
        name: "enable_iocost",
        doc: "Enable iocost on the disk, and disable it at the end.",
        kind: Kind::Flag { set: |d, v| d.enable_iocost = v },
        show: |d| Some(d.enable_iocost.to_string()),
        example: "",
    },
    Key {
        name: "strict_guarantees",
        doc: "While bfq is in force, let it keep one request inside the disk at a time: whoever commits waits far less behind scanners on a disk that turns, and random readers of great depth get about half.",
        kind: Kind::Flag { set: |d, v| d.strict_guarantees = v },
        show: |d| Some(d.strict_guarantees.to_string()),
        example: "",
    },
    Key {
        name: "strict_guarantees_by_use",
        doc: "While bfq is in force on a disk that turns, set strict_guarantees while somebody commits beside readers of large blocks, and put it back when nobody does, or when random readers of great depth come.",
        kind: Kind::Flag { set: |d, v| d.strict_guarantees_by_use = Some(v) },
        show: |d| Some(d.strict_guarantees_by_use.unwrap_or(true).to_string()),
        example: "",
    },
    Key {
        name: "low_latency_by_use",
        doc: "While bfq is in force, take its low_latency away while somebody commits beside readers of large blocks on a disk that turns, or while several tenants use one that does not, and put it back after.",
        kind: Kind::Flag { set: |d, v| d.low_latency_by_use = v },
        show: |d| Some(d.low_latency_by_use.to_string()),
        example: "",
    },
    Key {
        name: "bandwidth_bytes_per_second",
        doc: "What the disk delivers, for back ends that cap; unset: the most that was measured.",
        kind: Kind::Size { least: 1 << 16, most: 1 << 44, set: |d, v| d.bandwidth_bytes_per_second = Some(v) },
        show: |d| d.bandwidth_bytes_per_second.and_then(show_size),
        example: "\"150MB\"",
    },
];

pub(crate) const RULE: &[Key<TenantRule>] = &[
    Key {
        name: "pattern",
        doc: "Glob over the cgroup's path, without a leading slash; `*` stays within one component, `**` does not.",
        kind: Kind::Text {
            form: GLOB_FORM,
            set: |r, v| {
                check_glob(v)?;
                r.pattern = v.to_owned();
                Ok(())
            },
        },
        show: |_| None,
        example: "\"system.slice/backup*.service\"",
    },
    Key {
        name: "name",
        doc: "The name people see instead of the derived one.",
        kind: Kind::Text { form: NAME_FORM, set: |r, v| check_name(v).map(|()| r.name = Some(v.to_owned())) },
        show: |_| None,
        example: "\"backup\"",
    },
    Key {
        name: "group",
        doc: "Tenants of one group share one usage history, which survives a reboot.",
        kind: Kind::Text { form: NAME_FORM, set: |r, v| check_name(v).map(|()| r.group = Some(v.to_owned())) },
        show: |_| None,
        example: "\"batch\"",
    },
    Key {
        name: "exclude",
        doc: "Watch these but never steer them.",
        kind: Kind::Flag { set: |r, v| r.exclude = v },
        show: |_| None,
        example: "false",
    },
    Key {
        name: "weight_percent",
        doc: "Factor on the share; 100 changes nothing.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |r, v| r.weight_percent = Some(v as u32) },
        show: |_| None,
        example: "50",
    },
    Key {
        name: "role",
        doc: "What it may ask for: `participant` everything, `guest` everything but buying, `silent` nothing.",
        kind: Kind::Choice { words: &ROLE_WORDS, set: |r, at| r.role = Some(Role::ALL[at]) },
        show: |_| None,
        example: "\"guest\"",
    },
    Key {
        name: "price_percent",
        doc: "What a boosted slice costs it, in percent of `boosted_slice_price`.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |r, v| r.price_percent = Some(v as u32) },
        show: |_| None,
        example: "50",
    },
    Key {
        name: "quota_percent",
        doc: "Credits that its account may hold and slices that it may buy at once, in percent of `held_max` and \
              `boost_slices_max`.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |r, v| r.quota_percent = Some(v as u32) },
        show: |_| None,
        example: "20",
    },
    Key {
        name: "credits_expiry",
        doc: "How long credits last that its account earns, in place of `expiry`; what it holds already keeps its time.",
        kind: Kind::Duration { least: Nanos::from_secs(60), most: YEAR, set: |r, v| r.credits_expiry = Some(v) },
        show: |_| None,
        example: "\"12h\"",
    },
    Key {
        name: "forecast",
        doc: "What becomes of its forecasts, in place of `mode` in `[forecast]`.",
        kind: Kind::Choice { words: &FORECAST_WORDS, set: |r, at| r.forecast = Some(ForecastMode::ALL[at]) },
        show: |_| None,
        example: "\"off\"",
    },
];

const ROLE_WORDS: [&str; 3] = [Role::ALL[0].as_str(), Role::ALL[1].as_str(), Role::ALL[2].as_str()];

/// Keys that had another name: the table, the former name and the name now. Files that have it are read all the same.
const RENAMED: &[(&str, &str, &str)] = &[
    ("fennel", "verdicts_needed", "group_change_slices"),
    ("fennel", "places", "group_scale"),
    ("coordination", "turn_max", "precedence_max"),
    ("coordination", "turn_window", "precedence_window"),
];

/// What a key of a table is called now, if it had another name.
pub(crate) fn renamed(prefix: &str, word: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(table, former, _)| (*table, *former) == (prefix, word)).map(|(.., now)| *now)
}

/// The table in which a key of exactly this name exists.
pub(crate) fn belongs_elsewhere(prefix: &str, word: &str) -> Option<String> {
    let section = SECTIONS.iter().find(|s| s.name != prefix && s.keys.iter().any(|key| key.name == word))?;
    Some(match section.name {
        "" => format!("`{word}` belongs above the first table"),
        name => format!("`{word}` belongs below `[{name}]`"),
    })
}
