//! One knob in the ledger, and what is to be done about it next.

use crate::fights::Fights;
use crate::setting::{Reading, Setting};
use minerva_model::{DeviceId, WriteId};
use serde::{Deserialize, Serialize};

/// What was asked of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Asked {
    Inspect,
    /// `first`: this is what made the knob held.
    Write {
        setting: Setting,
        first: bool,
    },
    Undo,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Knob {
    /// `None`: as it was before Minerva.
    pub(crate) wish: Option<Setting>,
    /// As last read; `None`: to be inspected.
    pub(crate) current: Option<Setting>,
    /// As it was before the first write.
    pub(crate) original: Option<Reading>,
    /// The place of the first write among all first writes; `None`: not held.
    pub(crate) held_since: Option<u64>,
    pub(crate) request: Option<(WriteId, Asked)>,
    pub(crate) refusals: u32,
    pub(crate) retry_at: Option<u64>,
    /// The last trouble told to people, so that it is told once.
    pub(crate) told: String,
    pub(crate) fights: Fights,
    pub(crate) given_up: bool,
    /// It is given up as soon as nothing of Minerva's stands there any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) gives_up: bool,
    /// Somebody else set a limit where a cap is held. `original` is that limit already; what was journalled before is let go once the limit
    /// stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lets_go: bool,
}

/// What is to be done about a knob next.
pub(crate) enum Step {
    Ask(Asked),
    Drop,
    Wait,
}

impl Knob {
    /// Takes what others set where Minerva had set `ours` for what stood there before Minerva. False if the knob holds no limit.
    pub(crate) fn take_limit_of_others(&mut self, ours: &Setting, device: DeviceId) -> bool {
        let (Some(found), Some(original)) = (&self.current, &self.original) else { return false };
        let Some(setting) = found.of_others(ours, &original.setting) else { return false };
        self.leave(Reading { undo: setting.render(device), setting });
        true
    }

    /// Leaves to others what stands there.
    pub(crate) fn leave(&mut self, found: Reading) {
        self.original = Some(found);
        self.lets_go = true;
    }

    /// A limit that stood there before Minerva, or that others set since.
    pub(crate) fn has_limit_of_others(&self) -> bool {
        self.original.as_ref().is_some_and(|original| original.setting.is_limit() && !original.setting.is_default())
    }

    /// Less stands there than is wished, and nothing of it is Minerva's: a limit of somebody else that lies wholly below.
    pub(crate) fn is_limited_by_others(&self) -> bool {
        self.wish.is_some() && self.current.is_some() && self.wish != self.current
    }

    /// Nothing of Minerva's stands in a knob that is to be let go.
    pub(crate) fn is_to_be_let_go(&self) -> bool {
        self.lets_go
            && self.request.is_none()
            && self.current.as_ref() == self.original.as_ref().map(|original| &original.setting)
    }

    /// A cap of Minerva's stands there.
    pub(crate) fn holds_limit(&self) -> bool {
        self.held_since.is_some() && self.current.as_ref().is_some_and(Setting::is_limit)
    }

    pub(crate) fn next(&self) -> Step {
        if let Some(original) = self.original.as_ref().filter(|_| self.lets_go) {
            return Step::Ask(Asked::Write { setting: original.setting.clone(), first: false });
        }
        let Some(wish) = &self.wish else {
            return if self.held_since.is_some() { Step::Ask(Asked::Undo) } else { Step::Drop };
        };
        let (Some(current), Some(original)) = (&self.current, &self.original) else {
            return Step::Ask(Asked::Inspect);
        };
        let target = wish.within(&original.setting);
        let held = self.held_since.is_some();
        match (target == *current, target == original.setting) {
            (_, true) if held => Step::Ask(Asked::Undo),
            (true, _) if held => Step::Wait,
            (true, _) => Step::Drop,
            (false, _) => Step::Ask(Asked::Write { setting: target, first: !held }),
        }
    }
}
