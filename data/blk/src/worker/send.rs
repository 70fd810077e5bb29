//! From the scheduler to the disk, and back to the ring.

use super::given::Alignment;
use super::serve::{STATUS_FAILED, STATUS_OK};
use super::slots::Slot;
use super::stops::earned_bytes;
use super::{BESIDE_MAX, DiskCounters, RingKey, Worker};
use crate::failure::Failure;
use crate::measure::Finished;
use crate::request::Operation;
use crate::transfer::{Done, Job};
use minerva_blocksched::{Dispatch, Request};
use minerva_model::Nanos;

/// What came of a job.
enum Outcome {
    /// There is more to do of this part.
    GoesOn,
    /// This part is done.
    Done,
    Failed(Failure),
}

impl Worker {
    /// Sends as many requests as the scheduler wants at the disk, and of disks that are being stopped some beside them; the instant at
    /// which the scheduler wants to be asked again.
    pub(super) fn dispatch(&mut self, now: Nanos) -> Option<Nanos> {
        let wake = self.dispatch_in_turn(now);
        while self.beside < self.beside_max()
            && let Some(number) = self.draining.pop_front()
        {
            self.beside += 1;
            self.begin(number, now);
        }
        wake
    }

    fn dispatch_in_turn(&mut self, now: Nanos) -> Option<Nanos> {
        while self.at_disk < self.places {
            match self.scheduler.next(now) {
                Dispatch::Send(request) => {
                    self.at_disk += 1;
                    self.begin(request.id.0 as u32, now);
                }
                Dispatch::WaitUntil(instant) => return Some(instant),
                Dispatch::Idle => return None,
            }
        }
        None
    }

    /// A disk that is being stopped has no more of the host's disk than its guest would have by keeping a few requests there: a guest that
    /// stops its disk again and again takes it from nobody. At the end of the worker everybody is being stopped.
    fn beside_max(&self) -> u32 {
        if self.ending.is_some() { BESIDE_MAX } else { (self.depth / 4).clamp(1, BESIDE_MAX) }
    }

    /// Sends one request to the disk.
    fn begin(&mut self, number: u32, now: Nanos) {
        let begun = self.measures.begin(now);
        let Some(slot) = self.slots.get(number) else { return };
        slot.begun = begun;
        let is_first = slot.request.offset_bytes == slot.whole.offset_bytes;
        if is_first {
            slot.sent = now;
        }
        let disk = &self.disks[slot.key.disk];
        if let Some(syncs) = &disk.syncs {
            if slot.is_sync() {
                return self.sync(number);
            }
            if is_first {
                slot.syncs_failed = syncs.failed();
            }
        }
        let Some(image) = &disk.new.image else { return };
        let to = Alignment { memory: image.memory_alignment(), block_bytes: image.geometry().block_bytes };
        self.slots.prepare(number, to);
        self.give(number);
    }

    /// Gives the kernel what is left to do of a request.
    pub(super) fn give(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let disk = &self.disks[slot.key.disk];
        let Some(image) = &disk.new.image else { return };
        let (file, may_hang) = (image.descriptor(), image.may_hang());
        let job = Job { number, file, may_hang, action: slot.action(disk.is_durable && disk.syncs.is_none()) };
        // SAFETY: the disk has its image as long as it has rings, and a ring stays until what was taken from it is done; the slot
        // has the list of pieces and holds the memory that they name until it is released, which is when the job is done.
        unsafe { self.transfer.begin(job) };
    }

    /// A job is done: the rest of the request follows, or its answer.
    pub(super) fn complete(&mut self, done: Done, now: Nanos) {
        let Some(slot) = self.slots.get(done.number) else { return };
        let disk = &mut self.disks[slot.key.disk];
        let is_block = disk.new.image.as_ref().is_some_and(|image| image.is_block_device());
        let failure = match outcome(slot, done.result, is_block) {
            Outcome::GoesOn => return self.give(done.number),
            Outcome::Done => None,
            Outcome::Failed(failure) => Some(failure),
        };
        if let Some(syncs) = &mut disk.syncs {
            if slot.is_sync() {
                let disk = slot.key.disk;
                return self.end_sync(disk, failure, now);
            }
            if !matches!(slot.operation, Operation::Read { .. }) {
                syncs.wrote(slot.syncs_failed);
            }
        }
        match failure {
            None => self.end_part(done.number, now),
            Some(failure) => self.finish(done.number, Some(failure), now),
        }
    }

    /// A part is done: the next one waits for its turn, or the request is answered.
    pub(super) fn end_part(&mut self, number: u32, now: Nanos) {
        let Some(slot) = self.slots.get(number) else { return };
        let (key, disk) = (slot.key, &self.disks[slot.key.disk]);
        if !slot.has_next_part() && slot.must_sync(disk.is_durable, disk.syncs.is_some()) {
            slot.begin_to_sync();
            return self.sync(number);
        }
        let (done, begun, is_scheduled) = (slot.request, slot.begun, slot.is_scheduled);
        let Some(next) = slot.next_part(now) else { return self.finish(number, None, now) };
        self.slots.give_back(number);
        self.leave_disk(key.disk, is_scheduled, &done, now);
        self.measures.part_done(now, key.disk, begun);
        let disk = &self.disks[key.disk];
        let is_stopping = disk.rings[key.queue].as_ref().is_none_or(|served| served.stopping.is_some());
        let is_drained = is_stopping && disk.drain_at.is_none();
        if disk.detached.is_some() {
            self.leave_to_next(number);
        } else if is_drained || !is_scheduled {
            self.drain_next(number, now);
        } else {
            self.scheduler.add(now, next);
        }
    }

    /// A request, or a part of one, is not at the disk any more.
    fn leave_disk(&mut self, disk: usize, is_scheduled: bool, request: &Request, now: Nanos) {
        if is_scheduled {
            let unearned = &mut self.disks[disk].unearned_bytes;
            *unearned = unearned.saturating_sub(earned_bytes(request));
            self.at_disk = self.at_disk.saturating_sub(1);
            self.scheduler.complete(now, request);
        } else {
            self.beside = self.beside.saturating_sub(1);
        }
    }

    pub(super) fn finish(&mut self, number: u32, failure: Option<Failure>, done_at: Nanos) {
        let Some(slot) = self.slots.get(number) else { return };
        let (key, head, status, whole) = (slot.key, slot.head, slot.status, slot.whole);
        let (part, is_scheduled, data_bytes) = (slot.request, slot.is_scheduled, slot.data_bytes());
        let (operation, sent) = (slot.operation, slot.sent);
        let is_good = failure.is_none();
        let took = done_at.since(whole.arrived);
        let finished = Finished {
            tag: whole.tag.unwrap_or_default(),
            is_given: slot.is_tagged,
            is_good,
            transfer_bytes: slot.transfer_bytes(),
            took,
            allowed: slot.allowed,
            begun: slot.begun,
        };
        self.slots.release(number);
        if let Some(log) = &mut self.log {
            log.note(&self.disks[key.disk].new.serial, &whole, self.has_tags, (sent, done_at), is_good);
        }
        self.leave_disk(key.disk, is_scheduled, &part, done_at);
        self.measures.done(done_at, key.disk, &finished);
        match failure {
            None => self.disks[key.disk].new.counters.done(operation, data_bytes, took),
            Some(failure) => self.note_failure(key, failure, done_at),
        }
        let is_read = matches!(operation, Operation::Read { .. });
        let written = if is_read && is_good { whole.length_bytes + 1 } else { 1 };
        self.answer(key, head, Some(status), if is_good { STATUS_OK } else { STATUS_FAILED }, written);
    }

    fn note_failure(&mut self, key: RingKey, failure: Failure, now: Nanos) {
        let disk = &mut self.disks[key.disk];
        DiskCounters::add(&disk.new.counters.failed, 1);
        if disk.failures.note(now, failure) {
            let (name, tell) = (disk.new.serial.clone(), disk.new.tell_failure);
            // By a thread of its own: whoever reads the log may be slow, and then no disk is to wait for it.
            let _ = std::thread::Builder::new().name("blk-tell".to_owned()).spawn(move || tell(&name, failure));
        }
    }
}

/// What a result means; `is_block` of a block device.
fn outcome(slot: &mut Slot, result: i32, is_block: bool) -> Outcome {
    match -result {
        // Nothing moved: the image ends here.
        0 if slot.is_transfer() => Outcome::Failed(Failure::Ended),
        moved @ ..0 if slot.is_transfer() => {
            if slot.moved(moved.unsigned_abs() as usize) {
                Outcome::Done
            } else {
                Outcome::GoesOn
            }
        }
        ..=0 => Outcome::Done,
        libc::EINTR | libc::EAGAIN => Outcome::GoesOn,
        // Holes in a block device are zeroes: a disk can have TRIM and not be able to zero.
        libc::EOPNOTSUPP if is_block && slot.begin_to_trim() => Outcome::GoesOn,
        // A discard is advice: neither disk nor kernel, nor this process's filter, has to know it.
        libc::EOPNOTSUPP | libc::EINVAL | libc::EPERM if matches!(slot.operation, Operation::Discard { .. }) => {
            Outcome::Done
        }
        libc::EOPNOTSUPP if slot.begin_to_zero() => Outcome::GoesOn,
        errno => Outcome::Failed(Failure::Error(errno)),
    }
}
