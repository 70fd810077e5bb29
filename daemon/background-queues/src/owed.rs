//! What tenants owe: work that their programs put off and do by themselves when they are told that they may. It lasts as long as somebody
//! holds it, and is not kept.

use crate::Queues;
use minerva_clock::boottime;
use minerva_linux_background::{Say, Told};
use minerva_model::{
    BackgroundCost, BackgroundHold, BackgroundId, BackgroundQueue, BackgroundReport, BackgroundState, DeviceId, Event,
    Nanos, TenantId,
};

/// Numbers of what tenants owe begin here, so that they are never those of what operators registered.
pub(crate) const FIRST_ID: u32 = 1 << 31;
/// What one tenant may owe at once.
const OWED_MAX: usize = 16;
/// Before anything was measured: a second of it takes a second.
const COST_ASSUMED: BackgroundCost = BackgroundCost { seconds_per_item: 1.0, measured_seconds: 0.0, slow_down: None };

/// How much there is to do, in time of a disk that nobody else uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owing {
    /// All of it.
    pub service: Nanos,
    /// What is done of it.
    pub done: Nanos,
    /// Bytes that the rest ties.
    pub tied_bytes: u64,
}

impl Owing {
    const fn state(&self) -> BackgroundState {
        if self.done.0 >= self.service.0 { BackgroundState::Done } else { BackgroundState::Waiting }
    }
}

/// Whose it is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// Its name, for people.
    pub tenant_name: String,
    /// Its cgroup, below the root of the hierarchy.
    pub cgroup: String,
    /// What the tenant calls the work; one of a name at a time.
    pub name: String,
    /// The disk.
    pub device: DeviceId,
    /// It should be done within this time.
    pub within: Option<Nanos>,
    /// Which registration of that name it is, above 0: reports of another one are not taken.
    pub registration: u64,
}

/// Why a report is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOwed {
    /// The tenant owes nothing of that name.
    ByNobody,
    /// Another registration holds the name by now.
    Replaced,
}

/// Something that a tenant owes.
#[derive(Clone, Debug)]
pub(crate) struct Owed {
    pub(crate) owner: Owner,
    pub(crate) owing: Owing,
    pub(crate) state: BackgroundState,
    pub(crate) ran: Nanos,
    pub(crate) added: Nanos,
    /// Its program said something since the last slice.
    is_news: bool,
    /// It ran, of that while others used the disk too, and was not reported to have done anything.
    untold: (Nanos, Nanos),
    pub(crate) cost: BackgroundCost,
}

impl Queues {
    /// A tenant owes this for as long as it is not released. The number, what is to be told to the engine, and the number of one of that
    /// name whose place it takes. Errors: a sentence.
    pub fn owe(
        &mut self,
        owner: Owner,
        owing: Owing,
        say: Say,
    ) -> Result<(BackgroundId, Vec<Event>, Option<BackgroundId>), String> {
        let same = self.owed_by(owner.tenant, &owner.name);
        if same.is_none() && self.owed.values().filter(|owed| owed.owner.tenant == owner.tenant).count() >= OWED_MAX {
            return Err(format!(
                "This tenant owes {OWED_MAX} kinds of work already, which is the limit. End one of them first."
            ));
        }
        let mut events: Vec<Event> = same.and_then(|id| self.release(id)).into_iter().collect();
        let last = self.last_owed.map_or(FIRST_ID, |last| last.0.wrapping_add(1).max(FIRST_ID));
        let id = BackgroundId(last);
        self.last_owed = Some(id);
        let group = self.settings.cgroup_root.join(owner.cgroup.trim_start_matches('/'));
        let told = Told { id, device: owner.device, group, say };
        let (state, ran, untold) = (owing.state(), Nanos::ZERO, <_>::default());
        let owed = Owed { owner, owing, state, ran, added: boottime(), is_news: true, untold, cost: COST_ASSUMED };
        events.push(Event::BackgroundSet(Box::new(owed.queue(id))));
        self.owed.insert(id, owed);
        if let Some(carrier) = self.carry() {
            carrier.tell(told);
        }
        Ok((id, events, same))
    }

    /// How far it is, as the registration says that told it; 0: whichever holds the name. The answer is for the engine.
    pub fn owed_report(
        &mut self,
        tenant: TenantId,
        (name, registration): (&str, u64),
        owing: Owing,
    ) -> Result<Vec<Event>, NotOwed> {
        let id = self.owed_by(tenant, name).ok_or(NotOwed::ByNobody)?;
        let owed = self.owed.get_mut(&id).ok_or(NotOwed::ByNobody)?;
        if ![0, owed.owner.registration].contains(&registration) {
            return Err(NotOwed::Replaced);
        }
        let was_over = owed.state.is_over();
        (owed.owing, owed.is_news) = (owing, true);
        let is_over = owing.state().is_over();
        owed.state = if is_over { BackgroundState::Done } else { owed.state };
        if was_over && !is_over {
            // What comes now has a deadline of its own.
            (owed.state, owed.added) = (BackgroundState::Waiting, boottime());
            return Ok(vec![Event::BackgroundSet(Box::new(owed.queue(id)))]);
        }
        Ok(Vec::new())
    }

    /// Nobody holds it any more. The answer is for the engine.
    pub fn release(&mut self, id: BackgroundId) -> Option<Event> {
        self.owed.remove(&id)?;
        if let Some(carrier) = &self.carrier {
            carrier.remove(id);
        }
        Some(Event::BackgroundGone(id))
    }

    fn owed_by(&self, tenant: TenantId, name: &str) -> Option<BackgroundId> {
        let found = self.owed.iter().find(|(_, owed)| owed.owner.tenant == tenant && owed.owner.name == name);
        found.map(|(id, _)| *id)
    }
}

impl Owed {
    fn queue(&self, id: BackgroundId) -> BackgroundQueue {
        let Owner { name, device, cgroup, within, .. } = &self.owner;
        BackgroundQueue {
            id,
            name: name.clone(),
            device: *device,
            cgroup: cgroup.clone(),
            priority: 0,
            added: self.added,
            due: within.map(|within| self.added + within),
            given: None,
            is_paused: false,
            hold: BackgroundHold::Told,
            cost: self.cost,
            done_items: self.owing.done.as_secs_f64(),
            total_items: Some(self.owing.service.as_secs_f64()),
        }
    }

    /// Takes for how long it was let work, and whether it is now; what the engine is to hear. One that may work and says nothing is not
    /// spoken for, so that it is found out to hang.
    pub(crate) fn reported(&mut self, report: &BackgroundReport) -> Option<BackgroundReport> {
        self.ran += report.ran;
        self.untold.0 += report.ran;
        self.untold.1 += report.ran_beside;
        if self.owing.state() == BackgroundState::Waiting {
            self.state = report.state;
        }
        if !std::mem::take(&mut self.is_news) && self.state == BackgroundState::Running {
            return None;
        }
        let (ran, ran_beside) = std::mem::take(&mut self.untold);
        Some(BackgroundReport {
            state: self.state,
            done_items: self.owing.done.as_secs_f64(),
            total_items: Some(self.owing.service.as_secs_f64()),
            tied_bytes: self.owing.tied_bytes as f64,
            ran,
            ran_beside,
            ..*report
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{COST_ASSUMED, Owed, Owing, Owner};
    use minerva_model::{BackgroundId, BackgroundReport, BackgroundState, DeviceId, Nanos, TenantId};

    fn owed() -> Owed {
        let owner = Owner {
            tenant: TenantId(1),
            tenant_name: "store".to_owned(),
            cgroup: "store".to_owned(),
            name: "rebuild".to_owned(),
            device: DeviceId { major: 8, minor: 0 },
            within: Some(Nanos::from_secs(60)),
            registration: 1,
        };
        let owing = Owing { service: Nanos::from_secs(10), done: Nanos::from_secs(2), tied_bytes: 4096 };
        let (state, ran, untold) = (owing.state(), Nanos::ZERO, <_>::default());
        Owed { owner, owing, state, ran, added: Nanos::from_secs(5), is_news: true, untold, cost: COST_ASSUMED }
    }

    fn carried(state: BackgroundState) -> BackgroundReport {
        BackgroundReport {
            id: BackgroundId(7),
            state,
            done_items: 0.0,
            total_items: None,
            tied_bytes: 0.0,
            ran: Nanos::from_secs(1),
            used_bytes: 0,
            size_bytes: 0,
            file_system: None,
            processors: None,
            gets_on: None,
            is_beside_others: false,
            ran_beside: Nanos::from_millis(500),
            beside: None,
        }
    }

    #[test]
    fn what_is_owed_is_due_by_its_own_time_and_counts_in_seconds_of_the_disk() {
        let queue = owed().queue(BackgroundId(7));
        assert_eq!((queue.due, queue.total_items, queue.done_items), (Some(Nanos::from_secs(65)), Some(10.0), 2.0));
    }

    #[test]
    fn one_that_may_work_and_says_nothing_is_not_spoken_for() {
        let mut owed = owed();
        let first = owed.reported(&carried(BackgroundState::Running)).expect("it has just said so");
        assert_eq!((first.done_items, first.total_items, first.ran), (2.0, Some(10.0), Nanos::from_secs(1)));
        assert_eq!(owed.reported(&carried(BackgroundState::Running)), None);
        assert_eq!(owed.reported(&carried(BackgroundState::Running)), None);
        let waits = owed.reported(&carried(BackgroundState::Waiting)).expect("while it waits it need not say anything");
        let ran = (waits.ran, waits.ran_beside);
        assert_eq!(ran, (Nanos::from_secs(3), Nanos::from_millis(1_500)), "nothing of what it ran is lost");
        owed.owing.done = Nanos::from_secs(10);
        owed.state = BackgroundState::Done;
        let done = owed.reported(&carried(BackgroundState::Running)).expect("it is over");
        assert_eq!(done.state, BackgroundState::Done);
    }
}
