//! Whose work counts in what is taken from others.
//!
//! A tenant may say that it owes years of work that is due tonight, and work that hangs is never done, however much it gets. What either
//! lacks is no reason to take time from others for the queue that runs meanwhile (docs/adr/0034).

use super::{InForce, Worklist};
use crate::work::Work;
use minerva_model::{BackgroundHold, BackgroundId, BackgroundPace, DeviceId, Nanos};
use std::collections::BTreeSet;

/// Which of a disk's queues a plan is made for.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) device: DeviceId,
    /// Absent: all of them.
    only: Option<&'a BTreeSet<BackgroundId>>,
}

impl Whose<'_> {
    pub(super) const fn all(device: DeviceId) -> Self {
        Self { device, only: None }
    }

    fn has(&self, work: &Work) -> bool {
        work.queue.device == self.device && self.only.is_none_or(|only| only.contains(&work.queue.id))
    }
}

impl<'a> Whose<'a> {
    pub(super) const fn only(device: DeviceId, only: Option<&'a BTreeSet<BackgroundId>>) -> Self {
        Self { device, only }
    }
}

impl InForce {
    /// Time may be taken from others for this queue.
    pub(super) fn counts(&self, id: BackgroundId) -> bool {
        self.counted.as_ref().is_none_or(|counted| counted.contains(&id))
    }
}

impl Worklist {
    /// What is to be done, now or later.
    pub(super) fn owed<'a>(&'a self, whose: Whose<'a>) -> impl Iterator<Item = &'a Work> {
        self.works.values().filter(move |work| whose.has(work) && work.is_owed())
    }

    /// What can be done now.
    pub(super) fn ready<'a>(&'a self, whose: Whose<'a>) -> impl Iterator<Item = &'a Work> {
        self.owed(whose).filter(|work| work.is_ready())
    }

    /// The queues for which time may be taken from others: the one that goes first and, of those of its kind, the operator's or what tenants
    /// owe, those that get on. What could do nothing with that time counts only where all of them are so. Absent: all.
    pub(super) fn counted(&self, now: Nanos, device: DeviceId) -> Option<BTreeSet<BackgroundId>> {
        let rank = self.ranking(now, false);
        let ready = || self.ready(Whose::all(device));
        let first = ready().min_by_key(|work| rank(work)).filter(|_| self.settings.takes_for_who_goes)?;
        let is_told = |work: &Work| work.queue.hold == BackgroundHold::Told;
        let counts = |work: &&Work| {
            let gets_on = !work.is_silent(now) && !work.is_hung();
            work.queue.id == first.queue.id || (gets_on && is_told(work) == is_told(first))
        };
        let mut counted: BTreeSet<BackgroundId> = ready().filter(counts).map(|work| work.queue.id).collect();
        let can_take = |id: &BackgroundId| self.works.get(id).is_some_and(Work::can_take);
        if counted.iter().any(can_take) {
            counted.retain(can_take);
        }
        (counted.len() < ready().count()).then_some(counted)
    }

    /// The part of what tenants say that their debts tie on a file system that can be true: beside what the operator's work ties, no more than is
    /// in use there.
    pub(super) fn believed_part(&self, whose: Whose<'_>, file_system: Option<u64>) -> f64 {
        let tied = |is_debt: bool| -> f64 {
            let works = self.ready(whose).filter(|work| work.is_debt() == is_debt);
            works.map(|work| work.tied_blocks(file_system)).sum()
        };
        let said = tied(true);
        let disk = self.disks.get(&whose.device).filter(|_| self.settings.debts_raise_no_false_alarm);
        let most = disk.map(|disk| disk.space(file_system).tied_blocks_max(tied(false)));
        most.filter(|most| said > *most).map_or(1.0, |most| most / said)
    }

    /// A tenant, by its cgroup, may now do what it owes for this disk. In recordings of earlier versions that is not looked at.
    pub fn may_do_what_it_owes(&self, cgroup: &str, device: DeviceId) -> bool {
        let may_do = |work: &Work| work.queue.cgroup == cgroup && work.order.pace != BackgroundPace::Hold;
        !self.settings.debts_are_told_apart || self.owed(Whose::all(device)).any(may_do)
    }
}
