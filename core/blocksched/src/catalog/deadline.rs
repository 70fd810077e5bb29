//! mq-deadline: sorted batches, and nobody waits longer than a deadline.
//!
//! Reads and writes are kept apart. Requests leave in order of offset in batches; a new batch is of reads unless writes
//! were passed over too often, and begins at the oldest request if that one is late. Real-time flows go before
//! best-effort ones and those before idle ones, except that what waited for the ageing time goes anyway. Flushes go first, in turns
//! with the rest.

use super::{Entry, UNIT_BYTES};
use crate::sorted::Sorted;
use crate::{Class, Cost, Dispatch, FlowId, FlowParameters, Kind, Request, Scheduler};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// Options, with the kernel's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineOptions {
    /// A read is late after this.
    pub read_expire: Nanos,
    /// A write is late after this.
    pub write_expire: Nanos,
    /// Requests in a batch.
    pub batch: u32,
    /// Batches of reads that may go before waiting writes.
    pub writes_starved: u32,
    /// A lower class goes first once its oldest request waited this long.
    pub ageing: Nanos,
}

impl Default for DeadlineOptions {
    fn default() -> Self {
        Self {
            read_expire: Nanos::from_millis(500),
            write_expire: Nanos::from_secs(5),
            batch: 16,
            writes_starved: 2,
            ageing: Nanos::from_secs(10),
        }
    }
}

/// One direction of one class: sorted, and in order of arrival.
#[derive(Clone, Debug, Default)]
struct Direction {
    sorted: Sorted,
    /// Offset, sequence and arrival, oldest first; entries already sent are skipped when they come to the front.
    arrivals: VecDeque<(u64, u64, Nanos)>,
    next_bytes: Option<u64>,
}

impl Direction {
    fn add(&mut self, request: Request, sequence: u64) {
        self.arrivals.push_back((request.offset_bytes, sequence, request.arrived));
        self.sorted.insert(request, sequence);
    }

    fn take(&mut self, offset_bytes: u64, sequence: u64) -> Option<Request> {
        let request = self.sorted.remove(offset_bytes, sequence)?;
        self.next_bytes = Some(request.end_bytes());
        if self.arrivals.front().is_some_and(|oldest| oldest.1 == sequence) {
            self.arrivals.pop_front();
            self.drop_sent();
        } else if let Ok(at) = self.arrivals.binary_search_by_key(&sequence, |entry| entry.1) {
            // A mark, not a removal: that would move all that stand behind it.
            self.arrivals[at].2 = SENT;
        }
        Some(request)
    }

    fn drop_sent(&mut self) {
        while self.arrivals.front().is_some_and(|oldest| oldest.2 == SENT) {
            self.arrivals.pop_front();
        }
    }

    /// Takes back all that is of a flow.
    fn cancel(&mut self, flow: FlowId, cancelled: &mut Vec<Request>) {
        let sorted = &mut self.sorted;
        self.arrivals.retain(|(offset, sequence, _)| {
            let Some(request) = sorted.get(*offset, *sequence) else { return false };
            if request.flow == flow {
                sorted.remove(*offset, *sequence);
                cancelled.push(request);
            }
            request.flow != flow
        });
    }

    fn oldest(&self) -> Option<Nanos> {
        self.arrivals.front().map(|oldest| oldest.2)
    }

    fn is_empty(&self) -> bool {
        self.sorted.len() == 0
    }

    /// The next one onwards in the batch under way.
    fn onwards(&self) -> Option<(u64, u64)> {
        let (request, sequence) = self.sorted.at_or_after(self.next_bytes?)?;
        Some((request.offset_bytes, sequence))
    }

    /// Where a new batch begins: the oldest if it is late, else onwards, else the lowest.
    fn batch_start(&self, now: Nanos, expire: Nanos) -> Option<(u64, u64)> {
        let (offset, sequence, arrived) = *self.arrivals.front()?;
        match self.onwards() {
            Some(next) if now.since(arrived) < expire => Some(next),
            _ => Some((offset, sequence)),
        }
    }
}

/// Marks an arrival whose request was sent.
const SENT: Nanos = Nanos(u64::MAX);

#[derive(Clone, Debug, Default)]
struct PerClass {
    reads: Direction,
    writes: Direction,
    starved: u32,
}

/// mq-deadline. Work-conserving.
#[derive(Debug)]
pub struct Deadline {
    options: DeadlineOptions,
    classes: [PerClass; 3],
    flow_classes: Vec<Class>,
    /// Flushes are not sorted: they go first, but not two in a row while others wait. A guest could keep the disk by them.
    flushes: VecDeque<Request>,
    /// What was sent last was a flush.
    has_flushed: bool,
    /// The class, whether it writes, and how many are left of the batch under way.
    batch: Option<(usize, bool, u32)>,
    sequence: u64,
    queued: usize,
}

impl Deadline {
    /// With these options.
    pub fn new(options: DeadlineOptions) -> Self {
        Self {
            options,
            classes: [PerClass::default(), PerClass::default(), PerClass::default()],
            flow_classes: Vec::new(),
            flushes: VecDeque::new(),
            has_flushed: false,
            batch: None,
            sequence: 0,
            queued: 0,
        }
    }

    fn direction(&mut self, class: usize, write: bool) -> &mut Direction {
        let class = &mut self.classes[class];
        if write { &mut class.writes } else { &mut class.reads }
    }

    fn class_of(&self, flow: FlowId) -> usize {
        self.flow_classes.get(flow.index()).copied().unwrap_or_default() as usize
    }

    /// The class to serve: the highest with work, but a lower one whose oldest request has aged.
    fn choose_class(&self, now: Nanos) -> Option<usize> {
        let aged = |class: &PerClass| {
            [&class.reads, &class.writes]
                .into_iter()
                .filter_map(Direction::oldest)
                .any(|oldest| now.since(oldest) >= self.options.ageing)
        };
        let has_work = |class: &PerClass| !class.reads.is_empty() || !class.writes.is_empty();
        let lower_aged = self.classes.iter().skip(1).position(aged).map(|position| position + 1);
        lower_aged.or_else(|| self.classes.iter().position(has_work))
    }

    /// Where the first queued read at or after an offset begins.
    pub(crate) fn read_at_or_after(&self, offset_bytes: u64) -> Option<u64> {
        let first = |class: &PerClass| class.reads.sorted.at_or_after(offset_bytes);
        self.classes.iter().filter_map(first).map(|(request, _)| request.offset_bytes).min()
    }

    fn start_batch(&mut self, now: Nanos) -> Option<Request> {
        let options = self.options;
        let class = self.choose_class(now)?;
        let state = &mut self.classes[class];
        let write = match (state.reads.is_empty(), state.writes.is_empty()) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => state.starved >= options.writes_starved,
        };
        if write {
            state.starved = 0;
        } else if !state.writes.is_empty() {
            state.starved += 1;
        }
        let expire = if write { options.write_expire } else { options.read_expire };
        let direction = self.direction(class, write);
        let (offset, sequence) = direction.batch_start(now, expire)?;
        let request = direction.take(offset, sequence)?;
        self.batch = Some((class, write, options.batch.saturating_sub(1)));
        Some(request)
    }

    /// The next of those that are sorted.
    fn take_sorted(&mut self, now: Nanos) -> Option<Request> {
        self.continue_batch(now).or_else(|| self.start_batch(now))
    }

    fn continue_batch(&mut self, now: Nanos) -> Option<Request> {
        let (class, write, left) = self.batch?;
        if left == 0 || self.choose_class(now) != Some(class) {
            return None;
        }
        let direction = self.direction(class, write);
        let (offset, sequence) = direction.onwards()?;
        let request = direction.take(offset, sequence)?;
        self.batch = Some((class, write, left - 1));
        Some(request)
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "mq-deadline",
    summary: "The kernel's mq-deadline: expiry times and sorted batches.",
    build: |_| Box::new(Deadline::new(DeadlineOptions::default())),
    options: |_| format!("{:?}", DeadlineOptions::default()),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[],
    discipline: None,
    conserves_work: true,
};

impl Scheduler for Deadline {
    fn name(&self) -> &'static str {
        "mq-deadline"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        if flow.index() >= self.flow_classes.len() {
            self.flow_classes.resize(flow.index() + 1, Class::default());
        }
        self.flow_classes[flow.index()] = parameters.class;
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        self.set_flow(now, flow, FlowParameters::default());
    }

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        let before = cancelled.len();
        cancelled.extend(self.flushes.iter().filter(|request| request.flow == flow));
        self.flushes.retain(|request| request.flow != flow);
        // In all classes: the flow's may have changed while they were queued.
        for class in &mut self.classes {
            class.reads.cancel(flow, cancelled);
            class.writes.cancel(flow, cancelled);
            if class.writes.is_empty() {
                // Nobody is passed over any more.
                class.starved = 0;
            }
        }
        self.queued -= cancelled.len() - before;
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queued += 1;
        if request.kind == Kind::Flush {
            self.flushes.push_back(request);
            return;
        }
        self.sequence += 1;
        let (class, sequence) = (self.class_of(request.flow), self.sequence);
        self.direction(class, request.kind != Kind::Read).add(request, sequence);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let request = match self.has_flushed {
            true => self.take_sorted(now).or_else(|| self.flushes.pop_front()),
            false => self.flushes.pop_front().or_else(|| self.take_sorted(now)),
        };
        self.has_flushed = request.is_some_and(|request| request.kind == Kind::Flush);
        self.queued -= usize::from(request.is_some());
        request.map_or(Dispatch::Idle, Dispatch::Send)
    }

    fn complete(&mut self, _now: Nanos, _request: &Request) {}

    fn queued(&self) -> usize {
        self.queued
    }
}
