//! The operator's settings for tenants that take part: credits, levels, coordination.

use crate::{Level, MicroCredits, Nanos, Terms};
use serde::{Deserialize, Serialize};

/// Scheduling credits (Malensek et al. 2016, section 3.1, docs/adr/0005).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreditSettings {
    /// Credits can be earned and spent.
    pub enabled: bool,
    /// Earned a slice for each level of contention.
    pub contention_weight: MicroCredits,
    /// Earned a slice for each point of priority that a level gives up.
    pub priority_weight: MicroCredits,
    /// How contention is counted.
    pub counting: ContentionCounting,
    /// What one boosted slice costs.
    pub boosted_slice_price: MicroCredits,
    /// How long credits last from their entry in the ledger.
    pub expiry: Nanos,
    /// An account that holds so many earns no more.
    pub held_max: MicroCredits,
    /// What was earned is entered in the ledger once in this many slices.
    pub slices_between_entries: u32,
    /// One purchase is of so many slices at most.
    pub boost_slices_max: u32,
    /// Share of a boosted tenant, in percent of the neutral one.
    pub boost_percent: u32,
    /// An account without tenants is kept until all of it is in the ledger, for tenants that have it later. In recordings of earlier
    /// versions it is forgotten at once.
    #[serde(default)]
    pub accounts_outlive_tenants: bool,
    /// A slice earns by the mildest level that the tenant had in it, and nothing for tenants that a rule excludes. In recordings of earlier
    /// versions the level at its end counts, whoever has it.
    #[serde(default)]
    pub earned_by_whole_slices: bool,
}

impl CreditSettings {
    /// As they are for a tenant on these terms.
    pub fn on(mut self, terms: Terms) -> Self {
        self.boosted_slice_price = self.boosted_slice_price.percent(terms.price_percent);
        self.held_max = self.held_max.percent(terms.quota_percent);
        self.expiry = terms.credits_expiry.unwrap_or(self.expiry);
        let slices = u64::from(self.boost_slices_max) * u64::from(terms.quota_percent) / 100;
        self.boost_slices_max = u32::try_from(slices).unwrap_or(u32::MAX).max(1);
        self
    }
}

impl Default for CreditSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            contention_weight: MicroCredits::credits(1),
            priority_weight: MicroCredits(100_000),
            counting: ContentionCounting::default(),
            boosted_slice_price: MicroCredits::credits(25),
            expiry: Nanos::from_secs(24 * 3600),
            // One boosted hour.
            held_max: MicroCredits::credits(25 * 3600),
            slices_between_entries: 60,
            boost_slices_max: 3600,
            // BFQ knows no more than ten times its default.
            boost_percent: 1_000,
            accounts_outlive_tenants: true,
            earned_by_whole_slices: true,
        }
    }
}

/// Who counts towards the contention that credits are earned by (docs/adr/0005).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentionCounting {
    /// Everyone on the disk, the earner too, once there are two; nobody when it is alone.
    #[default]
    AllWhenShared,
    /// Everyone on the disk, the earner too.
    All,
    /// Everyone but the earner.
    Others,
}

impl ContentionCounting {
    /// Every rule.
    pub const ALL: [Self; 3] = [Self::AllWhenShared, Self::All, Self::Others];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllWhenShared => "all-when-shared",
            Self::All => "all",
            Self::Others => "others",
        }
    }
}

/// What a level means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelMeaning {
    /// Factor on the share, in percent. At `idle` the share is the least there is, whatever stands here.
    pub percent: u32,
    /// Points of priority given up, by which credits are earned.
    pub points: u32,
}

/// Voluntary deprioritization (Malensek et al. 2016, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelSettings {
    /// Level `low`.
    pub low: LevelMeaning,
    /// Level `lowest`.
    pub lowest: LevelMeaning,
    /// Level `idle`.
    pub idle: LevelMeaning,
}

impl Default for LevelSettings {
    fn default() -> Self {
        Self {
            low: LevelMeaning { percent: 25, points: 5 },
            lowest: LevelMeaning { percent: 5, points: 9 },
            idle: LevelMeaning { percent: 1, points: 10 },
        }
    }
}

impl LevelSettings {
    /// What `level` means; nothing at `normal`.
    pub const fn meaning(&self, level: Level) -> Option<LevelMeaning> {
        match level {
            Level::Normal => None,
            Level::Low => Some(self.low),
            Level::Lowest => Some(self.lowest),
            Level::Idle => Some(self.idle),
        }
    }
}

/// Temporally-coordinated scheduling (Malensek et al. 2016, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoordinationSettings {
    /// Operations can be coordinated; otherwise each is told to begin.
    pub enabled: bool,
    /// Other tenants on the disk, beside those that stepped back, that are no reason to wait.
    pub contention_accepted: u32,
    /// Coordinated operations that run at one time on a disk.
    pub running_max: u32,
    /// An operation without a deadline waits no longer than this.
    pub hold_max: Nanos,
    /// Share of an operation under way while others use the disk, in percent of the tenant's own.
    pub raise_percent: u32,
    /// It is raised only as far as those who say nothing are ahead of what they would have without anybody taking part. Recordings
    /// that do not say were made without that.
    #[serde(default)]
    pub spare_silent: bool,
    /// An operation that was remembered waits until its disk has been watched for a while: right after a start nobody is known to use
    /// it. Recordings that do not say were made without that.
    #[serde(default)]
    pub watch_before_resuming: bool,
    /// What an operation had is counted as it was: nothing is charged while it is held back for the sake of those who say nothing and nobody
    /// waits for its place, what a tenant moved is one operation's, and its limits are seconds too, where slices are short. In recordings of
    /// earlier versions every slice was charged, all of a tenant's operations had moved it, and limits were slices alone.
    #[serde(default)]
    pub counts_what_it_had: bool,
    /// Nobody waits outside `enforce`, where nothing is gained by it, nor while coordination is switched off, when nobody goes ahead and no
    /// time is charged either. In recordings of earlier versions they did.
    #[serde(default)]
    pub holds_only_while_it_steers: bool,
    /// An account's operations go ahead of others for no longer than this within `precedence_window` (docs/adr/0006).
    #[serde(alias = "turn_max")]
    pub precedence_max: Nanos,
    /// See `precedence_max`.
    #[serde(alias = "turn_window")]
    pub precedence_window: Nanos,
    /// What a disk is taken to deliver until it was measured.
    pub assumed_bytes_per_second: u64,
    /// Half-life of what was measured.
    pub bandwidth_half_life: Nanos,
    /// Operations of one tenant that may wait or be under way; of one account four times as many.
    pub operations_max: u32,
}

impl Default for CoordinationSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            contention_accepted: 1,
            running_max: 1,
            hold_max: Nanos::from_secs(30),
            raise_percent: 400,
            spare_silent: true,
            watch_before_resuming: true,
            counts_what_it_had: true,
            holds_only_while_it_steers: true,
            // Two gigabytes from a 7200 rpm disk; and a tenth of the time in the long run.
            precedence_max: Nanos::from_secs(60),
            precedence_window: Nanos::from_secs(600),
            // A 7200 rpm disk with neighbours.
            assumed_bytes_per_second: 64 << 20,
            bandwidth_half_life: Nanos::from_secs(600),
            operations_max: 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CoordinationSettings, CreditSettings};
    use crate::MakespanSettings;

    #[test]
    fn recordings_of_earlier_versions_count_as_they_did() {
        let credits: CreditSettings = serde_json::from_str("{}").expect("every key may be missing");
        let coordination: CoordinationSettings = serde_json::from_str("{}").expect("every key may be missing");
        let jobs: MakespanSettings = serde_json::from_str(r#"{"jobs":{}}"#).expect("only the jobs may not be missing");
        let is_earlier = !credits.earned_by_whole_slices
            && !coordination.counts_what_it_had
            && !coordination.holds_only_while_it_steers
            && !jobs.knowledge_fades
            && !jobs.parts_teach_nothing
            && !jobs.whole_runs_teach;
        assert!(is_earlier, "{credits:?} {coordination:?} {jobs:?}");
    }
}
