//! One trace read for several processes: each gets the requests of its volume, on its own part of the disk.

use super::error::TraceError;
use super::reader::TraceReader;
use super::record::{Position, Record};
use super::replay_options::{Addresses, ReplayOptions, Replayed};
use minerva_model::Nanos;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that are read ahead for other processes; so memory is constant, however far apart two of one volume lie.
const WAITING_MAX: usize = 1 << 16;

/// A volume's place on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Whose requests; absent: all of them.
    pub volume: Option<u32>,
    /// Where its address 0 lies.
    pub base_bytes: u64,
    /// How long its part of the disk is.
    pub region_bytes: u64,
}

/// What a process does next.
pub(super) enum Ahead {
    /// This request.
    Request(Record),
    /// Nothing before this instant of the trace: the trace was read that far, and others must make their requests first.
    NothingBefore(Nanos),
    /// Nothing more.
    End,
}

pub(super) struct Feed {
    trace: TraceReader,
    options: ReplayOptions,
    lanes: Vec<(Lane, VecDeque<Record>)>,
    /// The lane of a volume, where the first lane does not take all.
    of_volume: Option<HashMap<u32, usize>>,
    waiting: usize,
    read_until: Nanos,
    ended: bool,
    done: Replayed,
    shared: Arc<Mutex<Replayed>>,
}

impl Feed {
    pub(super) fn new(trace: TraceReader, options: ReplayOptions, lanes: &[Lane]) -> Self {
        let takes_all = lanes.first().is_some_and(|lane| lane.volume.is_none());
        let numbered = lanes.iter().enumerate().filter_map(|(index, lane)| Some((lane.volume?, index)));
        Self {
            trace,
            options,
            of_volume: (!takes_all).then(|| numbered.collect()),
            lanes: lanes.iter().map(|lane| (*lane, VecDeque::new())).collect(),
            waiting: 0,
            read_until: Nanos::ZERO,
            ended: false,
            done: Replayed::default(),
            shared: Arc::default(),
        }
    }

    /// Where the account appears when the replay has ended or is dropped.
    pub(super) fn shared(&self) -> Arc<Mutex<Replayed>> {
        Arc::clone(&self.shared)
    }

    pub(super) fn publish(&mut self) {
        self.done.faults = self.trace.faults().clone();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = self.done.clone();
    }

    pub(super) fn peek(&mut self, lane: usize) -> Ahead {
        loop {
            if let Some(record) = self.lanes[lane].1.front() {
                return Ahead::Request(*record);
            }
            if self.ended {
                return Ahead::End;
            }
            if self.waiting >= WAITING_MAX {
                return Ahead::NothingBefore(self.read_until);
            }
            self.read();
        }
    }

    /// The request that was seen by [`Feed::peek`] is made.
    pub(super) fn take(&mut self, lane: usize) {
        if let Some(record) = self.lanes[lane].1.pop_front() {
            self.waiting -= 1;
            self.done.records += 1;
            self.done.bytes = self.done.bytes.saturating_add(u64::from(record.length_bytes));
            if self.ended && self.waiting == 0 {
                self.publish();
            }
        }
    }

    fn read(&mut self) {
        let record = match self.trace.next() {
            Some(Ok(record)) => record,
            Some(Err(error)) => return self.end(Some(error)),
            None => return self.end(None),
        };
        self.read_until = record.at;
        let lane = self.of_volume.as_ref().map_or(Some(0), |of_volume| of_volume.get(&record.volume).copied());
        let Some(lane) = lane else { return };
        match self.place(record, self.lanes[lane].0) {
            Ok(record) => {
                self.lanes[lane].1.push_back(record);
                self.waiting += 1;
            }
            Err(error) => self.end(Some(error)),
        }
    }

    fn end(&mut self, error: Option<TraceError>) {
        self.ended = true;
        self.done.completed = error.is_none();
        self.done.error = error.map(Arc::new);
        self.publish();
    }

    /// Puts a request on its part of the disk.
    fn place(&mut self, record: Record, lane: Lane) -> Result<Record, TraceError> {
        let (region, length) = (lane.region_bytes, u64::from(record.length_bytes));
        let at = |offset_bytes| Record { offset_bytes: lane.base_bytes + offset_bytes, ..record };
        if record.offset_bytes.checked_add(length).is_some_and(|end| end <= region) {
            return Ok(at(record.offset_bytes));
        }
        let position = self.trace.position();
        if self.options.addresses == Addresses::Refuse || length > region {
            return Err(TraceError::PastTheEnd {
                origin: self.trace.origin().to_owned(),
                position,
                offset_bytes: record.offset_bytes,
                length_bytes: record.length_bytes,
                capacity_bytes: region,
            });
        }
        self.note_folded(position);
        let whole_sectors = (region / 512).max(1) * 512;
        Ok(at((record.offset_bytes % whole_sectors).min(region - length)))
    }

    fn note_folded(&mut self, position: Position) {
        self.done.folded += 1;
        if self.done.folded_at.len() < super::record::Faults::EXAMPLES_MAX {
            self.done.folded_at.push(position);
        }
    }
}
