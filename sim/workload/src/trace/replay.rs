//! A process that does what a trace says.

use super::error::TraceError;
use super::reader::TraceReader;
use super::record::{Faults, Record};
use crate::{IoRequest, Source, Step};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::sync::{Arc, Mutex, PoisonError};

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At the trace's instants, whatever completes, `speed` times as fast.
    Open {
        /// Above 0; 1 is as it was taken.
        speed: f64,
    },
    /// As fast as possible with up to so many outstanding.
    Closed {
        /// Outstanding at most.
        depth: u32,
    },
}

/// What to do with addresses that the disk does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Stop with an error.
    #[default]
    Refuse,
    /// Fold them onto the disk: neighbours stay neighbours, and requests keep their alignment to 512 bytes.
    Fold,
}

/// How to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayOptions {
    /// When requests are made.
    pub pace: Pace,
    /// Only this volume; absent: all of them, at their own addresses on the one disk.
    pub volume: Option<u32>,
    /// The disk's size.
    pub capacity_bytes: u64,
    /// What to do with addresses past it.
    pub addresses: Addresses,
    /// The process waits for its writes. A trace does not say; one that was taken below a page cache holds both sorts.
    pub sync_writes: bool,
}

/// What a replay has done so far.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Requests made.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests whose address was folded.
    pub folded: u64,
    /// What was wrong with the trace.
    pub faults: Faults,
    /// The whole trace was made.
    pub completed: bool,
    /// Why it stopped before its end.
    pub error: Option<Arc<TraceError>>,
}

/// Replays a trace. A [`Source`] has no way to say that something failed, so that is found in [`TraceSource::replayed`].
pub struct TraceSource {
    trace: TraceReader,
    options: ReplayOptions,
    next: Option<Record>,
    outstanding: u32,
    started: Option<Nanos>,
    done: Replayed,
    shared: Arc<Mutex<Replayed>>,
    ended: bool,
}

impl TraceSource {
    /// A process that replays what is left of `trace`. A speed that is not above 0 counts as 1.
    pub fn new(trace: TraceReader, options: ReplayOptions) -> Self {
        Self {
            trace,
            options,
            next: None,
            outstanding: 0,
            started: None,
            done: Replayed::default(),
            shared: Arc::default(),
            ended: false,
        }
    }

    /// Where the replay's account appears, when it has ended or is dropped.
    pub fn replayed(&self) -> Arc<Mutex<Replayed>> {
        Arc::clone(&self.shared)
    }

    fn publish(&mut self) {
        self.done.faults = self.trace.faults().clone();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = self.done.clone();
    }

    /// Makes sure that the next request is known; none when there is none.
    fn look_ahead(&mut self) -> Option<Record> {
        while self.next.is_none() && !self.ended {
            match self.trace.next() {
                Some(Ok(record)) if self.options.volume.is_some_and(|volume| volume != record.volume) => {}
                Some(Ok(record)) => match self.place(record) {
                    Ok(record) => self.next = Some(record),
                    Err(error) => self.end(Some(error)),
                },
                Some(Err(error)) => self.end(Some(error)),
                None => self.end(None),
            }
        }
        self.next
    }

    fn end(&mut self, error: Option<TraceError>) {
        self.ended = true;
        self.done.completed = error.is_none();
        self.done.error = error.map(Arc::new);
        self.publish();
    }

    /// Puts a request on the disk.
    fn place(&mut self, record: Record) -> Result<Record, TraceError> {
        let capacity = self.options.capacity_bytes;
        let length = u64::from(record.length_bytes);
        if record.offset_bytes.checked_add(length).is_some_and(|end| end <= capacity) {
            return Ok(record);
        }
        if self.options.addresses == Addresses::Refuse || length > capacity {
            return Err(TraceError::PastTheEnd {
                origin: self.trace.origin().to_owned(),
                position: self.trace.position(),
                offset_bytes: record.offset_bytes,
                length_bytes: record.length_bytes,
                capacity_bytes: capacity,
            });
        }
        self.done.folded += 1;
        let whole_sectors = (capacity / 512).max(1) * 512;
        let offset_bytes = (record.offset_bytes % whole_sectors).min(capacity - length);
        Ok(Record { offset_bytes, ..record })
    }

    fn due(&self, started: Nanos, record: &Record) -> Option<Nanos> {
        match self.options.pace {
            Pace::Open { speed } if speed > 0.0 && speed != 1.0 => {
                Some(started + Nanos((record.at.0 as f64 / speed) as u64))
            }
            Pace::Open { .. } => Some(started + record.at),
            Pace::Closed { depth } => (self.outstanding < depth.max(1)).then_some(started),
        }
    }
}

impl Source for TraceSource {
    fn next(&mut self, now: Nanos) -> Step {
        let started = *self.started.get_or_insert(now);
        let Some(record) = self.look_ahead() else {
            return if self.outstanding == 0 { Step::Finished } else { Step::Blocked };
        };
        let Some(due) = self.due(started, &record) else { return Step::Blocked };
        if now < due {
            return Step::At(due);
        }
        self.next = None;
        self.outstanding += 1;
        self.done.records += 1;
        self.done.bytes = self.done.bytes.saturating_add(u64::from(record.length_bytes));
        Step::Issue(IoRequest {
            kind: record.kind,
            sync: matches!(record.kind, Kind::Read | Kind::Flush) || self.options.sync_writes,
            tag: None,
            offset_bytes: record.offset_bytes,
            length_bytes: record.length_bytes,
        })
    }

    fn completed(&mut self, _now: Nanos, _request: &IoRequest) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

impl Drop for TraceSource {
    fn drop(&mut self) {
        self.publish();
    }
}
