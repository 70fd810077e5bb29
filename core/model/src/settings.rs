//! The operator's settings as the engine sees them: an immutable snapshot, already validated by `config`.

use crate::{
    BackEnd, BackgroundSettings, CoordinationSettings, CreditSettings, ForecastSettings, LevelSettings,
    MakespanSettings, Nanos, Share,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far Minerva goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Watch only.
    Observe,
    /// Decide and say so, write nothing.
    #[default]
    Shadow,
    /// Decide and write.
    Enforce,
}

/// Everything the engine is told by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineConfig {
    /// How far to go.
    pub mode: Mode,
    /// What counts as use.
    pub observe: ObserveSettings,
    /// The Fennel policy.
    pub fennel: FennelSettings,
    /// How knobs are written.
    pub actuation: ActuationSettings,
    /// Per disk, by kernel name.
    pub devices: BTreeMap<String, DeviceSettings>,
    /// Scheduling credits.
    #[serde(default)]
    pub credits: CreditSettings,
    /// Voluntary deprioritization.
    #[serde(default)]
    pub levels: LevelSettings,
    /// Temporally-coordinated scheduling.
    #[serde(default)]
    pub coordination: CoordinationSettings,
    /// Forecasts.
    #[serde(default = "ForecastSettings::absent")]
    pub forecast: ForecastSettings,
    /// Batch jobs that go one before the other.
    #[serde(default)]
    pub makespan: MakespanSettings,
    /// How background work is planned.
    #[serde(default = "BackgroundSettings::absent")]
    pub background: BackgroundSettings,
}

/// What counts as use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObserveSettings {
    /// The slice: how often counters are read and shares decided.
    pub slice: Nanos,
    /// A tenant actively uses a disk in a slice in which it completes at least this many requests.
    pub active_ops: u64,
}

impl Default for ObserveSettings {
    fn default() -> Self {
        Self { slice: Nanos::SECOND, active_ops: 1 }
    }
}

/// What of a tenant's use makes it heavy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedUse {
    /// Bytes read and written, as in Malensek et al. 2016. Recordings that do not say were made with it.
    #[default]
    Bytes,
    /// Bytes, and the disk's time as far as it exceeds an equal part.
    DiskTime,
}

impl CountedUse {
    /// Both, the default of the operator's file first.
    pub const ALL: [Self; 2] = [Self::DiskTime, Self::Bytes];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DiskTime => "disk-time",
            Self::Bytes => "bytes",
        }
    }
}

/// How use becomes a position among the priority groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupScale {
    /// In proportion to the use against the heaviest. Recordings that do not say were made with it.
    #[default]
    Linear,
    /// A group each for up to a hundredth and up to a tenth of the heaviest's use, and in proportion above that.
    Decades,
}

impl GroupScale {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Linear, Self::Decades];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Decades => "decades",
        }
    }
}

/// Fennel (Malensek et al. 2016, section 2.1): sparing tenants rise, heavy ones sink.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FennelSettings {
    /// What makes heavy.
    #[serde(default)]
    pub counted: CountedUse,
    /// How use becomes a position.
    #[serde(default, alias = "places")]
    pub group_scale: GroupScale,
    /// Priority groups; the paper has ten.
    pub groups: u8,
    /// Half-life of the recent average.
    pub recent_half_life: Nanos,
    /// Half-life of the long-term average.
    pub long_term_half_life: Nanos,
    /// How much the long-term position counts against the recent one, 0 to 1.
    pub long_term_weight: f64,
    /// Share of the most sparing group. New tenants start in it.
    pub share_sparing: Share,
    /// Share of the heaviest group.
    pub share_heavy: Share,
    /// Slices in a row that must ask for another group before a tenant changes to it.
    #[serde(alias = "verdicts_needed")]
    pub group_change_slices: u8,
    /// Below this many bytes a second nobody is heavy, whatever the others do.
    pub quiet_bytes_per_second: f64,
    /// Part of the disk that every active tenant keeps, in thousandths, so far as the number of tenants allows.
    pub floor_permille: u32,
}

impl Default for FennelSettings {
    fn default() -> Self {
        Self {
            counted: CountedUse::DiskTime,
            group_scale: GroupScale::Linear,
            groups: 10,
            recent_half_life: Nanos::from_secs(60),
            long_term_half_life: Nanos::from_secs(6 * 3600),
            long_term_weight: 0.5,
            // The top group stands at the kernel's own default, so that a tenant that just arrived, and one that is not
            // steered at all, need no write to be ahead of a heavy one.
            share_sparing: Share::NEUTRAL,
            // Lower gains the sparing little more, and BFQ takes the longer to obey when a heavy tenant rises (docs/adr/0022).
            share_heavy: Share::new(5),
            group_change_slices: 3,
            quiet_bytes_per_second: 64.0 * 1024.0,
            floor_permille: 10,
        }
    }
}

/// How knobs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActuationSettings {
    /// Every knob that Minerva holds is read again once in this many slices, in turns, to see who else writes it.
    pub verify_every_slices: u32,
    /// Overwrites of one knob before Minerva leaves it to the other writer.
    pub fights_before_giving_up: u32,
    /// Weights of groups above tenants are set to the sum of what stands below them, so that a share means the same at
    /// every depth.
    pub manage_ancestors: bool,
    /// A cap is lifted when the disk has been this far from busy for two slices, in thousandths.
    pub caps_lift_below_busy_permille: u32,
    /// Caps are lifted when every process that wanted to run waited for memory in this part of the last seconds, in thousandths
    /// of the time; 0 never.
    pub caps_lift_at_memory_stall_permille: u32,
    /// Who is at level `idle` is capped while others use the disk. Recordings from before there was such a cap say nothing of it.
    #[serde(default)]
    pub cap_idle: bool,
    /// Batch jobs that wait for others are capped while only jobs use the disk: where weights act as long as it is known when their turn
    /// comes, elsewhere always.
    #[serde(default)]
    pub cap_jobs: bool,
    /// Where shares become caps, others are held below what the disk delivers while that helps somebody who gets less than its share
    /// says, and caps stand while they are what leaves the disk less than busy.
    #[serde(default)]
    pub caps_make_room: bool,
    /// Where shares become caps, nobody is capped while all get what their shares say.
    #[serde(default)]
    pub caps_only_if_short: bool,
    /// That caps are lifted is told as well when one is refused later, and that they are back wherever it was told that they are lifted.
    #[serde(default)]
    pub lifting_is_told: bool,
    /// All groups that one user makes have as much of a disk as one tenant of their largest share.
    #[serde(default)]
    pub makers_are_one_claim: bool,
    /// A limit that somebody else sets in a knob while a cap is held there counts as what stood there before Minerva: caps stay within it,
    /// and it is what is put back. So a cap is read again before it is changed. In recordings of earlier versions it is written over.
    #[serde(default)]
    pub keeps_limits_of_others: bool,
    /// Each way of a cap has a least size of its own. In recordings of earlier versions the sum of both has.
    #[serde(default)]
    pub caps_keep_both_ways_open: bool,
    /// BFQ's `strict_guarantees` follows what the tenants do, unless a disk's settings say otherwise. In recordings of earlier versions it does
    /// only where they ask for it.
    #[serde(default)]
    pub strict_guarantees_by_use: bool,
}

impl Default for ActuationSettings {
    fn default() -> Self {
        Self {
            verify_every_slices: 10,
            fights_before_giving_up: 5,
            manage_ancestors: true,
            caps_lift_below_busy_permille: 900,
            caps_lift_at_memory_stall_permille: 100,
            cap_idle: true,
            cap_jobs: true,
            caps_make_room: true,
            caps_only_if_short: true,
            lifting_is_told: true,
            makers_are_one_claim: true,
            keeps_limits_of_others: true,
            caps_keep_both_ways_open: true,
            strict_guarantees_by_use: true,
        }
    }
}

/// One disk's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSettings {
    /// The back end to use whatever the facts say; absent: the best that bites.
    pub back_end: Option<BackEnd>,
    /// Put this elevator in force, and back when Minerva ends.
    pub elevator: Option<String>,
    /// Enable iocost, and back.
    pub enable_iocost: bool,
    /// Set BFQ's `strict_guarantees` while BFQ is in force, and back.
    #[serde(default)]
    pub strict_guarantees: bool,
    /// Set and put back BFQ's `strict_guarantees` by what the tenants do; absent: as on all disks.
    #[serde(default)]
    pub strict_guarantees_by_use: Option<bool>,
    /// Take BFQ's `low_latency` away and put it back by what the tenants do.
    #[serde(default)]
    pub low_latency_by_use: bool,
    /// What the disk delivers, for back ends that need a number; absent: the most that was measured.
    pub bandwidth_bytes_per_second: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::ActuationSettings;
    use crate::{CgroupVersion, DeviceFacts};

    #[test]
    fn recordings_of_earlier_versions_ask_for_nothing_that_came_later() {
        let earlier: ActuationSettings = serde_json::from_str("{}").expect("every key may be missing");
        assert!(!earlier.keeps_limits_of_others && !earlier.caps_keep_both_ways_open);
        let now = ActuationSettings::default();
        assert!(now.keeps_limits_of_others && now.caps_keep_both_ways_open);
        assert!(!earlier.strict_guarantees_by_use && now.strict_guarantees_by_use);
        let facts = r#"{"cgroup":"v2","controller_enabled":true,"writeback_attributed":true,"elevator":"none","elevators_available":["none"],
            "bfq_low_latency":null,"iocost_available":true,"iocost_enabled":false,"throttle_available":true,"rotational":false,
            "stacked_on":[],"size_bytes":1,"back_end_forced":null}"#;
        let facts: DeviceFacts = serde_json::from_str(facts).expect("as earlier versions wrote it");
        assert!(facts.multi_queue && facts.cgroup == CgroupVersion::V2, "what was asked of a disk then is asked of it");
    }
}
