//! Reads and writes with several requests of one process under way, through io_uring. Threads would each have a queue of their own in BFQ;
//! requests of one ring come from one process, as those of a program with asynchronous I/O do.

use super::buffer::AlignedBuffer;
use super::latency::Recorder;
use super::offsets::Offsets;
use super::{Cancel, Finished, PROGRESS_EVERY, Progress, WorkloadSpec};
use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use io_uring::{IoUring, opcode, types};
use minerva_model::Nanos;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::io::Error;
use std::sync::atomic::Ordering;

/// One place in the ring: its memory, and since when its request is under way.
struct Slot {
    buffer: AlignedBuffer,
    offset: u64,
    length: u32,
    since: Nanos,
}

/// The ring, and what is under way in it.
struct Requests<'a> {
    spec: &'a WorkloadSpec,
    file: &'a OwnedFd,
    ring: IoUring,
    slots: Vec<Slot>,
    /// Indices of slots without a request.
    free: Vec<usize>,
    under_way: u32,
    places: Offsets,
    recorder: Recorder,
    /// Bytes asked for, and those that were moved.
    asked: u64,
    done: u64,
}

/// Reads or writes what `spec` says, `spec.depth` requests at once, until it is done or cancelled. Each whole block counts when it is
/// done.
pub(super) fn perform(
    spec: &WorkloadSpec,
    file: &OwnedFd,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Finished> {
    let mut requests = Requests::new(spec, file)?;
    let started = boottime();
    let (mut ended, mut reported) = (started, started);
    progress(Progress { at: started, bytes: 0 })?;
    // From here on nothing returns early: the kernel writes into the buffers until every request is done.
    let mut failure: Option<LabError> = None;
    loop {
        if failure.is_none() {
            failure = requests.fill(cancel).err();
        }
        if requests.under_way == 0 {
            break;
        }
        if let Err(error) = requests.wait() {
            requests.abandon();
            return Err(error);
        }
        let now = boottime();
        failure = requests.take_completed(now).err().or(failure);
        ended = now;
        if now.since(reported) >= PROGRESS_EVERY {
            reported = now;
            failure = failure.or(progress(Progress { at: now, bytes: requests.done }).err());
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    progress(Progress { at: ended, bytes: requests.done })?;
    Ok(Finished { started, ended, bytes: requests.done, latency: requests.recorder.finish(), checksum: None })
}

impl<'a> Requests<'a> {
    fn new(spec: &'a WorkloadSpec, file: &'a OwnedFd) -> Result<Self> {
        let slot = |_| {
            let buffer = AlignedBuffer::new(spec.block_bytes as usize);
            Slot { buffer, offset: 0, length: 0, since: Nanos::ZERO }
        };
        Ok(Self {
            spec,
            file,
            ring: IoUring::new(spec.depth).at("make a ring for", &spec.path)?,
            slots: (0..spec.depth).map(slot).collect(),
            free: (0..spec.depth as usize).collect(),
            under_way: 0,
            places: Offsets::new(spec),
            recorder: Recorder::new(),
            asked: 0,
            done: 0,
        })
    }

    /// Gives every free slot a request, as long as more is wanted.
    fn fill(&mut self, cancel: &Cancel) -> Result<()> {
        while self.spec.bytes.is_none_or(|bytes| self.asked < bytes) && !cancel.load(Ordering::Relaxed) {
            let Some(index) = self.free.pop() else { break };
            let slot = &mut self.slots[index];
            (slot.offset, slot.length, slot.since) = (self.places.next(), self.spec.block_bytes, boottime());
            let (buffer, file) = (slot.buffer.bytes().as_mut_ptr(), types::Fd(self.file.as_raw_fd()));
            let entry = match self.spec.access.is_write() {
                true => opcode::Write::new(file, buffer, slot.length).offset(slot.offset).build(),
                false => opcode::Read::new(file, buffer, slot.length).offset(slot.offset).build(),
            };
            // SAFETY: the buffer holds `length` bytes, belongs to this request alone until its completion is seen, and outlives
            // it, as `perform` returns only when nothing is under way or the buffers were abandoned. The file stays open as long.
            let pushed = unsafe { self.ring.submission().push(&entry.user_data(index as u64)) };
            if pushed.is_err() {
                // It has as many places as there are slots.
                return Err(LabError::BadPlan(format!("{}: the ring is full", self.spec.tenant)));
            }
            self.asked += u64::from(slot.length);
            self.under_way += 1;
        }
        Ok(())
    }

    /// Hands over what is new and waits for a completion, unless it is to be tried again.
    fn wait(&mut self) -> Result<()> {
        let Err(error) = self.ring.submit_and_wait(1) else { return Ok(()) };
        let again = [Errno::INTR, Errno::AGAIN, Errno::BUSY].map(|errno| Some(errno.raw_os_error()));
        if again.contains(&error.raw_os_error()) {
            Ok(())
        } else {
            Err(error).at("wait for the requests to", &self.spec.path)
        }
    }

    /// What is under way cannot be waited for, so its memory is never given back.
    fn abandon(self) {
        self.slots.into_iter().for_each(std::mem::forget);
    }

    /// Counts what was done by `now`; the error is that of the last request that failed.
    fn take_completed(&mut self, now: Nanos) -> Result<()> {
        let mut outcome = Ok(());
        for entry in self.ring.completion() {
            let index = entry.user_data() as usize;
            let slot = &self.slots[index];
            self.under_way -= 1;
            self.free.push(index);
            match u32::try_from(entry.result()) {
                Ok(moved) if moved == slot.length => {
                    self.recorder.record(now.since(slot.since));
                    self.done += u64::from(moved);
                }
                Ok(_) => outcome = Err(Error::from(std::io::ErrorKind::UnexpectedEof)),
                Err(_) => outcome = Err(Error::from_raw_os_error(-entry.result())),
            }
        }
        outcome.at(if self.spec.access.is_write() { "write to" } else { "read from" }, &self.spec.path)
    }
}
