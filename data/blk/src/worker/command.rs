//! What other threads ask of a worker. Each question is answered, and nobody waits for one longer than the disk takes.

use crate::failure::TellFailure;
use crate::image::Image;
use crate::mapped::Memory;
use crate::measure::ContractTerms;
use crate::request::Operation;
use crate::ring::RingSetup;
use crate::tag::TagBounds;
use minerva_blocksched::FlowParameters;
use minerva_model::{DiskFigures, Nanos};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slots::RingKey;

/// A VM disk, as a worker gets it.
pub(crate) struct NewDisk {
    /// None once the disk was removed; its number is the next one's that is added.
    pub(crate) image: Option<Arc<Image>>,
    /// What the guest sees as the disk's serial number.
    pub(crate) serial: String,
    pub(crate) terms: VmTerms,
    pub(crate) queues: usize,
    pub(crate) counters: Arc<DiskCounters>,
    /// Who is told of requests that its image fails.
    pub(crate) tell_failure: TellFailure,
}

/// What a disk is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VmTerms {
    /// What its scheduler promises it.
    pub parameters: FlowParameters,
    /// How the tags of its guest are bounded.
    pub tags: TagBounds,
    /// Its contract as its user has it; whether it is kept is measured.
    pub contract: Option<ContractTerms>,
}

/// What a disk was asked for, since the server began.
#[derive(Debug, Default)]
pub struct DiskCounters {
    /// Reads that were done.
    pub reads: AtomicU64,
    /// Bytes that they moved.
    pub read_bytes: AtomicU64,
    /// How long they took from the ring to the answer, in nanoseconds, all together.
    pub read_ns: AtomicU64,
    /// Writes and write-zeroes that were done.
    pub writes: AtomicU64,
    /// See [`DiskCounters::read_bytes`].
    pub write_bytes: AtomicU64,
    /// See [`DiskCounters::read_ns`].
    pub write_ns: AtomicU64,
    /// Flushes and discards that were done.
    pub others: AtomicU64,
    /// Requests with a tag of their own.
    pub tagged: AtomicU64,
    /// Requests that the image's file or disk failed.
    pub failed: AtomicU64,
    /// Requests that no disk could serve: malformed, outside the disk, unknown.
    pub refused: AtomicU64,
}

/// How a disk is doing now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskMeasures {
    /// Requests between their ring and their answer.
    pub under_way: u64,
    /// Times, priorities, and whether its contract was kept.
    pub figures: DiskFigures,
}

impl DiskCounters {
    /// Only the disk's worker counts, so that nobody counts in between; others read.
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Counts one request that was done.
    pub(crate) fn done(&self, operation: Operation, bytes: u64, took: Nanos) {
        let (count, of_bytes, of_ns) = match operation {
            Operation::Read { .. } => (&self.reads, &self.read_bytes, &self.read_ns),
            Operation::Write { .. } | Operation::WriteZeroes { .. } => {
                (&self.writes, &self.write_bytes, &self.write_ns)
            }
            Operation::Flush | Operation::Discard { .. } | Operation::GetId => return Self::add(&self.others, 1),
        };
        Self::add(count, 1);
        Self::add(of_bytes, bytes);
        Self::add(of_ns, took.0);
    }
}

/// Where a ring is that is not served any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingLeft {
    pub(crate) queue: usize,
    pub(crate) next_available: u16,
    /// Heads that were taken and not begun at the disk.
    pub(crate) begun: Vec<u16>,
}

pub(crate) enum Command {
    /// Takes a disk; answers with its number.
    Add(NewDisk, Sender<usize>),
    /// Serves a ring; whether it can be.
    Start(RingKey, Box<RingSetup>, Sender<bool>),
    /// Sends all that is queued of the disk past the scheduler, answers the ring's requests, and serves it no more; from where the
    /// next server goes on.
    Stop(RingKey, Sender<u16>),
    /// The front end has gone, or another server goes on with it: what is not at the disk is left to whoever serves the rings next,
    /// and what is there is waited for. Answered with where each ring is that was in service.
    Detach(usize, Sender<Vec<RingLeft>>),
    /// The guest's memory lies elsewhere now.
    SetMemory(usize, Arc<Memory>, Sender<()>),
    /// Who is told of answers.
    SetCall(RingKey, Option<File>, Sender<()>),
    /// Whether each write is to be durable when it is answered.
    SetDurable(usize, bool, Sender<()>),
    /// What a disk is promised from now on, also what of it is queued.
    SetTerms(usize, Box<VmTerms>, Sender<()>),
    /// How a disk is doing.
    Measure(usize, Sender<DiskMeasures>),
    /// A disk without rings in service is given up: its image is closed, and its number free.
    Remove(usize, Sender<()>),
    /// Stops every ring of every disk as `Stop` does, and ends the worker.
    End(Sender<()>),
}

/// How other threads reach a worker.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    inbox: Arc<Inbox>,
}

struct Inbox {
    /// None once the worker has ended.
    commands: Mutex<Option<VecDeque<Command>>>,
    signal: OwnedFd,
}

/// The worker's end. With it ends everybody's waiting.
pub(super) struct InboxReader(Arc<Inbox>);

impl WorkerHandle {
    /// A handle, and the inbox for the worker.
    pub(super) fn new() -> io::Result<(Self, InboxReader)> {
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let inbox = Arc::new(Inbox { commands: Mutex::new(Some(VecDeque::new())), signal });
        Ok((Self { inbox: Arc::clone(&inbox) }, InboxReader(inbox)))
    }

    /// Asks, and waits for the answer; none when the worker has ended.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (answer, answered) = channel();
        self.inbox.lock().as_mut()?.push_back(command(answer));
        // It fails only with the count at its greatest, when the signal is given already.
        let _ = rustix::io::write(&self.inbox.signal, &1u64.to_ne_bytes());
        answered.recv().ok()
    }
}

impl Inbox {
    /// A thread that panicked with the lock held had pushed or popped, or not.
    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<Command>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxReader {
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.0.signal.as_fd()
    }

    /// The next command, until there is none.
    pub(super) fn next(&self) -> Option<Command> {
        self.0.lock().as_mut()?.pop_front()
    }

    /// To be called before [`InboxReader::next`]: what comes later signals again.
    pub(super) fn clear_signal(&self) {
        let _ = rustix::io::read(&self.0.signal, &mut [0u8; 8]);
    }
}

impl Drop for InboxReader {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}
