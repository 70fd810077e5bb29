//! What other threads ask of a worker. Each question is answered, and nobody waits for one longer than the disk takes; who must not wait for
//! a disk either waits for a second.

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
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::slots::RingKey;

/// A worker that is not held up looks at what it is told within microseconds.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

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
    /// Whether it obeys at all.
    Answer(Sender<()>),
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

/// Why a worker does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It has ended.
    Ended,
    /// The kernel holds it up, as of a disk that does not answer. It obeys later.
    Late,
}

struct Inbox {
    /// None once the worker has ended.
    commands: Mutex<Option<Commands>>,
    signal: OwnedFd,
}

#[derive(Default)]
struct Commands {
    queue: VecDeque<Command>,
    /// Somebody waited in vain, and the worker has taken nothing since.
    is_late: bool,
}

/// The worker's end. With it ends everybody's waiting.
pub(super) struct InboxReader(Arc<Inbox>);

impl WorkerHandle {
    /// A handle, and the inbox for the worker.
    pub(super) fn new() -> io::Result<(Self, InboxReader)> {
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let inbox = Arc::new(Inbox { commands: Mutex::new(Some(Commands::default())), signal });
        Ok((Self { inbox: Arc::clone(&inbox) }, InboxReader(inbox)))
    }

    /// Asks, and waits for the answer; none when the worker has ended.
    pub(crate) fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        self.tell(command)?.recv().ok()
    }

    /// The same, but for so long only. One for which somebody waited in vain is not waited for before it obeys again.
    pub(crate) fn ask_soon<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, Unanswered> {
        let patience = if self.is_late() { Duration::ZERO } else { ANSWER_PATIENCE };
        let answered = self.tell(command).ok_or(Unanswered::Ended)?;
        answered.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => Unanswered::Ended,
            RecvTimeoutError::Timeout => {
                // What is not in the queue any more is being done.
                self.inbox.lock().iter_mut().for_each(|commands| commands.is_late = !commands.queue.is_empty());
                Unanswered::Late
            }
        })
    }

    /// Whether somebody waited for it in vain, and it has obeyed nothing since.
    pub(crate) fn is_late(&self) -> bool {
        self.inbox.lock().as_ref().is_some_and(|commands| commands.is_late)
    }

    /// Whether it does not answer in time. It is not asked again before it has obeyed: more questions would only be kept for it.
    pub(crate) fn is_held_up(&self) -> bool {
        self.is_late() || self.ask_soon(Command::Answer) == Err(Unanswered::Late)
    }

    fn tell<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Option<Receiver<T>> {
        let (answer, answered) = channel();
        self.inbox.lock().as_mut()?.queue.push_back(command(answer));
        // It fails only with the count at its greatest, when the signal is given already.
        let _ = rustix::io::write(&self.inbox.signal, &1u64.to_ne_bytes());
        Some(answered)
    }
}

impl Inbox {
    /// A thread that panicked with the lock held had pushed or popped, or not.
    fn lock(&self) -> MutexGuard<'_, Option<Commands>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxReader {
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.0.signal.as_fd()
    }

    /// The next command, until there is none.
    pub(super) fn next(&self) -> Option<Command> {
        let mut commands = self.0.lock();
        let commands = commands.as_mut()?;
        commands.is_late = false;
        commands.queue.pop_front()
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

#[cfg(test)]
mod tests {
    use super::{Command, Unanswered, WorkerHandle};

    #[test]
    fn a_worker_that_is_held_up_is_waited_for_once_and_obeys_later() {
        let (handle, inbox) = WorkerHandle::new().unwrap();
        let remove = |number| handle.ask_soon(|answer| Command::Remove(number, answer));
        assert!(!handle.is_late());
        assert_eq!((remove(1), handle.is_late()), (Err(Unanswered::Late), true));
        // Nobody waits for it any more, and nothing is lost.
        assert_eq!(remove(2), Err(Unanswered::Late));
        let numbers = std::iter::from_fn(|| inbox.next()).map(|command| match command {
            Command::Remove(number, _) => number,
            _ => panic!("nothing else was asked"),
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
        assert!(!handle.is_late(), "it obeys again");
        drop(inbox);
        assert_eq!(remove(3), Err(Unanswered::Ended));
    }

    #[test]
    fn a_worker_that_nobody_has_asked_yet_is_known_to_be_held_up_and_is_asked_once() {
        let (handle, inbox) = WorkerHandle::new().unwrap();
        assert!([(); 3].iter().all(|()| handle.is_held_up()));
        assert!(matches!((inbox.next(), inbox.next()), (Some(Command::Answer(_)), None)));
        let answer_one = move || {
            let asked = std::iter::repeat_with(|| inbox.next()).flatten().next();
            if let Some(Command::Answer(answer)) = asked {
                answer.send(()).unwrap();
            }
        };
        let answering = std::thread::spawn(answer_one);
        assert!(!handle.is_held_up());
        answering.join().unwrap();
        assert!(!handle.is_held_up(), "it has ended");
    }
}
