//! B-WF2Q+: budget worst-case fair weighted fair queueing, one level of it (BFQ uses two, groups and flows).
//!
//! An entity of weight w asks for service in budgets. With a budget B it starts at s and, if it used all of it, finishes at
//! s + B/w, in the level's virtual time. Among the entities that have started the one that finishes first is served. When
//! it is done its finish is computed again from what it really used, so that nobody gains by asking for more than it uses.

use crate::IndexedHeap;
use std::cmp::Reverse;

/// Virtual time: bytes per weight, with 22 bits of fraction.
type Virtual = u128;

const FRACTION_BITS: u32 = 22;

fn span(service_bytes: u64, weight: u64) -> Virtual {
    (Virtual::from(service_bytes) << FRACTION_BITS) / Virtual::from(weight.max(1))
}

#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    weight: u64,
    start: Virtual,
    finish: Virtual,
    budget_bytes: u64,
    used_bytes: u64,
    active: bool,
}

/// One level of the hierarchy. Slots are small integers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    entities: Vec<Entity>,
    /// Started, by finish.
    eligible: IndexedHeap<Virtual>,
    /// Not yet started, by start.
    future: IndexedHeap<Virtual>,
    /// With work, by weight, both ways.
    lightest: IndexedHeap<u64>,
    heaviest: IndexedHeap<Reverse<u64>>,
    in_service: Option<usize>,
    now: Virtual,
    weight_sum: u64,
}

impl Level {
    fn at(&mut self, slot: usize) -> &mut Entity {
        if slot >= self.entities.len() {
            self.entities.resize_with(slot + 1, Entity::default);
        }
        &mut self.entities[slot]
    }

    /// Whether `slot` has work or is in service.
    pub(crate) fn is_active(&self, slot: usize) -> bool {
        self.entities.get(slot).is_some_and(|entity| entity.active)
    }

    /// Entities with work, the one in service included.
    pub(crate) fn active(&self) -> usize {
        self.eligible.len() + self.future.len() + usize::from(self.in_service.is_some())
    }

    /// Whether all entities with work weigh the same.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.lightest.peek().map(|(weight, _)| weight) == self.heaviest.peek().map(|(weight, _)| weight.0)
    }

    /// Notes the weight of an entity with work, or that it has none.
    fn weigh(&mut self, slot: usize, weight: Option<u64>) {
        match weight {
            Some(weight) => {
                self.lightest.set(slot, weight);
                self.heaviest.set(slot, Reverse(weight));
            }
            None => {
                self.lightest.remove(slot);
                self.heaviest.remove(slot);
            }
        }
    }

    /// An entity without work has some: it starts now, or when its last service ended if that lies ahead.
    pub(crate) fn activate(&mut self, slot: usize, weight: u64, budget_bytes: u64) {
        let now = self.now;
        let entity = self.at(slot);
        if entity.active {
            return;
        }
        entity.start = entity.finish.max(now);
        entity.weight = weight.max(1);
        entity.active = true;
        let weight = entity.weight;
        self.weight_sum += weight;
        self.weigh(slot, Some(weight));
        self.enqueue(slot, budget_bytes);
    }

    fn enqueue(&mut self, slot: usize, budget_bytes: u64) {
        let now = self.now;
        let entity = self.at(slot);
        entity.budget_bytes = budget_bytes;
        entity.used_bytes = 0;
        entity.finish = entity.start + span(budget_bytes, entity.weight);
        let (start, finish) = (entity.start, entity.finish);
        if start <= now {
            self.eligible.set(slot, finish);
        } else {
            self.future.set(slot, start);
        }
    }

    /// Takes the next entity into service.
    pub(crate) fn pick(&mut self) -> Option<usize> {
        if self.eligible.is_empty()
            && let Some((start, _)) = self.future.peek()
        {
            self.now = self.now.max(start);
        }
        while let Some((start, slot)) = self.future.peek().filter(|(start, _)| *start <= self.now) {
            debug_assert!(start <= self.now);
            self.future.remove(slot);
            let finish = self.entities[slot].finish;
            self.eligible.set(slot, finish);
        }
        let (_, slot) = self.eligible.pop()?;
        self.in_service = Some(slot);
        Some(slot)
    }

    /// An entity with work was served, the one in service or another out of its turn.
    pub(crate) fn serve(&mut self, slot: usize, bytes: u64) {
        self.now += span(bytes, self.weight_sum);
        self.at(slot).used_bytes += bytes;
    }

    /// An entity was served past the order: it starts so much later when it has work again, or next.
    pub(crate) fn charge(&mut self, slot: usize, weight: u64, bytes: u64) {
        let now = self.now;
        let entity = self.at(slot);
        if entity.active {
            entity.used_bytes += bytes;
        } else {
            entity.finish = entity.finish.max(now) + span(bytes, weight);
        }
    }

    /// The entity that would be taken next, were the one in service done.
    pub(crate) fn next_waiting(&self) -> Option<usize> {
        let future = || self.future.peek().map(|(_, slot)| slot);
        self.eligible.peek().map(|(_, slot)| slot).or_else(future)
    }

    /// An entity that waits has no more work, for it was served out of its turn.
    pub(crate) fn leave(&mut self, slot: usize) {
        self.eligible.remove(slot);
        self.future.remove(slot);
        let entity = &mut self.entities[slot];
        entity.finish = entity.start + span(entity.used_bytes, entity.weight);
        entity.active = false;
        self.weight_sum -= entity.weight;
        self.weigh(slot, None);
    }

    /// What an entity has left of its budget.
    pub(crate) fn left_bytes_of(&self, slot: usize) -> u64 {
        self.entities.get(slot).map_or(0, |entity| entity.budget_bytes.saturating_sub(entity.used_bytes))
    }

    /// What the entity in service has left of its budget.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.in_service.map_or(0, |slot| self.left_bytes_of(slot))
    }

    /// What the entity in service has used.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.in_service.map_or(0, |slot| self.entities[slot].used_bytes)
    }

    /// Service ends, charged with `charged_bytes` if that is more than was used. With a `next` weight and budget the entity
    /// has more work and queues again, else it leaves.
    pub(crate) fn expire(&mut self, charged_bytes: u64, next: Option<(u64, u64)>) {
        let Some(slot) = self.in_service.take() else { return };
        let extra = charged_bytes.saturating_sub(self.entities[slot].used_bytes);
        self.now += span(extra, self.weight_sum);
        let entity = &mut self.entities[slot];
        entity.used_bytes += extra;
        entity.finish = entity.start + span(entity.used_bytes, entity.weight);
        let old = entity.weight;
        match next {
            Some((weight, budget_bytes)) => {
                entity.start = entity.finish;
                entity.weight = weight.max(1);
                let weight = entity.weight;
                self.weight_sum = self.weight_sum - old + weight;
                self.weigh(slot, Some(weight));
                self.enqueue(slot, budget_bytes);
            }
            None => {
                entity.active = false;
                self.weight_sum -= old;
                self.weigh(slot, None);
            }
        }
    }

    /// Forgets an entity's past, when its number goes to another flow.
    pub(crate) fn forget(&mut self, slot: usize) {
        if !self.is_active(slot) {
            *self.at(slot) = Entity::default();
        }
    }
}
