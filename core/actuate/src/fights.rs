//! Who else writes a knob, and when to leave it to them.
//!
//! Every overwrite of a held knob counts for a window of [`WINDOW_ROUNDS`] times the verification rounds that giving up takes.
//! A manager that resets a knob now and then (systemd at a daemon-reload) is put right for ever; one that does it
//! round after round wins, because two programs that overwrite each other help nobody.

use crate::knob::{Holder, KnobKey};
use crate::setting::Setting;
use minerva_model::{DeviceId, EngineConfig, Finding, FindingKind, KnobTarget, TenantId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How much longer than the quickest possible fight an overwrite is remembered. Four tells a manager that resets at every
/// other round from one that does it by the day.
const WINDOW_ROUNDS: u64 = 4;

/// How often to look, and how often to put right.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Every held knob is read again once in this many slices; at least 1.
    pub(crate) verify_every_slices: u64,
    /// Overwrites within the window before Minerva leaves the knob; at least 1.
    pub(crate) fights_before_giving_up: u64,
    /// A limit of somebody else is kept.
    #[serde(default)]
    pub(crate) keeps_limits_of_others: bool,
}

/// What is done about a knob that somebody else wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    SetsAgain,
    /// Caps stay within what was set.
    StaysWithin,
    GivesUp,
}

impl Rules {
    pub(crate) fn of(config: &EngineConfig) -> Self {
        Self {
            verify_every_slices: u64::from(config.actuation.verify_every_slices.max(1)),
            fights_before_giving_up: u64::from(config.actuation.fights_before_giving_up.max(1)),
            keeps_limits_of_others: config.actuation.keeps_limits_of_others,
        }
    }
}

/// The overwrites of one knob that still count, by slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fights {
    slices: Vec<u64>,
}

impl Fights {
    /// Somebody overwrote the knob since it is in the ledger.
    pub(crate) fn has_any(&self) -> bool {
        !self.slices.is_empty()
    }

    /// Somebody overwrote the knob, seen in `slice`; true when it is time to give up.
    pub(crate) fn lost_once_more(&mut self, slice: u64, rules: Rules) -> bool {
        let window = rules.verify_every_slices * rules.fights_before_giving_up * WINDOW_ROUNDS;
        self.slices.retain(|seen| seen + window > slice);
        self.slices.push(slice);
        self.slices.len() as u64 >= rules.fights_before_giving_up
    }
}

/// Who holds a knob, for requests and for sentences.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Where its knobs are.
    pub(crate) target: KnobTarget,
    /// Who is likely to write them besides Minerva.
    pub(crate) manager: Cow<'static, str>,
}

/// A finding about one knob: what it is about is read off the key.
pub(crate) fn finding(kind: FindingKind, key: KnobKey, message: String) -> Finding {
    let tenant: Option<TenantId> = match key.holder {
        Holder::Tenant(tenant) => Some(tenant),
        Holder::Group(_) | Holder::Disk(_) | Holder::Served(_) => None,
    };
    Finding { kind, device: Some(key.device), tenant, message }
}

/// The sentences about an overwritten knob.
pub(crate) fn overwritten(
    key: KnobKey,
    owner: &Owner,
    asked: &Setting,
    found: &Setting,
    reaction: Reaction,
) -> Finding {
    let manager = &*owner.manager;
    let what = format!(
        "{} was set to '{}' by somebody else, likely {manager}, while Minerva asks for '{}'",
        knob_name(key, owner),
        found.render(key.device),
        asked.render(key.device),
    );
    match reaction {
        Reaction::SetsAgain => finding(FindingKind::Overwritten, key, format!("{what}. Minerva sets it again.")),
        Reaction::StaysWithin => {
            let then = "Minerva's caps stay within that from now on, and that is what is put back in the end.";
            finding(FindingKind::Overwritten, key, format!("{what}. {then}"))
        }
        Reaction::GivesUp => {
            let remedy = remedy(key, manager);
            let message = format!("{what}, and this again and again. Minerva leaves it alone from now on. {remedy}");
            finding(FindingKind::FightGivenUp, key, message)
        }
    }
}

/// The sentences about so many knobs that were put back beside the driver.
pub(crate) fn restored(count: usize) -> Finding {
    let message = format!(
        "{count} knob{} put back while Minerva runs: by `minerva-ctl restore`, or by the guard because a slice came too late for \
         the lease. Minerva writes them again. To have them stay, stop it or set mode = \"shadow\".",
        if count == 1 { " was" } else { "s were" },
    );
    Finding { kind: FindingKind::KnobsRestored, device: None, tenant: None, message }
}

fn remedy(key: KnobKey, manager: &str) -> &'static str {
    match (key.holder, manager) {
        (Holder::Disk(_), _) => {
            "Find what sets it, such as a udev rule or a tuning daemon, or remove the disk's setting from minerva.toml."
        }
        (_, "systemd") => {
            "Remove IOWeight=, IODeviceWeight= and IO...Max= from the unit, or set Delegate=yes there, or exclude the tenant \
             in minerva.toml; then reload Minerva."
        }
        _ => {
            "Take the disk settings out of that manager's configuration, or exclude the tenant in minerva.toml; then reload \
              Minerva."
        }
    }
}

/// The knob as a person would look for it: `io.bfq.weight of system.slice/a.service for 8:0`.
pub(crate) fn knob_name(key: KnobKey, owner: &Owner) -> String {
    let DeviceId { major, minor } = key.device;
    match &owner.target {
        KnobTarget::Cgroup { cgroup, .. } => {
            format!("{} of {} for {major}:{minor}", key.file.file_name(), cgroup.path)
        }
        KnobTarget::Disk { name } => format!("{} of {name}", key.file.file_name()),
        KnobTarget::Server { server, disk } => format!("{} of {disk} at {server}", key.file.file_name()),
    }
}
