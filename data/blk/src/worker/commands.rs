//! A worker obeys: disks and rings come and go.

use super::syncs::Syncs;
use super::{
    Command, Disk, DiskMeasures, EVENT_RINGS, NewDisk, QUEUES_MAX, RingKey, Served, Stopping, VmTerms, Worker, now,
};
use crate::failure::Failures;
use crate::mapped::Memory;
use crate::ring::{Ring, RingSetup};
use minerva_model::FailureFigures;
use rustix::event::epoll;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

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
                Command::Stop(key, answer) => self.stop_as_asked(key, answer),
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
                Command::Answer(answer) => {
                    let _ = answer.send(());
                }
                Command::Remove(disk, answer) => {
                    self.remove(disk);
                    let _ = answer.send(());
                }
                Command::End(answer) => self.end(answer),
            }
        }
    }

    fn stop_as_asked(&mut self, key: RingKey, answer: Sender<u16>) {
        // Where it was never in service, or is stopped, who asks knows from where it goes on.
        let Some(served) = self.served(key) else { return };
        served.stopping = Some(Stopping::Asked(answer));
        self.has_stops = true;
        self.stop(key.disk, now());
    }

    fn set_memory(&mut self, disk: usize, memory: &Arc<Memory>) {
        for served in self.disks.get_mut(disk).into_iter().flat_map(|disk| disk.rings.iter_mut().flatten()) {
            served.ring.set_memory(memory.clone());
        }
    }

    pub(super) fn add_disk(&mut self, new: NewDisk) -> usize {
        let free = self.disks.iter().position(|disk| disk.new.image.is_none());
        let number = free.unwrap_or(self.disks.len());
        for flow in self.flows(number) {
            self.scheduler.set_flow(now(), flow, new.terms.parameters);
        }
        self.measures.add(now(), number, new.terms.contract);
        let rings = (0..new.queues.min(QUEUES_MAX)).map(|_| None).collect();
        let is_buffered = new.image.as_ref().is_some_and(|image| !image.is_direct());
        let disk = Disk {
            new,
            rings,
            failures: Failures::default(),
            syncs: is_buffered.then(Syncs::default),
            unearned_bytes: 0,
            drain_at: None,
            held_until: None,
            is_durable: true,
            detached: None,
        };
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
        let mut figures = self.measures.told(now(), number, allowed, name);
        let last = self.disks.get(number).and_then(|disk| disk.failures.last());
        figures.failure = last.map(|(failure, at)| FailureFigures {
            errno: failure.errno(),
            ago: now().since(at),
            why: failure.to_string(),
        });
        DiskMeasures { under_way, figures }
    }

    fn remove(&mut self, number: usize) {
        let is_idle = |disk: &Disk| disk.rings.iter().all(Option::is_none);
        let Some(disk) = self.disks.get_mut(number).filter(|disk| is_idle(disk)) else { return };
        disk.new.image = None;
        for flow in self.flows(number) {
            self.scheduler.remove_flow(now(), flow);
        }
    }

    pub(super) fn start_ring(&mut self, key: RingKey, setup: RingSetup) -> bool {
        if self.ending.is_some() {
            return false;
        }
        let Some(disk) = self.disks.get_mut(key.disk) else { return false };
        // Its front end stops no more of it.
        disk.held_until = None;
        let Some(place) = disk.rings.get_mut(key.queue) else { return false };
        let signaller = Rc::clone(&self.signaller);
        let Some(ring) = Ring::start(setup, signaller).filter(|_| place.is_none()) else { return false };
        // Each kick is an edge, so nobody has to read the counter. What cannot be waited for is no kick.
        let data = epoll::EventData::new_u64(EVENT_RINGS + (key.disk * QUEUES_MAX + key.queue) as u64);
        if epoll::add(&self.epoll, ring.kick(), data, epoll::EventFlags::IN | epoll::EventFlags::ET).is_err() {
            return false;
        }
        *place = Some(Served { ring, is_awake: false, early: 0, stopping: None });
        // What became available before is not kicked again.
        self.wake(key);
        true
    }

    pub(super) fn served(&mut self, key: RingKey) -> Option<&mut Served> {
        self.disks.get_mut(key.disk)?.rings.get_mut(key.queue)?.as_mut()
    }
}
