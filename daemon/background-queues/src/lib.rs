//! Queues of background work: what the operator registered and what tenants owe, and how far each is. The slice loop keeps them in the store and tells
//! the engine of them, which says when each may run; a thread of its own lets it run in the gaps, which it looks for every few
//! milliseconds.
//!
//! Whatever the engine is to hear, and whatever is to be kept, is handed back.

mod absent;
mod carrier;
mod disk_of;
mod owed;
mod registered;
mod requests;
mod show;
mod slices;
#[cfg(test)]
mod testing;

pub use owed::{NotOwed, Owing, Owner};
pub use requests::Change;
pub use show::{shown_plan, span_of};
pub use slices::Reported;

use carrier::Carrier;
use minerva_clock::boottime;
use minerva_linux_background::{Before, Settings};
use minerva_linux_observe::Roots;
use minerva_model::{BackgroundId, BackgroundOrder, BackgroundState, DeviceId, Event, Nanos};
use minerva_store::BackgroundRow;
use owed::Owed;
use std::collections::BTreeMap;

/// All queues.
pub struct Queues {
    settings: Settings,
    roots: Roots,
    /// Started with the first queue.
    carrier: Option<Carrier>,
    /// The store was read.
    is_loaded: bool,
    queues: BTreeMap<BackgroundId, Queue>,
    last_id: BackgroundId,
    /// What tenants do by themselves.
    owed: BTreeMap<BackgroundId, Owed>,
    last_owed: Option<BackgroundId>,
    /// How far the wall clock was ahead of the loop's when deadlines were converted last.
    ahead_ns: Option<i128>,
}

/// A queue that was registered.
#[derive(Clone, Debug)]
struct Queue {
    row: BackgroundRow,
    device: Option<DeviceId>,
    /// Why there is no disk to work on now; empty if there is one.
    absent: String,
    /// Kept in the store as it is, when by the loop's clock.
    kept_at: Nanos,
    /// The processors that its processes are confined to, or why they are not.
    processors: String,
}

impl Queues {
    /// None yet.
    pub const fn new(settings: Settings, roots: Roots) -> Self {
        Self {
            settings,
            roots,
            carrier: None,
            is_loaded: false,
            queues: BTreeMap::new(),
            last_id: BackgroundId(0),
            owed: BTreeMap::new(),
            last_owed: None,
            ahead_ns: None,
        }
    }

    /// When a queue may run from now on.
    pub fn order(&self, order: BackgroundOrder) {
        if let Some(carrier) = &self.carrier {
            carrier.order(order);
        }
    }

    /// Puts a queue in force, new or changed, that the store has. The answer is for the engine.
    pub fn set(&mut self, row: BackgroundRow, device: Option<DeviceId>) -> Option<Event> {
        let id = row.id;
        let work = registered::spec(&row);
        let before = self.queues.remove(&id);
        // Lost or found since whoever changed its terms looked.
        let device = before.as_ref().and_then(|queue| queue.device).or(device);
        let is_carried = before.as_ref().is_some_and(|queue| queue.device.is_some());
        let absent = before.filter(|_| device.is_none()).map(|queue| queue.absent).unwrap_or_default();
        self.queues.insert(id, Queue { row, device, absent, kept_at: boottime(), processors: String::new() });
        let row = &self.queues[&id].row;
        let (work, device) = work.zip(device).filter(|_| row.state != BackgroundState::Done)?;
        let queue = registered::queue(row, &work, (device, self.settings.cgroup(id)), registered::both_clocks());
        let before =
            Before { ran: Nanos::from_millis(row.ran_ms), done_items: row.done_items, total_items: row.total_items };
        if let Some(carrier) = self.carry().filter(|_| !is_carried) {
            carrier.add(work, device, before);
        }
        Some(Event::BackgroundSet(Box::new(queue)))
    }

    /// The thread that carries work out, started with the first queue.
    fn carry(&mut self) -> Option<&Carrier> {
        if self.carrier.is_none() {
            match Carrier::start(self.settings.clone()) {
                Ok(carrier) => self.carrier = Some(carrier),
                Err(error) => tracing::error!("no background work is carried out: {error:#}"),
            }
        }
        self.carrier.as_ref()
    }

    /// Ends a queue that the store has forgotten. The answer is for the engine.
    pub fn remove(&mut self, id: BackgroundId) -> Option<Event> {
        self.queues.remove(&id)?;
        // Also of one that was not carried out since the daemon started: something may be left of it.
        if let Some(carrier) = self.carry() {
            carrier.remove(id);
        }
        Some(Event::BackgroundGone(id))
    }

    fn named(&self, name: &str) -> Option<&Queue> {
        self.queues.values().find(|queue| queue.row.name == name)
    }
}
