//! A worker lets go: rings that are stopped, disks whose front ends go, and its own end.
//!
//! A guest that stops its disk waits until it is done, so what is queued goes past the scheduler. That is charged to its flow, and more than
//! a few requests go past it only after as many bytes were served in turn: no guest gains by stopping its disk again and again.

use super::{Disk, RingLeft, Served, Stopping, Worker, now};
use minerva_blocksched::{Kind, Request};
use minerva_model::Nanos;
use rustix::event::epoll;
use std::sync::mpsc::Sender;

/// So long a disk that has to earn what went past the scheduler waits for its turn before it is drained all the same: all its rings
/// together, as nothing is taken from those that its front end stops next, for as long again.
const STOP_PATIENCE: Nanos = Nanos::SECOND;
/// So many requests are taken from its rings meanwhile.
const UNEARNED_MAX: usize = 8;

/// What the shortest request is worth.
const EARNED_MIN: u64 = 4096;

/// What a request is worth when it is earned: none is too short to count, and a discard, of which the disk moves nothing and for which
/// schedulers charge as little, is worth no more.
pub(super) fn earned_bytes(request: &Request) -> u64 {
    match request.kind {
        Kind::Discard => EARNED_MIN,
        _ => u64::from(request.length_bytes).max(EARNED_MIN),
    }
}

impl Worker {
    /// A ring of a disk is being stopped: its guest waits for that, and must not wait for anybody's turn, unless it did not yet earn what
    /// went past the scheduler before.
    pub(super) fn stop(&mut self, number: usize, now: Nanos) {
        let Some(disk) = self.disks.get_mut(number) else { return };
        if disk.unearned_bytes > 0 {
            let drain_at = *disk.drain_at.get_or_insert(now + STOP_PATIENCE);
            disk.held_until = Some(drain_at + STOP_PATIENCE);
        } else {
            self.drain(number, now);
        }
    }

    /// Everything that the scheduler holds of a disk goes to the disk past it, some at a time, and is charged.
    fn drain(&mut self, number: usize, now: Nanos) {
        for request in self.take_back(number) {
            self.drain_next(request.id.0 as u32, now);
        }
        self.disks[number].drain_at = None;
    }

    /// The same of one request, or part of one, that the scheduler does not hold.
    pub(super) fn drain_next(&mut self, number: u32, now: Nanos) {
        let Some(slot) = self.slots.get(number) else { return };
        slot.is_scheduled = false;
        self.scheduler.charge(now, &slot.request);
        self.disks[slot.key.disk].unearned_bytes += earned_bytes(&slot.request);
        self.draining.push_back(number);
    }

    /// Drains disks that waited for their turn for long enough, and takes from those again that were held for it; when that is next.
    pub(super) fn drain_overdue(&mut self, now: Nanos) -> Option<Nanos> {
        if !self.has_stops {
            return None;
        }
        for number in 0..self.disks.len() {
            if self.disks[number].drain_at.is_some_and(|at| at <= now) {
                self.drain(number, now);
            }
            self.disks[number].held_until.take_if(|until| *until <= now);
        }
        self.disks.iter().flat_map(|disk| [disk.drain_at, disk.held_until]).flatten().min()
    }

    /// Whether no more is taken from a disk's rings for now: what is taken could go past the scheduler when they are stopped, and of
    /// that it has some to earn yet.
    pub(super) fn is_held(&self, number: usize) -> bool {
        let under_way = |disk: &Disk| {
            let rings = disk.rings.iter().flatten();
            rings.map(|served| usize::from(served.ring.under_way())).sum::<usize>()
        };
        let is_held =
            |disk: &Disk| disk.held_until.is_some() || disk.unearned_bytes > 0 && under_way(disk) >= UNEARNED_MAX;
        self.disks.get(number).is_some_and(is_held)
    }

    /// The front end has gone, and its guest with it, or it comes back: then it knows what was not answered.
    pub(super) fn detach(&mut self, disk: usize, answer: Sender<Vec<RingLeft>>) {
        for request in self.take_back(disk) {
            self.leave_to_next(request.id.0 as u32);
        }
        for number in std::mem::take(&mut self.draining) {
            match self.slots.get(number).is_some_and(|slot| slot.key.disk == disk) {
                true => self.leave_to_next(number),
                false => self.draining.push_back(number),
            }
        }
        let Some(disk) = self.disks.get_mut(disk) else { return };
        for served in disk.rings.iter_mut().flatten() {
            served.stopping = Some(Stopping::Unasked);
        }
        disk.detached = Some((answer, Vec::new()));
        self.has_stops = true;
    }

    /// A request that is not at the disk is done by whoever serves its ring next, from its beginning.
    pub(super) fn leave_to_next(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let (key, head, tag) = (slot.key, slot.head, slot.request.tag.unwrap_or_default());
        self.slots.release(number);
        self.measures.left(now(), key.disk, tag);
        if let Some(served) = self.served(key) {
            served.ring.abandon(head);
        }
    }

    pub(super) fn end(&mut self, answer: Sender<()>) {
        for number in 0..self.disks.len() {
            for served in self.disks[number].rings.iter_mut().flatten() {
                served.stopping.get_or_insert(Stopping::Unasked);
            }
            self.drain(number, now());
        }
        self.ending = Some(answer);
        self.has_stops = true;
    }

    fn take_back(&mut self, disk: usize) -> Vec<Request> {
        let mut cancelled = std::mem::take(&mut self.cancelled);
        for flow in self.flows(disk) {
            self.scheduler.cancel(now(), flow, &mut cancelled);
        }
        cancelled.sort_by_key(|request| (request.arrived, request.id));
        cancelled
    }

    /// Rings of which nothing is under way any more leave service, and who asked for that is told.
    pub(super) fn end_stops(&mut self) {
        if !std::mem::take(&mut self.has_stops) {
            return;
        }
        for disk in &mut self.disks {
            for (queue, place) in disk.rings.iter_mut().enumerate() {
                let is_over = |served: &mut Served| served.stopping.is_some() && served.ring.under_way() == 0;
                let Some(mut served) = place.take_if(is_over) else {
                    self.has_stops |= place.as_ref().is_some_and(|served| served.stopping.is_some());
                    continue;
                };
                // A front end that closed its counter has taken it from the set itself.
                let _ = epoll::delete(&self.epoll, served.ring.kick());
                let next_available = served.ring.next_available();
                if let Some((_, left)) = &mut disk.detached {
                    left.push(RingLeft { queue, next_available, begun: served.ring.abandoned() });
                }
                if let Some(Stopping::Asked(answer)) = served.stopping {
                    let _ = answer.send(next_available);
                }
            }
            if disk.rings.iter().flatten().all(|served| served.stopping.is_none()) {
                disk.drain_at = None;
            }
            self.has_stops |= disk.held_until.is_some();
            if disk.rings.iter().all(Option::is_none)
                && let Some((answer, left)) = disk.detached.take()
            {
                let _ = answer.send(left);
            }
        }
    }

    /// Whether the worker was told to end, and nothing is left to do.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.ending.is_none() {
            return false;
        }
        let is_idle = self.disks.iter().all(|disk| disk.rings.iter().all(Option::is_none));
        match self.ending.take_if(|_| is_idle) {
            Some(answer) => {
                // What another worker writes to the log comes behind it.
                self.log = None;
                let _ = answer.send(());
                true
            }
            None => false,
        }
    }
}
