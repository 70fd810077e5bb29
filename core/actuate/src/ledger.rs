//! What Minerva wants of each knob, what the knob held before, and what it holds as last read.
//!
//! A knob is in the ledger only while something is to be done or undone about it:
//!
//! ```text
//! wish -> Inspect -> stands as wished already: leaves the ledger
//!                 -> Write -> held: verified by rounds, undone in the end -> leaves the ledger
//! ```
//!
//! - Nothing is written before an inspection of that knob answered, and nothing that stands already is written.
//! - At most one request of a knob is under way; the newest wish counts when its answer comes. [`Ledger::release_all`] and
//!   [`Ledger::forget_device`] do not wait: the driver performs writes in order, so the undo comes after whatever is under way, and the late answer is
//!   ignored.
//! - A wish for a default on a knob that is not in the ledger costs not even an inspection: thousands of neutral tenants are
//!   free. The price: an operator's own weight on such a tenant stays until a decision differs from neutral.
//! - A wish that equals what stood there before Minerva is met by the undo, and the knob is free again.

mod answers;
mod others;
mod put_back;

use crate::entry::{Asked, Knob, Step};
use crate::fights::{self, Owner, Rules};
use crate::knob::{Holder, KnobKey};
use crate::setting::Setting;
use minerva_model::{CgroupRef, DeviceId, Effect, KnobFile, KnobInspection, KnobTarget, KnobWrite, WriteId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

/// A refused request is tried again after 2, 4, 8 ... slices, and then at this distance. One that met a restore is in the next slice.
const RETRY_SLICES_MAX: u64 = 64;

/// The ledger, and the effects that come of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ledger {
    owners: BTreeMap<Holder, Owner>,
    /// Holders that are forgotten as soon as their last knob is put back.
    retired: BTreeSet<Holder>,
    knobs: BTreeMap<KnobKey, Knob>,
    held: BTreeSet<KnobKey>,
    requests: BTreeMap<WriteId, KnobKey>,
    retries: BTreeSet<(u64, KnobKey)>,
    suspended: BTreeSet<(DeviceId, KnobFile)>,
    rules: Rules,
    slice: u64,
    /// Where the last round of verification ended, and the part of a knob that it left over.
    verified_last: Option<KnobKey>,
    verify_credit: u64,
    last_id: u64,
    first_writes: u64,
    stopped: bool,
    /// See [`Ledger::take_limited`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    limited: BTreeSet<KnobKey>,
    pub(crate) effects: VecDeque<Effect>,
}

impl Ledger {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            owners: BTreeMap::new(),
            retired: BTreeSet::new(),
            knobs: BTreeMap::new(),
            held: BTreeSet::new(),
            requests: BTreeMap::new(),
            retries: BTreeSet::new(),
            suspended: BTreeSet::new(),
            rules,
            slice: 0,
            verified_last: None,
            verify_credit: 0,
            last_id: 0,
            first_writes: 0,
            stopped: false,
            limited: BTreeSet::new(),
            effects: VecDeque::new(),
        }
    }

    /// New settings: the operator may have ended a fight, so knobs given up are free to be wished for again. Answers with them.
    pub(crate) fn configure(&mut self, rules: Rules) -> Vec<KnobKey> {
        self.rules = rules;
        let given_up: Vec<KnobKey> = self.knobs.iter().filter(|(_, knob)| knob.given_up).map(|(key, _)| *key).collect();
        self.knobs.retain(|_, knob| !knob.given_up);
        self.knobs.values_mut().for_each(|knob| knob.gives_up = false);
        given_up
    }

    /// Says where a holder's knobs are; before its first wish.
    pub(crate) fn own(&mut self, holder: Holder, owner: Owner) {
        self.retired.remove(&holder);
        self.owners.insert(holder, owner);
    }

    /// The holder is gone, and its knobs with it: nothing is written.
    pub(crate) fn disown(&mut self, holder: Holder) {
        let keys: Vec<KnobKey> = self.keys_of(holder).collect();
        keys.into_iter().for_each(|key| self.remove(key));
        self.owners.remove(&holder);
    }

    /// The holder is no longer Minerva's business, but may well stand: its knobs are put back, and then it is forgotten.
    pub(crate) fn retire(&mut self, holder: Holder) {
        self.retired.insert(holder);
        let keys: Vec<KnobKey> = self.keys_of(holder).collect();
        for key in keys {
            // What was lost with its elevator, or left to somebody else, is not to be put back.
            if self.is_suspended(key) || self.knobs.get(&key).is_some_and(|knob| knob.given_up) {
                self.remove(key);
            } else {
                self.release(key);
            }
        }
        self.forget_if_retired(holder);
    }

    /// Wants `setting` in a knob.
    pub(crate) fn wish(&mut self, key: KnobKey, setting: Setting) {
        if self.stopped {
            return;
        }
        match self.knobs.get_mut(&key) {
            None if setting.is_default() => return,
            None => {
                self.knobs.insert(key, Knob { wish: Some(setting), ..Knob::default() });
            }
            Some(knob) => knob.wish = Some(setting),
        }
        self.advance(key);
    }

    /// Wants a knob to be as it was before Minerva.
    pub(crate) fn release(&mut self, key: KnobKey) {
        if let Some(knob) = self.knobs.get_mut(&key).filter(|knob| !knob.given_up) {
            knob.wish = None;
            self.advance(key);
        }
    }

    /// [`Self::release`] for everything that a holder has.
    pub(crate) fn release_holder(&mut self, holder: Holder) {
        let keys: Vec<KnobKey> = self.keys_of(holder).collect();
        keys.into_iter().for_each(|key| self.release(key));
    }

    /// [`Self::release`] for what a holder has for a disk.
    pub(crate) fn release_on(&mut self, holder: Holder, device: DeviceId) {
        let keys: Vec<KnobKey> = self.keys_of(holder).filter(|key| key.device == device).collect();
        keys.into_iter().for_each(|key| self.release(key));
    }

    /// [`Self::release`] for every cgroup's knob for a disk.
    pub(crate) fn release_cgroups(&mut self, device: DeviceId) {
        let keys = self.knobs.keys().filter(|key| key.device == device && key.is_of_cgroup());
        let keys: Vec<KnobKey> = keys.copied().collect();
        keys.into_iter().for_each(|key| self.release(key));
    }

    /// The cgroups' knobs of this file for this disk have lost what they held and cannot be written for now. What undoes
    /// them is kept.
    pub(crate) fn suspend(&mut self, device: DeviceId, file: KnobFile) {
        self.suspended.insert((device, file));
        for (_, knob) in self.knobs.iter_mut().filter(|(key, _)| key.device == device && key.file == file) {
            knob.current = None;
        }
    }

    /// The reverse of [`Self::suspend`]: what was wished is inspected and written again.
    pub(crate) fn resume(&mut self, device: DeviceId, file: KnobFile) {
        if !self.suspended.remove(&(device, file)) {
            return;
        }
        let keys = self.knobs.keys().filter(|key| key.device == device && key.file == file);
        for key in keys.copied().collect::<Vec<KnobKey>>() {
            if let Some(knob) = self.knobs.get_mut(&key) {
                // An answer that was under way during the suspension says nothing about now.
                knob.current = None;
            }
            self.advance(key);
        }
    }

    /// Every held knob was put back beside the driver, by those who may: what stands there is read, and what is wished written again.
    /// Nobody has overwritten anything.
    pub(crate) fn restored(&mut self) {
        if self.stopped || self.held.is_empty() {
            return;
        }
        self.effects.push_back(Effect::Found(fights::restored(self.held.len())));
        let mut keys: Vec<KnobKey> = self.held.iter().copied().collect();
        // Weights depend on the disk's own settings.
        keys.sort_by_key(|key| !key.is_of_disk());
        for key in &keys {
            let Some(knob) = self.knobs.get_mut(key) else { continue };
            knob.current = None;
            // An answer under way says nothing about now, but for that of an undo.
            if let Some((id, _)) = knob.request.take_if(|(_, asked)| *asked != Asked::Undo) {
                self.requests.remove(&id);
            }
            // BFQ's switches are there only with BFQ: once the elevator is read, they are wished for again.
            let is_bfqs = matches!(key.file, KnobFile::BfqStrictGuarantees | KnobFile::BfqLowLatency);
            if !is_bfqs || !self.held.contains(&KnobKey { file: KnobFile::Elevator, ..*key }) {
                self.advance(*key);
            }
        }
    }

    /// Looks at a held knob now, because something hints that it changed.
    pub(crate) fn look_at(&mut self, key: KnobKey) {
        let idle = self.knobs.get(&key).is_some_and(|knob| knob.held_since.is_some() && knob.request.is_none());
        if idle && self.held.contains(&key) {
            self.ask(key, Asked::Inspect);
        }
    }

    /// What a held knob was last seen to hold.
    pub(crate) fn held_setting(&self, key: KnobKey) -> Option<&Setting> {
        self.knobs.get(&key).filter(|knob| knob.held_since.is_some())?.current.as_ref()
    }

    /// It is known where this holder's knobs are.
    pub(crate) fn knows(&self, holder: Holder) -> bool {
        self.owners.contains_key(&holder)
    }

    /// Some request of this holder is not answered yet.
    pub(crate) fn is_under_way(&self, holder: Holder) -> bool {
        self.keys_of(holder).any(|key| self.knobs.get(&key).is_some_and(|knob| knob.request.is_some()))
    }

    /// A slice has passed: tries again what was refused, and reads again the held knobs that are due.
    pub(crate) fn slice_ended(&mut self, slice: u64) {
        self.slice = slice;
        if self.stopped {
            return;
        }
        while let Some((at, key)) = self.retries.first().copied().filter(|(at, _)| *at <= slice) {
            self.retries.remove(&(at, key));
            if let Some(knob) = self.knobs.get_mut(&key) {
                knob.retry_at = None;
            }
            self.advance(key);
        }
        // The credit carries the fraction over, so that few knobs are not read more often than many.
        self.verify_credit += self.held.len() as u64;
        let count = (self.verify_credit / self.rules.verify_every_slices) as usize;
        self.verify_credit %= self.rules.verify_every_slices;
        let after = self.verified_last.map_or(Unbounded, Excluded);
        let keys = self.held.range((after, Unbounded)).chain(&self.held).take(count.min(self.held.len()));
        let keys: Vec<KnobKey> = keys.copied().collect();
        self.verified_last = keys.last().copied().or(self.verified_last);
        for key in keys {
            if !self.is_suspended(key) {
                self.look_at(key);
            }
        }
    }

    /// Does the next thing about a knob, unless it has to wait. A cap is read again before it is changed: somebody else may have set a
    /// limit there since.
    fn advance(&mut self, key: KnobKey) {
        let keeps_limits = self.rules.keeps_limits_of_others;
        if self.knobs.get(&key).is_none_or(|knob| !keeps_limits || !knob.holds_limit()) {
            return self.advance_read(key);
        }
        self.go_on(key, |_| Asked::Inspect);
    }

    /// The same of a knob that was just read.
    fn advance_read(&mut self, key: KnobKey) {
        self.let_go(key);
        self.go_on(key, |asked| asked);
    }

    fn go_on(&mut self, key: KnobKey, instead: impl FnOnce(Asked) -> Asked) {
        let Some(knob) = self.knobs.get(&key) else { return };
        if knob.request.is_some() || knob.given_up {
            return;
        }
        match knob.next() {
            Step::Drop => {
                if self.rules.keeps_limits_of_others && knob.is_limited_by_others() {
                    self.limited.insert(key);
                }
                self.remove(key);
            }
            Step::Ask(asked) if knob.retry_at.is_none() && !self.is_suspended(key) => self.ask(key, instead(asked)),
            Step::Ask(_) | Step::Wait => {}
        }
    }

    fn is_suspended(&self, key: KnobKey) -> bool {
        self.suspended.contains(&(key.device, key.file))
    }

    fn ask(&mut self, key: KnobKey, asked: Asked) {
        let (Some(knob), Some(owner)) = (self.knobs.get_mut(&key), self.owners.get(&key.holder)) else { return };
        self.last_id += 1;
        let id = WriteId(self.last_id);
        let KnobKey { file, device, .. } = key;
        let target = target_of(key, owner);
        let undo = knob.original.as_ref().map(|original| original.undo.clone());
        let text = match (&asked, &undo) {
            (Asked::Write { setting, .. }, Some(_)) => setting.render(device),
            (Asked::Undo, Some(undo)) => undo.clone(),
            _ => {
                self.effects.push_back(Effect::Inspect(KnobInspection { id, target, file, device }));
                self.requests.insert(id, key);
                knob.request = Some((id, Asked::Inspect));
                return;
            }
        };
        let is_first = matches!(asked, Asked::Write { first: true, .. });
        if is_first {
            self.first_writes += 1;
            knob.held_since = Some(self.first_writes);
            self.held.insert(key);
        }
        knob.request = Some((id, asked));
        if is_first && self.rules.keeps_limits_of_others && knob.fights.has_any() {
            self.push_watch(key);
        }
        let undo = undo.unwrap_or_default();
        self.effects.push_back(Effect::Write(KnobWrite { id, target, file, device, text, undo }));
        self.requests.insert(id, key);
    }

    fn keys_of(&self, holder: Holder) -> impl Iterator<Item = KnobKey> {
        // A holder's knobs stand together: the holder is the first part of the key.
        let first = KnobKey { holder, device: DeviceId { major: 0, minor: 0 }, file: KnobFile::ALL[0] };
        self.knobs.range(first..).map(|(key, _)| *key).take_while(move |key| key.holder == holder)
    }

    fn remove(&mut self, key: KnobKey) {
        self.held.remove(&key);
        let Some(knob) = self.knobs.remove(&key) else { return };
        if let Some((id, _)) = knob.request {
            self.requests.remove(&id);
        }
        if let Some(at) = knob.retry_at {
            self.retries.remove(&(at, key));
        }
        self.forget_if_retired(key.holder);
    }

    fn forget_if_retired(&mut self, holder: Holder) {
        if self.retired.contains(&holder) && self.keys_of(holder).next().is_none() {
            self.retired.remove(&holder);
            self.owners.remove(&holder);
        }
    }
}

/// Where a knob's file is.
fn target_of(key: KnobKey, owner: &Owner) -> KnobTarget {
    match key.file {
        // The one file of a disk that lies in the root group.
        KnobFile::IoCostQos => KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path: String::new(), inode: 0 } },
        _ => owner.target.clone(),
    }
}
