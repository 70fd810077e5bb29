//! Batch jobs that go one before the other, as configured.

use crate::JobSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which tenants are batch jobs, besides those whom a rule names ([`crate::TenantRule::job`]) and those who say so themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MakespanSettings {
    /// By the tenant's name.
    pub jobs: BTreeMap<String, JobSettings>,
    /// Who is held back is not taken for one that rests or is slow, and keeps less at first where it is known when its turn comes. In
    /// recordings of earlier versions not.
    #[serde(default)]
    pub waiting_counts: bool,
    /// Those who are ahead go in order within a slice, who waits keeps less for as long as it needs itself, and a disk that is idle because
    /// jobs are held back is not taken for one that is not short. In recordings of earlier versions not.
    #[serde(default)]
    pub in_order_within_slices: bool,
    /// A job whose cgroup lives on has ended after a long rest, and the next run begins. In recordings of earlier versions not.
    #[serde(default)]
    pub ends_after_rest: bool,
    /// Explanations name who pays for whom. In recordings of earlier versions not.
    #[serde(default)]
    pub payers_are_named: bool,
    /// A job comes the sooner the longer it has waited, less how long it went first since, however old it is, and not in turns with the one
    /// that goes first. In recordings of earlier versions its age counts.
    #[serde(default)]
    pub waiting_ages: bool,
    /// Decisions tell of jobs that wait whether it is known when their turn comes, so that they are capped where weights act, too. In
    /// recordings of earlier versions not.
    #[serde(default)]
    pub turns_are_told: bool,
    /// Jobs that wait are told a cap only while the first is slower without it, and one that computes beside a trickle holds up nobody. In
    /// recordings of earlier versions a disk on which others are busy was short, whatever the first had.
    #[serde(default)]
    pub caps_are_tried: bool,
    /// The part that a job that waits keeps is told whenever it changes, and in its reason; nobody is capped whose operation was granted. In
    /// recordings of earlier versions not.
    #[serde(default)]
    pub caps_are_told: bool,
    /// Tenants that a rule excludes are no jobs. In recordings of earlier versions they are.
    #[serde(default)]
    pub excluded_are_no_jobs: bool,
    /// The size in a rule that changed is believed, however wrong the one before was. In recordings of earlier versions not.
    #[serde(default)]
    pub changed_rules_are_believed: bool,
    /// What a job moved beyond what it declared, and what jobs moved that are over, counts for an hour in other groups of whoever made its
    /// group. In recordings of earlier versions not.
    #[serde(default)]
    pub makers_are_remembered: bool,
    /// What is known of a job loses its worth: what its tenant moved as jobs before counts half as much after a quarter of an hour, its
    /// greatest rate is forgotten where it has less while it goes first, and at once with the disk. In recordings of earlier versions not.
    #[serde(default)]
    pub knowledge_fades: bool,
    /// A run that a change of the operator's cuts in two teaches nothing, neither half of it. In recordings of earlier versions each half is a
    /// run.
    #[serde(default)]
    pub parts_teach_nothing: bool,
    /// A run stays one where a disk goes that its job used, and a change of the operator's while a job rests makes no part of the run after
    /// that rest. In recordings of earlier versions each makes parts.
    #[serde(default)]
    pub whole_runs_teach: bool,
}

impl Default for MakespanSettings {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            waiting_counts: true,
            in_order_within_slices: true,
            ends_after_rest: true,
            payers_are_named: true,
            waiting_ages: true,
            turns_are_told: true,
            caps_are_tried: true,
            caps_are_told: true,
            excluded_are_no_jobs: true,
            changed_rules_are_believed: true,
            makers_are_remembered: true,
            knowledge_fades: true,
            parts_teach_nothing: true,
            whole_runs_teach: true,
        }
    }
}
