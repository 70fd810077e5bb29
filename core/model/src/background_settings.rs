//! How background work is planned, and how earlier versions did it.

use serde::{Deserialize, Serialize};

/// How background work is planned. Not the operator's to set: recordings of earlier versions replay as they ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundSettings {
    /// The first hour of a plan in force is planned by minutes. In recordings of earlier versions it is one slot.
    #[serde(default)]
    pub first_hour_by_minutes: bool,
    /// A plan is made anew where the foreground or what is written differs from what was expected, and what the foreground did lately counts
    /// for the next hours. In recordings of earlier versions not.
    #[serde(default)]
    pub replan_on_error: bool,
    /// A queue whose end was seen to move away is planned as if it were due sooner. In recordings of earlier versions not.
    #[serde(default)]
    pub slips_count: bool,
    /// What is known of a disk goes with it, as another may get its number. In recordings of earlier versions it stays.
    #[serde(default)]
    pub forgets_gone_disks: bool,
    /// While work that must not be stopped uses a disk, that is not calibrated. In recordings of earlier versions it is.
    #[serde(default)]
    pub calibrates_alone: bool,
    /// By how far a queue's end moved is seen by the gaps alone, and only where its size is known and the same ones go before it as in the last
    /// plan; no end moves away faster than time passes. In recordings of earlier versions it is seen of all, with what is taken from others.
    #[serde(default)]
    pub compares_like_ends: bool,
    /// What tenants owe comes after all of the operator's work that gets on. In recordings of earlier versions it goes before that where its
    /// deadline is near.
    #[serde(default)]
    pub debts_come_last: bool,
    /// What is taken from others is planned without what tenants owe beside the operator's work, what hangs and what says nothing. In recordings
    /// of earlier versions all of that counts.
    #[serde(default)]
    pub takes_for_who_goes: bool,
    /// A file system grows by what is added less what goes, and only who does something frees. In recordings of earlier versions what goes
    /// counts for nothing.
    #[serde(default)]
    pub growth_is_net: bool,
    /// The time for which work only looks at what there is to do is not what its items cost. In recordings of earlier versions it is.
    #[serde(default)]
    pub looking_costs_nothing: bool,
    /// What a tenant does is work only on the disk for which it owes some, and while that may be done. In recordings of earlier versions always.
    #[serde(default)]
    pub debts_are_told_apart: bool,
    /// What was done and is to be done once more, as of a scrub that was cancelled within a chunk, counts as not done in what items cost. In
    /// recordings of earlier versions it was done twice.
    #[serde(default)]
    pub what_is_lost_counts: bool,
    /// In the time that work takes from others it goes before them. In recordings of earlier versions it has an ordinary share of it.
    #[serde(default)]
    pub goes_before_others: bool,
    /// How long a plan that erred stands follows the nearest deadline. In recordings of earlier versions it is ten minutes.
    #[serde(default)]
    pub replans_by_deadline: bool,
    /// Work that goes before others does so on the disk that it works on and on those below it, lifts nobody beside it, and has no cap. In
    /// recordings of earlier versions it does so on every disk where shares are weights, and counts and is capped as others are.
    #[serde(default)]
    pub takers_stand_apart: bool,
    /// An alarm that is absent from a plan is over once it was for some minutes, or once its queue has other terms, and deadlines that are past or
    /// that a plan is not made for make no plans. In recordings of earlier versions an alarm is over at once, and told again by the next plan that
    /// has it, and such deadlines do.
    #[serde(default)]
    pub alarms_outlast_a_plan: bool,
    /// No alarm names a queue of the operator's that would be done in time without what tenants owe, which is done after it; and what tenants owe
    /// ties no more space than is in use, whatever they say. In recordings of earlier versions it is not so.
    #[serde(default)]
    pub debts_raise_no_false_alarm: bool,
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            first_hour_by_minutes: true,
            replan_on_error: true,
            slips_count: true,
            forgets_gone_disks: true,
            calibrates_alone: true,
            compares_like_ends: true,
            debts_come_last: true,
            takes_for_who_goes: true,
            growth_is_net: true,
            looking_costs_nothing: true,
            debts_are_told_apart: true,
            what_is_lost_counts: true,
            goes_before_others: true,
            replans_by_deadline: true,
            takers_stand_apart: true,
            alarms_outlast_a_plan: true,
            debts_raise_no_false_alarm: true,
        }
    }
}

impl BackgroundSettings {
    /// As they were before there were any.
    pub const fn absent() -> Self {
        Self {
            first_hour_by_minutes: false,
            replan_on_error: false,
            slips_count: false,
            forgets_gone_disks: false,
            calibrates_alone: false,
            compares_like_ends: false,
            debts_come_last: false,
            takes_for_who_goes: false,
            growth_is_net: false,
            looking_costs_nothing: false,
            debts_are_told_apart: false,
            what_is_lost_counts: false,
            goes_before_others: false,
            replans_by_deadline: false,
            takers_stand_apart: false,
            alarms_outlast_a_plan: false,
            debts_raise_no_false_alarm: false,
        }
    }
}
