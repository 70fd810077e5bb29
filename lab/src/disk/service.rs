//! The device thread: it alone owns the disk model, and makes every request take the model's service time in real time.
//!
//! FUSE threads hand requests in; beyond the model's queue depth they wait here, first come, first served, as they would
//! in a host adapter. Sleeping is a futex wait until the next completion, so the thread also wakes for a new request
//! and burns no processor.

use crate::clock::boottime;
use crate::priority::hurry;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use minerva_model::Nanos;
use minerva_sim_device::{DeviceModel, Kind, Request, Statistics, check_request};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// What a disk has done, by the model's count and by the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStatistics {
    /// The model's sums.
    pub model: Statistics,
    /// Requests under way or waiting now.
    pub requests_pending: u64,
    /// Most requests that were under way or waiting at once.
    pub requests_pending_max: u64,
    /// Requests that had to wait because the disk's own queue was full.
    pub requests_queued: u64,
    /// Requests answered.
    pub replies: u64,
    /// Sum over all answers of how much later than the model's instant they were given: what this host adds.
    pub lateness_total: Nanos,
    /// The worst of them.
    pub lateness_max: Nanos,
}

/// How to answer a request once its time has come.
pub(super) enum Answer {
    /// Bytes read from the backing file.
    Data(ReplyData, Vec<u8>),
    /// That many zeros.
    Zeros(ReplyData, usize),
    /// The write was taken.
    Written(ReplyWrite, u32),
    /// A flush is done.
    Flushed(ReplyEmpty),
}

impl Answer {
    fn give(self, zeros: &[u8]) {
        match self {
            Self::Data(reply, bytes) => reply.data(&bytes),
            // The kernel never asks for more than the mount allows; should it, a short answer is an I/O error there.
            Self::Zeros(reply, length) => reply.data(&zeros[..length.min(zeros.len())]),
            Self::Written(reply, length) => reply.written(length),
            Self::Flushed(reply) => reply.ok(),
        }
    }

    fn refuse(self) {
        match self {
            Self::Data(reply, _) | Self::Zeros(reply, _) => reply.error(Errno::EINVAL),
            Self::Written(reply, _) => reply.error(Errno::EINVAL),
            Self::Flushed(reply) => reply.error(Errno::EINVAL),
        }
    }
}

/// What the device thread is told.
pub(super) enum Message {
    /// Serve this.
    Serve { kind: Kind, offset_bytes: u64, length_bytes: u32, answer: Answer },
    /// Report.
    Statistics(Sender<DiskStatistics>),
    /// End; what is still under way is answered at once.
    Stop,
}

/// The longest read the kernel sends: 256 pages of 4 KiB is its limit for FUSE, and 4 MiB leaves room for a raised one.
pub(super) const READ_BYTES_MAX: usize = 4 << 20;

/// State of the device thread.
pub(super) struct Service {
    model: Box<dyn DeviceModel>,
    /// Requests inside the model, by tag.
    under_way: BTreeMap<u64, Answer>,
    /// Requests for which the disk has no room yet.
    waiting: VecDeque<(Request, Answer)>,
    next_tag: u64,
    statistics: DiskStatistics,
    zeros: Vec<u8>,
}

impl Service {
    pub(super) fn new(model: Box<dyn DeviceModel>) -> Self {
        Self {
            model,
            under_way: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_tag: 0,
            statistics: DiskStatistics::default(),
            zeros: vec![0; READ_BYTES_MAX],
        }
    }

    /// Serves until told to stop, or until nobody is left who could ask.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        hurry();
        // The kernel may otherwise wake us 50 us late to save power, which is a twentieth of a short request.
        // A kernel that refuses only makes the disk a little slower; the statistics show by how much.
        let _: rustix::io::Result<()> = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            let message = match self.model.next_completion() {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => messages.recv_timeout(Duration::from_nanos(due.since(boottime()).0)),
            };
            // Completions first: what arrives now must find the disk as it is now.
            self.complete_until(boottime());
            match message {
                Ok(Message::Serve { kind, offset_bytes, length_bytes, answer }) => {
                    self.accept(Request { tag: 0, kind, offset_bytes, length_bytes }, answer);
                }
                Ok(Message::Statistics(to)) => {
                    // Whoever asked may have gone.
                    let _ = to.send(self.report());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for answer in self.under_way.into_values().chain(self.waiting.into_iter().map(|(_, answer)| answer)) {
            answer.give(&self.zeros);
        }
    }

    fn report(&self) -> DiskStatistics {
        DiskStatistics { model: self.model.statistics(), requests_pending: self.pending(), ..self.statistics }
    }

    fn pending(&self) -> u64 {
        (self.under_way.len() + self.waiting.len()) as u64
    }

    fn accept(&mut self, request: Request, answer: Answer) {
        let request = Request { tag: self.next_tag, ..request };
        self.next_tag += 1;
        if check_request(self.model.capacity_bytes(), &request).is_err() {
            answer.refuse();
            return;
        }
        if self.under_way.len() < self.model.queue_depth() as usize {
            self.submit(boottime(), request, answer);
        } else {
            self.statistics.requests_queued += 1;
            self.waiting.push_back((request, answer));
        }
        self.statistics.requests_pending_max = self.statistics.requests_pending_max.max(self.pending());
    }

    fn submit(&mut self, now: Nanos, request: Request, answer: Answer) {
        self.under_way.insert(request.tag, answer);
        self.model.submit(now, request);
    }

    /// Steps through the completions one instant at a time, so that a waiting request enters the disk when its place
    /// became free, and not when this thread happened to wake.
    fn complete_until(&mut self, now: Nanos) {
        while let Some(due) = self.model.next_completion().filter(|due| *due <= now) {
            while let Some(completion) = self.model.complete(due) {
                let lateness = boottime().since(completion.at);
                self.statistics.replies += 1;
                self.statistics.lateness_total += lateness;
                self.statistics.lateness_max = self.statistics.lateness_max.max(lateness);
                if let Some(answer) = self.under_way.remove(&completion.tag) {
                    answer.give(&self.zeros);
                }
            }
            while self.under_way.len() < self.model.queue_depth() as usize {
                let Some((request, answer)) = self.waiting.pop_front() else { break };
                self.submit(due, request, answer);
            }
        }
    }
}
