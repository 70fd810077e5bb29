//! Keys of how knobs are written. Rows as in `keys`.

use crate::key::{Key, Kind};
use crate::settings::Config;

pub(crate) const ACTUATION: &[Key<Config>] = &[
    Key {
        name: "verify_every_slices",
        doc: "Each knob that Minerva holds is read again once in this many slices, to see who else writes it.",
        kind: Kind::Whole { least: 1, most: 3600, set: |c, v| c.engine.actuation.verify_every_slices = v as u32 },
        show: |c| Some(c.engine.actuation.verify_every_slices.to_string()),
        example: "",
    },
    Key {
        name: "fights_before_giving_up",
        doc: "Times that somebody else may overwrite a knob before Minerva leaves it to them.",
        kind: Kind::Whole { least: 1, most: 1000, set: |c, v| c.engine.actuation.fights_before_giving_up = v as u32 },
        show: |c| Some(c.engine.actuation.fights_before_giving_up.to_string()),
        example: "",
    },
    Key {
        name: "manage_ancestors",
        doc: "Weigh the groups above tenants too, so that a share means the same at every depth.",
        kind: Kind::Flag { set: |c, v| c.engine.actuation.manage_ancestors = v },
        show: |c| Some(c.engine.actuation.manage_ancestors.to_string()),
        example: "",
    },
    Key {
        name: "caps_lift_below_busy_permille",
        doc: "Caps are lifted when the disk was less busy than this for two slices, in thousandths.",
        kind: Kind::Whole {
            least: 0,
            most: 1000,
            set: |c, v| c.engine.actuation.caps_lift_below_busy_permille = v as u32,
        },
        show: |c| Some(c.engine.actuation.caps_lift_below_busy_permille.to_string()),
        example: "",
    },
    Key {
        name: "caps_lift_at_memory_stall_permille",
        doc: "Caps are lifted while all that wants to run waits for memory in this part of the time, in thousandths; 0 never.",
        kind: Kind::Whole {
            least: 0,
            most: 1000,
            set: |c, v| c.engine.actuation.caps_lift_at_memory_stall_permille = v as u32,
        },
        show: |c| Some(c.engine.actuation.caps_lift_at_memory_stall_permille.to_string()),
        example: "",
    },
    Key {
        name: "cap_idle",
        doc: "Whoever is at level `idle` is capped while others use the disk; without it only its weight is the least.",
        kind: Kind::Flag { set: |c, v| c.engine.actuation.cap_idle = v },
        show: |c| Some(c.engine.actuation.cap_idle.to_string()),
        example: "",
    },
    Key {
        name: "cap_jobs",
        doc: "Batch jobs that wait for others are capped while only jobs use the disk: where weights act as long as it is known when their turn comes, elsewhere always.",
        kind: Kind::Flag { set: |c, v| c.engine.actuation.cap_jobs = v },
        show: |c| Some(c.engine.actuation.cap_jobs.to_string()),
        example: "",
    },
    Key {
        name: "caps_make_room",
        doc: "Where shares become caps, others are held below what the disk delivers while that helps somebody who gets less than its share says.",
        kind: Kind::Flag { set: |c, v| c.engine.actuation.caps_make_room = v },
        show: |c| Some(c.engine.actuation.caps_make_room.to_string()),
        example: "",
    },
    Key {
        name: "caps_only_if_short",
        doc: "Where shares become caps, nobody is capped while all get what their shares say.",
        kind: Kind::Flag { set: |c, v| c.engine.actuation.caps_only_if_short = v },
        show: |c| Some(c.engine.actuation.caps_only_if_short.to_string()),
        example: "",
    },
];
