//! Keys for tenants that take part: credits, levels, coordination. Rows as in `keys`.

use crate::key::{Key, Kind, show_duration, show_size, show_text};
use crate::settings::Config;
use minerva_model::{ContentionCounting, MicroCredits, Nanos};

const DAY: Nanos = Nanos::from_secs(24 * 3600);
const YEAR: Nanos = Nanos::from_secs(365 * 24 * 3600);
const COUNTING_WORDS: [&str; 3] =
    [ContentionCounting::ALL[0].as_str(), ContentionCounting::ALL[1].as_str(), ContentionCounting::ALL[2].as_str()];

/// A number of the file to the nearest millionth of a credit.
fn credits(value: f64) -> MicroCredits {
    MicroCredits((value * 1e6).round() as u64)
}

fn show_credits(value: MicroCredits) -> Option<String> {
    let text = value.to_string();
    Some(if text.contains('.') { text } else { text + ".0" })
}

pub(crate) const CREDITS: &[Key<Config>] = &[
    Key {
        name: "enabled",
        doc: "Credits can be earned and spent.",
        kind: Kind::Flag { set: |c, v| c.engine.credits.enabled = v },
        show: |c| Some(c.engine.credits.enabled.to_string()),
        example: "",
    },
    Key {
        name: "contention_weight",
        doc: "Earned a slice for each level of contention.",
        kind: Kind::Fraction { least: 0.0, most: 1000.0, set: |c, v| c.engine.credits.contention_weight = credits(v) },
        show: |c| show_credits(c.engine.credits.contention_weight),
        example: "",
    },
    Key {
        name: "priority_weight",
        doc: "Earned a slice for each point of priority that a level gives up (`levels`).",
        kind: Kind::Fraction { least: 0.0, most: 1000.0, set: |c, v| c.engine.credits.priority_weight = credits(v) },
        show: |c| show_credits(c.engine.credits.priority_weight),
        example: "",
    },
    Key {
        name: "counting",
        doc: "Who counts towards contention: all, once there are two; all; or all but the earner.",
        kind: Kind::Choice {
            words: &COUNTING_WORDS,
            set: |c, at| c.engine.credits.counting = ContentionCounting::ALL[at],
        },
        show: |c| show_text(c.engine.credits.counting.as_str()),
        example: "",
    },
    Key {
        name: "boosted_slice_price",
        doc: "What one slice of high priority costs.",
        kind: Kind::Fraction {
            least: 0.001,
            most: 1000000.0,
            set: |c, v| c.engine.credits.boosted_slice_price = credits(v),
        },
        show: |c| show_credits(c.engine.credits.boosted_slice_price),
        example: "",
    },
    Key {
        name: "expiry",
        doc: "How long credits last.",
        kind: Kind::Duration { least: Nanos::from_secs(60), most: YEAR, set: |c, v| c.engine.credits.expiry = v },
        show: |c| show_duration(c.engine.credits.expiry),
        example: "",
    },
    Key {
        name: "held_max",
        doc: "An account that holds so many earns no more.",
        kind: Kind::Fraction { least: 0.0, most: 1000000000.0, set: |c, v| c.engine.credits.held_max = credits(v) },
        show: |c| show_credits(c.engine.credits.held_max),
        example: "",
    },
    Key {
        name: "slices_between_entries",
        doc: "What was earned goes into the ledger once in this many slices; until then it cannot be spent.",
        kind: Kind::Whole { least: 1, most: 3600, set: |c, v| c.engine.credits.slices_between_entries = v as u32 },
        show: |c| Some(c.engine.credits.slices_between_entries.to_string()),
        example: "",
    },
    Key {
        name: "boost_slices_max",
        doc: "Slices that one purchase can be of.",
        kind: Kind::Whole { least: 1, most: 1000000, set: |c, v| c.engine.credits.boost_slices_max = v as u32 },
        show: |c| Some(c.engine.credits.boost_slices_max.to_string()),
        example: "",
    },
    Key {
        name: "boost_percent",
        doc: "Share of a boosted tenant, in percent of the neutral one.",
        kind: Kind::Whole { least: 100, most: 10000, set: |c, v| c.engine.credits.boost_percent = v as u32 },
        show: |c| Some(c.engine.credits.boost_percent.to_string()),
        example: "",
    },
];

pub(crate) const LEVELS: &[Key<Config>] = &[
    Key {
        name: "low_percent",
        doc: "Factor on the share at `low`, in percent.",
        kind: Kind::Whole { least: 1, most: 100, set: |c, v| c.engine.levels.low.percent = v as u32 },
        show: |c| Some(c.engine.levels.low.percent.to_string()),
        example: "",
    },
    Key {
        name: "low_points",
        doc: "Points of priority that `low` gives up, by which credits are earned.",
        kind: Kind::Whole { least: 0, most: 1000, set: |c, v| c.engine.levels.low.points = v as u32 },
        show: |c| Some(c.engine.levels.low.points.to_string()),
        example: "",
    },
    Key {
        name: "lowest_percent",
        doc: "Factor on the share at `lowest`, in percent.",
        kind: Kind::Whole { least: 1, most: 100, set: |c, v| c.engine.levels.lowest.percent = v as u32 },
        show: |c| Some(c.engine.levels.lowest.percent.to_string()),
        example: "",
    },
    Key {
        name: "lowest_points",
        doc: "Points of priority that `lowest` gives up, by which credits are earned.",
        kind: Kind::Whole { least: 0, most: 1000, set: |c, v| c.engine.levels.lowest.points = v as u32 },
        show: |c| Some(c.engine.levels.lowest.points.to_string()),
        example: "",
    },
    Key {
        name: "idle_points",
        doc: "Points of priority that `idle` gives up, by which credits are earned.",
        kind: Kind::Whole { least: 0, most: 1000, set: |c, v| c.engine.levels.idle.points = v as u32 },
        show: |c| Some(c.engine.levels.idle.points.to_string()),
        example: "",
    },
];

pub(crate) const COORDINATION: &[Key<Config>] = &[
    Key {
        name: "enabled",
        doc: "Operations can be made to wait; otherwise each is told to begin.",
        kind: Kind::Flag { set: |c, v| c.engine.coordination.enabled = v },
        show: |c| Some(c.engine.coordination.enabled.to_string()),
        example: "",
    },
    Key {
        name: "contention_accepted",
        doc: "Other tenants on the disk, beside those that stepped back, that are no reason to wait.",
        kind: Kind::Whole { least: 0, most: 10000, set: |c, v| c.engine.coordination.contention_accepted = v as u32 },
        show: |c| Some(c.engine.coordination.contention_accepted.to_string()),
        example: "",
    },
    Key {
        name: "running_max",
        doc: "Coordinated operations that run at one time on a disk.",
        kind: Kind::Whole { least: 1, most: 10000, set: |c, v| c.engine.coordination.running_max = v as u32 },
        show: |c| Some(c.engine.coordination.running_max.to_string()),
        example: "",
    },
    Key {
        name: "spare_silent",
        doc: "`true`: an operation gets priority only as far as tenants that do not take part lose nothing compared with nobody taking part. `false`: it gets priority whatever that costs them.",
        kind: Kind::Flag { set: |c, v| c.engine.coordination.spare_silent = v },
        show: |c| Some(c.engine.coordination.spare_silent.to_string()),
        example: "",
    },
    Key {
        name: "hold_max",
        doc: "An operation without a deadline waits no longer than this.",
        kind: Kind::Duration { least: Nanos(0), most: DAY, set: |c, v| c.engine.coordination.hold_max = v },
        show: |c| show_duration(c.engine.coordination.hold_max),
        example: "",
    },
    Key {
        name: "raise_percent",
        doc: "Share of an operation under way while others use the disk, in percent of the tenant's own.",
        kind: Kind::Whole { least: 100, most: 10000, set: |c, v| c.engine.coordination.raise_percent = v as u32 },
        show: |c| Some(c.engine.coordination.raise_percent.to_string()),
        example: "",
    },
    Key {
        name: "precedence_max",
        doc: "Operations of one account are ahead of others for no longer than this within `precedence_window`.",
        kind: Kind::Duration { least: Nanos::SECOND, most: DAY, set: |c, v| c.engine.coordination.precedence_max = v },
        show: |c| show_duration(c.engine.coordination.precedence_max),
        example: "",
    },
    Key {
        name: "precedence_window",
        doc: "In which `precedence_max` is given again, bit by bit.",
        kind: Kind::Duration {
            least: Nanos::SECOND,
            most: YEAR,
            set: |c, v| c.engine.coordination.precedence_window = v,
        },
        show: |c| show_duration(c.engine.coordination.precedence_window),
        example: "",
    },
    Key {
        name: "assumed_bytes_per_second",
        doc: "What a disk is taken to deliver until it was measured.",
        kind: Kind::Size {
            least: 1 << 16,
            most: 1 << 44,
            set: |c, v| c.engine.coordination.assumed_bytes_per_second = v,
        },
        show: |c| show_size(c.engine.coordination.assumed_bytes_per_second),
        example: "",
    },
    Key {
        name: "bandwidth_half_life",
        doc: "Half-life of what was measured of a disk.",
        kind: Kind::Duration {
            least: Nanos::SECOND,
            most: YEAR,
            set: |c, v| c.engine.coordination.bandwidth_half_life = v,
        },
        show: |c| show_duration(c.engine.coordination.bandwidth_half_life),
        example: "",
    },
    Key {
        name: "operations_max",
        doc: "Operations of one tenant that may wait or be under way; of all that one user makes in a delegated group four times as many.",
        kind: Kind::Whole { least: 1, most: 10000, set: |c, v| c.engine.coordination.operations_max = v as u32 },
        show: |c| Some(c.engine.coordination.operations_max.to_string()),
        example: "",
    },
];
