//! A worker obeys: disks and rings come and go.

use super::{
    Command, Disk, DiskMeasures, EVENT_RINGS, NewDisk, QUEUES_MAX, RingKey, RingLeft, Served, Stopping, VmTerms,
    Worker, now,
};
use crate::mapped::Memory;
use crate::ring::{Ring, RingSetup};
use rustix::event::epoll;
use std::sync::Arc;

impl Worker {
    /// Does what others asked for.
    pub(super) fn obey(&mut self) {
        self.inbox.clear_signal();
        // Nobody waits for an answer that cannot be sent.
        while let Some(command) = self.inbox.next() {
            match command {
                Command::Add(disk, answer) => {
                    let _ = answer.send(self.add_disk(disk));
                }
                Command::Start(key, setup, answer) => {
                    let _ = answer.send(self.start_ring(key, *setup));
                }
                Command::Stop(key, answer) => match self.served(key) {
                    Some(served) => {
                        served.stopping = Some(Stopping::Asked(answer));
                        self.has_stops = true;
                        self.send_all_queued(key.disk);
                    }
                    // It was never in service, or is stopped: who asks knows from where it goes on.
                    None => drop(answer),
                },
                Command::Detach(disk, answer) => self.detach(disk, answer),
                Command::SetMemory(disk, memory, answer) => {
                    self.set_memory(disk, &memory);
                    let _ = answer.send(());
                }
                Command::SetCall(key, call, answer) => {
                    if let Some(served) = self.served(key) {
                        served.ring.set_call(call);
                    }
                    let _ = answer.send(());
                }
                Command::SetDurable(disk, is_durable, answer) => {
                    self.disks.get_mut(disk).into_iter().for_each(|disk| disk.is_durable = is_durable);
                    let _ = answer.send(());
                }
                Command::SetTerms(disk, terms, answer) => {
                    self.set_terms(disk, *terms);
                    let _ = answer.send(());
                }
                Command::Measure(disk, answer) => {
                    let _ = answer.send(self.measure(disk));
                }
                Command::Remove(disk, answer) => {
                    self.remove(disk);
                    let _ = answer.send(());
                }
                Command::End(answer) => self.end(answer),
            }
        }
    }

    fn set_memory(&mut self, disk: usize, memory: &Arc<Memory>) {
        for served in self.disks.get_mut(disk).into_iter().flat_map(|disk| disk.rings.iter_mut().flatten()) {
            served.ring.set_memory(memory.clone());
        }
    }

    fn add_disk(&mut self, new: NewDisk) -> usize {
        let free = self.disks.iter().position(|disk| disk.new.image.is_none());
        let number = free.unwrap_or(self.disks.len());
        for flow in self.flows(number) {
            self.scheduler.set_flow(now(), flow, new.terms.parameters);
        }
        self.measures.add(now(), number, new.terms.contract);
        let rings = (0..new.queues.min(QUEUES_MAX)).map(|_| None).collect();
        let disk = Disk { new, rings, is_durable: true, detached: None };
        match self.disks.get_mut(number) {
            Some(place) => *place = disk,
            None => self.disks.push(disk),
        }
        number
    }

    fn set_terms(&mut self, number: usize, terms: VmTerms) {
        for flow in self.flows(number) {
            self.scheduler.set_flow(now(), flow, terms.parameters);
        }
        self.measures.set_contract(now(), number, terms.contract);
        if let Some(disk) = self.disks.get_mut(number) {
            disk.new.terms = terms;
        }
    }

    fn measure(&mut self, number: usize) -> DiskMeasures {
        let rings = self.disks.get(number).into_iter().flat_map(|disk| disk.rings.iter().flatten());
        let under_way = rings.map(|served| u64::from(served.ring.under_way())).sum();
        let taken = self.slots.taken().filter(|slot| slot.key.disk == number && slot.transfer_bytes().is_some());
        let allowed = taken.map(|slot| slot.allowed);
        let name = |other: usize| self.disks.get(other).map(|disk| disk.new.serial.as_str());
        DiskMeasures { under_way, figures: self.measures.told(now(), number, allowed, name) }
    }

    fn remove(&mut self, number: usize) {
        let is_idle = |disk: &Disk| disk.rings.iter().all(Option::is_none);
        let Some(disk) = self.disks.get_mut(number).filter(|disk| is_idle(disk)) else { return };
        disk.new.image = None;
        for flow in self.flows(number) {
            self.scheduler.remove_flow(now(), flow);
        }
    }

    fn start_ring(&mut self, key: RingKey, setup: RingSetup) -> bool {
        if self.ending.is_some() {
            return false;
        }
        let Some(place) = self.disks.get_mut(key.disk).and_then(|disk| disk.rings.get_mut(key.queue)) else {
            return false;
        };
        let Some(ring) = Ring::start(setup).filter(|_| place.is_none()) else { return false };
        // Each kick is an edge, so nobody has to read the counter. What cannot be waited for is no kick.
        let data = epoll::EventData::new_u64(EVENT_RINGS + (key.disk * QUEUES_MAX + key.queue) as u64);
        if epoll::add(&self.epoll, ring.kick(), data, epoll::EventFlags::IN | epoll::EventFlags::ET).is_err() {
            return false;
        }
        *place = Some(Served { ring, is_awake: false, stopping: None });
        // What became available before is not kicked again.
        self.wake(key);
        true
    }

    pub(super) fn served(&mut self, key: RingKey) -> Option<&mut Served> {
        self.disks.get_mut(key.disk)?.rings.get_mut(key.queue)?.as_mut()
    }

    /// Everything that the scheduler holds of a disk goes to the disk at once: a guest that stops its disk waits for it, and must not
    /// wait for anybody's turn.
    fn send_all_queued(&mut self, disk: usize) {
        for request in self.take_back(disk) {
            let number = request.id.0 as u32;
            if let Some(slot) = self.slots.get(number) {
                slot.is_scheduled = false;
            }
            self.begin(number, now());
        }
    }

    /// The front end has gone, and its guest with it, or it comes back: then it knows what was not answered.
    fn detach(&mut self, disk: usize, answer: std::sync::mpsc::Sender<Vec<RingLeft>>) {
        for request in self.take_back(disk) {
            let number = request.id.0 as u32;
            let Some((key, head)) = self.slots.get(number).map(|slot| (slot.key, slot.head)) else { continue };
            self.slots.release(number);
            self.measures.left(now(), key.disk, request.tag.unwrap_or_default());
            if let Some(served) = self.served(key) {
                served.ring.abandon(head);
            }
        }
        let Some(disk) = self.disks.get_mut(disk) else { return };
        for served in disk.rings.iter_mut().flatten() {
            served.stopping = Some(Stopping::Unasked);
        }
        disk.detached = Some((answer, Vec::new()));
        self.has_stops = true;
    }

    fn end(&mut self, answer: std::sync::mpsc::Sender<()>) {
        for number in 0..self.disks.len() {
            for served in self.disks[number].rings.iter_mut().flatten() {
                served.stopping.get_or_insert(Stopping::Unasked);
            }
            self.send_all_queued(number);
        }
        self.ending = Some(answer);
        self.has_stops = true;
    }

    fn take_back(&mut self, disk: usize) -> Vec<minerva_blocksched::Request> {
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
                let _ = answer.send(());
                true
            }
            None => false,
        }
    }
}
