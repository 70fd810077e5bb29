//! Reads with several requests of one process under way, through io_uring. Threads would each have a queue of their own in BFQ;
//! requests of one ring come from one process, as those of a program with asynchronous I/O do.

use super::WorkloadSpec;
use super::latency::Recorder;
use super::perform::{AlignedBuffer, Cancel, PROGRESS_EVERY, Places};
use super::{Finished, Progress};
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

/// Reads what `spec` says, `spec.depth` requests at once, until it is done or cancelled. Each whole block counts when it is there.
pub(super) fn perform(
    spec: &WorkloadSpec,
    file: &OwnedFd,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Finished> {
    let mut ring = IoUring::new(spec.depth).at("make a ring for", &spec.path)?;
    let mut slots: Vec<Slot> = Vec::new();
    let (mut recorder, mut places) = (Recorder::new(), Places::new(spec));
    let started = boottime();
    let (mut ended, mut reported) = (started, started);
    let (mut asked, mut done, mut under_way) = (0, 0, 0_u32);
    let mut free: Vec<usize> = (0..spec.depth as usize).collect();
    for _ in 0..spec.depth {
        let buffer = AlignedBuffer::new(spec.block_bytes as usize);
        slots.push(Slot { buffer, offset: 0, length: 0, since: started });
    }
    progress(Progress { at: started, bytes: 0 })?;
    // From here on nothing returns early: the kernel writes into the buffers until every request is done.
    let mut failure: Option<LabError> = None;
    loop {
        let is_wanted = |asked: u64| spec.bytes.is_none_or(|bytes| asked < bytes) && !cancel.load(Ordering::Relaxed);
        while failure.is_none() && is_wanted(asked) {
            let Some(index) = free.pop() else { break };
            let slot = &mut slots[index];
            (slot.offset, slot.length, slot.since) = (places.next(), spec.block_bytes, boottime());
            let buffer = slot.buffer.bytes().as_mut_ptr();
            let read = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer, slot.length).offset(slot.offset);
            // SAFETY: the buffer holds `length` bytes, belongs to this request alone until its completion is seen, and outlives
            // it, as the function returns only when nothing is under way. The file stays open as long.
            let pushed = unsafe { ring.submission().push(&read.build().user_data(index as u64)) };
            if pushed.is_err() {
                // It has as many places as there are slots.
                failure = Some(LabError::BadPlan(format!("{}: the ring is full", spec.tenant)));
                break;
            }
            asked += u64::from(slot.length);
            under_way += 1;
        }
        if under_way == 0 {
            break;
        }
        if let Err(error) = ring.submit_and_wait(1) {
            let again = [Errno::INTR, Errno::AGAIN, Errno::BUSY].map(|errno| Some(errno.raw_os_error()));
            if !again.contains(&error.raw_os_error()) {
                // What is under way cannot be waited for, so its memory is never given back.
                slots.into_iter().for_each(std::mem::forget);
                return Err(error).at("wait for the reads from", &spec.path);
            }
        }
        let now = boottime();
        for entry in ring.completion() {
            let index = entry.user_data() as usize;
            let slot = &slots[index];
            under_way -= 1;
            free.push(index);
            match u32::try_from(entry.result()) {
                Ok(read) if read == slot.length => {
                    recorder.record(now.since(slot.since));
                    done += u64::from(read);
                }
                Ok(_) => failure = read_failed(spec, Error::from(std::io::ErrorKind::UnexpectedEof)),
                Err(_) => failure = read_failed(spec, Error::from_raw_os_error(-entry.result())),
            }
        }
        ended = now;
        if now.since(reported) >= PROGRESS_EVERY {
            reported = now;
            failure = failure.or(progress(Progress { at: now, bytes: done }).err());
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    progress(Progress { at: ended, bytes: done })?;
    Ok(Finished { started, ended, bytes: done, latency: recorder.finish(), checksum: None })
}

fn read_failed(spec: &WorkloadSpec, error: Error) -> Option<LabError> {
    Err::<(), Error>(error).at("read from", &spec.path).err()
}
