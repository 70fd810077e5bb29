//! From the scheduler to the disk, and back to the ring.

use super::serve::{STATUS_FAILED, STATUS_OK};
use super::{DiskCounters, Worker};
use crate::measure::Finished;
use crate::request::Operation;
use crate::transfer::{Done, Job};
use minerva_blocksched::Dispatch;
use minerva_model::Nanos;

impl Worker {
    /// Sends as many requests as the scheduler wants at the disk; the instant at which it wants to be asked again.
    pub(super) fn dispatch(&mut self, now: Nanos) -> Option<Nanos> {
        while self.at_disk < self.depth {
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

    /// Sends one request to the disk.
    pub(super) fn begin(&mut self, number: u32, now: Nanos) {
        let Some(slot) = self.slots.get(number) else { return };
        slot.sent = now;
        slot.begun = self.measures.begin(slot.sent);
        let Some(image) = &self.disks[slot.key.disk].new.image else { return };
        slot.prepare(image.memory_alignment(), image.geometry().block_bytes);
        self.give(number);
    }

    /// Gives the kernel what is left to do of a request.
    fn give(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let disk = &self.disks[slot.key.disk];
        let Some(image) = &disk.new.image else { return };
        let job = Job { number, file: image.descriptor(), action: slot.action(disk.is_durable) };
        // SAFETY: the disk has its image as long as it has rings, and a ring stays until what was taken from it is done; the slot
        // has the list of pieces and holds the memory that they name until it is released, which is when the job is done.
        unsafe { self.transfer.begin(job) };
    }

    /// A job is done: the rest of the request follows, or its answer.
    pub(super) fn complete(&mut self, done: Done, now: Nanos) {
        let Some(slot) = self.slots.get(done.number) else { return };
        let is_transfer =
            slot.data_bytes() > 0 && (slot.is_zeroing() || !matches!(slot.operation, Operation::WriteZeroes { .. }));
        let is_good = match -done.result {
            // Nothing moved: the image ends here, because somebody made it shorter.
            0 if is_transfer => false,
            moved @ ..0 if is_transfer => {
                if !slot.moved(moved.unsigned_abs() as usize) {
                    return self.give(done.number);
                }
                slot.deliver();
                true
            }
            ..=0 => true,
            libc::EINTR | libc::EAGAIN => return self.give(done.number),
            libc::EOPNOTSUPP => match slot.operation {
                // A discard is advice.
                Operation::Discard { .. } => true,
                Operation::WriteZeroes { length_bytes, .. } if !slot.is_zeroing() => {
                    slot.prepare_zeroes(length_bytes);
                    return self.give(done.number);
                }
                _ => false,
            },
            _ => false,
        };
        self.finish(done.number, is_good, now);
    }

    fn finish(&mut self, number: u32, is_good: bool, done_at: Nanos) {
        let Some(slot) = self.slots.get(number) else { return };
        let (key, head, status, request) = (slot.key, slot.head, slot.status, slot.request);
        let (is_scheduled, data_bytes) = (slot.is_scheduled, slot.data_bytes());
        let (operation, sent) = (slot.operation, slot.sent);
        let finished = Finished {
            tag: request.tag.unwrap_or_default(),
            is_given: slot.is_tagged,
            is_good,
            transfer_bytes: slot.transfer_bytes(),
            took: Nanos::ZERO,
            allowed: slot.allowed,
            begun: slot.begun,
        };
        let is_read = matches!(operation, Operation::Read { .. });
        self.slots.release(number);
        if let Some(log) = &mut self.log {
            log.note(&self.disks[key.disk].new.serial, &request, self.has_tags, (sent, done_at), is_good);
        }
        if is_scheduled {
            self.at_disk = self.at_disk.saturating_sub(1);
            self.scheduler.complete(done_at, &request);
        }
        let took = done_at.since(request.arrived);
        self.measures.done(done_at, key.disk, &Finished { took, ..finished });
        let counters = &self.disks[key.disk].new.counters;
        match is_good {
            true => counters.done(operation, data_bytes, took),
            false => DiskCounters::add(&counters.failed, 1),
        }
        let written = if is_read && is_good { request.length_bytes + 1 } else { 1 };
        self.answer(key, head, Some(status), if is_good { STATUS_OK } else { STATUS_FAILED }, written);
    }
}
