//! Keys of Fennel: what counts as use, and what follows from it. Rows as in `keys`.

use crate::key::{Key, Kind, show_duration, show_size, show_text};
use crate::settings::Config;
use minerva_model::{CountedUse, GroupScale, Nanos, Share};

const YEAR: Nanos = Nanos::from_secs(365 * 24 * 3600);
const USE_WORDS: [&str; 2] = [CountedUse::ALL[0].as_str(), CountedUse::ALL[1].as_str()];
const SCALE_WORDS: [&str; 2] = [GroupScale::ALL[0].as_str(), GroupScale::ALL[1].as_str()];

pub(crate) const FENNEL: &[Key<Config>] = &[
    Key {
        name: "use",
        doc: "What makes a tenant heavy: `disk-time` its bytes, and its part of the disk's time beyond an equal part; `bytes` those alone.",
        kind: Kind::Choice { words: &USE_WORDS, set: |c, at| c.engine.fennel.counted = CountedUse::ALL[at] },
        show: |c| show_text(c.engine.fennel.counted.as_str()),
        example: "",
    },
    Key {
        name: "group_scale",
        doc: "From bytes to a group: `linear` in proportion to the heaviest; `decades` tells a tenth and a hundredth of it apart.",
        kind: Kind::Choice { words: &SCALE_WORDS, set: |c, at| c.engine.fennel.group_scale = GroupScale::ALL[at] },
        show: |c| show_text(c.engine.fennel.group_scale.as_str()),
        example: "",
    },
    Key {
        name: "groups",
        doc: "Priority groups between the most sparing and the heaviest tenant.",
        kind: Kind::Whole { least: 1, most: 100, set: |c, v| c.engine.fennel.groups = v as u8 },
        show: |c| Some(c.engine.fennel.groups.to_string()),
        example: "",
    },
    Key {
        name: "recent_half_life",
        doc: "Half-life of the recent average of use.",
        kind: Kind::Duration {
            least: Nanos::from_millis(100),
            most: YEAR,
            set: |c, v| c.engine.fennel.recent_half_life = v,
        },
        show: |c| show_duration(c.engine.fennel.recent_half_life),
        example: "",
    },
    Key {
        name: "long_term_half_life",
        doc: "Half-life of the long-term average; not shorter than the recent one.",
        kind: Kind::Duration {
            least: Nanos::from_millis(100),
            most: YEAR,
            set: |c, v| c.engine.fennel.long_term_half_life = v,
        },
        show: |c| show_duration(c.engine.fennel.long_term_half_life),
        example: "",
    },
    Key {
        name: "long_term_weight",
        doc: "How much the long-term position counts against the recent one.",
        kind: Kind::Fraction { least: 0.0, most: 1.0, set: |c, v| c.engine.fennel.long_term_weight = v },
        show: |c| Some(format!("{:?}", c.engine.fennel.long_term_weight)),
        example: "",
    },
    Key {
        name: "share_sparing",
        doc: "Share of the most sparing group; 100 is what the kernel gives everyone.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |c, v| c.engine.fennel.share_sparing = Share::new(v as u32) },
        show: |c| Some(c.engine.fennel.share_sparing.to_string()),
        example: "",
    },
    Key {
        name: "share_heavy",
        doc: "Share of the heaviest group; not above that of the most sparing one.",
        kind: Kind::Whole { least: 1, most: 10_000, set: |c, v| c.engine.fennel.share_heavy = Share::new(v as u32) },
        show: |c| Some(c.engine.fennel.share_heavy.to_string()),
        example: "",
    },
    Key {
        name: "group_change_slices",
        doc: "Slices in a row that must ask for another group before a tenant changes to it.",
        kind: Kind::Whole { least: 1, most: 100, set: |c, v| c.engine.fennel.group_change_slices = v as u8 },
        show: |c| Some(c.engine.fennel.group_change_slices.to_string()),
        example: "",
    },
    Key {
        name: "quiet_bytes_per_second",
        doc: "Below this nobody is heavy, whatever the others do.",
        kind: Kind::Size { least: 0, most: 1 << 40, set: |c, v| c.engine.fennel.quiet_bytes_per_second = v as f64 },
        show: |c| show_size(c.engine.fennel.quiet_bytes_per_second as u64),
        example: "",
    },
    Key {
        name: "floor_permille",
        doc: "Part of the disk that every active tenant keeps, in thousandths, as far as their number allows.",
        kind: Kind::Whole { least: 0, most: 1000, set: |c, v| c.engine.fennel.floor_permille = v as u32 },
        show: |c| Some(c.engine.fennel.floor_permille.to_string()),
        example: "",
    },
];
