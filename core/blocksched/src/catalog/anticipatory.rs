//! The anticipatory scheduler (Iyer and Druschel 2001): after a read, the disk is kept idle for a moment when its process
//! is likely to ask for something close by.
//!
//! Below it lies the deadline scheduler's sorted order with this scheduler's own expiry times and batches. The wait ends
//! when the process asks, when time is up, when the process has other requests, when it thinks longer than one would wait,
//! or when somebody else asks for something close enough; what counts as close grows while the wait lasts.

use super::deadline::{Deadline, DeadlineOptions};
use super::{Entry, UNIT_BYTES};
use crate::{Cost, Dispatch, FlowId, FlowParameters, Kind, Request, Scheduler};
use minerva_model::Nanos;

/// Options. Those of time are the kernel's last defaults; its batches lasted 500 ms of reads and 125 ms of writes, and ours, which are
/// the deadline scheduler's, count requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnticipatoryOptions {
    /// The longest wait.
    pub wait_max: Nanos,
    /// A read is late after this.
    pub read_expire: Nanos,
    /// A write is late after this.
    pub write_expire: Nanos,
    /// Requests in a batch.
    pub batch: u32,
}

impl Default for AnticipatoryOptions {
    fn default() -> Self {
        Self {
            wait_max: Nanos::from_millis(6),
            read_expire: Nanos::from_millis(125),
            write_expire: Nanos::from_millis(250),
            batch: 16,
        }
    }
}

/// Closer than this is close at once.
const CLOSE_BYTES: u64 = 8192 * 512;
/// A tick of the widening window.
const TICK: Nanos = Nanos::from_millis(1);
/// Think times above this count as this.
const THINK_MAX_NS: u64 = 20_000_000;

/// Exponential mean in eighths, as sums so that the first samples weigh fully.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    samples: u64,
    total: u64,
}

impl Mean {
    fn note(&mut self, value: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * value) / 8;
    }

    fn value(&self) -> Option<u64> {
        (self.samples > 0).then(|| (self.total + self.samples / 2) / self.samples)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    think: Mean,
    seek_bytes: Mean,
    last_end_bytes: Option<u64>,
    completed_at: Option<Nanos>,
    queued: u32,
    in_flight: u32,
}

/// A wait under way.
#[derive(Clone, Copy, Debug)]
struct Wait {
    flow: FlowId,
    since: Nanos,
}

/// The anticipatory scheduler.
#[derive(Debug)]
pub struct Anticipatory {
    options: AnticipatoryOptions,
    below: Deadline,
    flows: Vec<State>,
    wait: Option<Wait>,
    last_end_bytes: u64,
    /// Where the nearest request of somebody else than the awaited flow lies.
    rival_bytes: Option<u64>,
}

impl Anticipatory {
    /// With these options.
    pub fn new(options: AnticipatoryOptions) -> Self {
        let below = Deadline::new(DeadlineOptions {
            read_expire: options.read_expire,
            write_expire: options.write_expire,
            batch: options.batch,
            ..DeadlineOptions::default()
        });
        Self { options, below, flows: Vec::new(), wait: None, last_end_bytes: 0, rival_bytes: None }
    }

    fn at(&mut self, flow: FlowId) -> &mut State {
        if flow.index() >= self.flows.len() {
            self.flows.resize(flow.index() + 1, State::default());
        }
        &mut self.flows[flow.index()]
    }

    /// How long to go on waiting, or `None` when the wait is not worth it.
    fn worth_waiting(&mut self, wait: Wait, now: Nanos) -> Option<Nanos> {
        let wait_max = self.options.wait_max;
        let state = *self.at(wait.flow);
        let until = wait.since + wait_max;
        let thinks_long = state.think.value().is_some_and(|mean| mean > wait_max.0);
        if now >= until || state.queued > 0 || state.in_flight > 0 || thinks_long {
            return None;
        }
        let elapsed_ticks = now.since(wait.since).0 / TICK.0;
        let ticks_max = Nanos::from_millis(20).min(wait_max).0 / TICK.0;
        let window = if elapsed_ticks >= ticks_max { u64::MAX } else { CLOSE_BYTES << elapsed_ticks.min(20) };
        let own_seek = state.seek_bytes.value().unwrap_or(0);
        let distance = self.rival_bytes.map(|rival| rival.abs_diff(self.last_end_bytes));
        let rival_is_close = distance.is_some_and(|distance| distance <= window || distance < own_seek);
        (!rival_is_close).then_some(until.min(now + TICK))
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "anticipatory",
    summary: "The anticipatory scheduler that left the kernel with 2.6.33.",
    build: |_| Box::new(Anticipatory::new(AnticipatoryOptions::default())),
    options: |_| format!("{:?}", AnticipatoryOptions::default()),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[],
    discipline: None,
    conserves_work: false,
};

impl Scheduler for Anticipatory {
    fn name(&self) -> &'static str {
        "anticipatory"
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.below.set_flow(now, flow, parameters);
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        let state = self.at(flow);
        *state = State { queued: state.queued, in_flight: state.in_flight, ..State::default() };
        if self.wait.is_some_and(|wait| wait.flow == flow) {
            self.wait = None;
        }
        self.below.remove_flow(now, flow);
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        self.below.cancel(now, flow, cancelled);
        self.at(flow).queued = 0;
        if self.wait.is_some_and(|wait| wait.flow == flow) {
            self.wait = None;
        }
        // The request that was nearest may be among them.
        self.rival_bytes = self.below.read_at_or_after(self.last_end_bytes);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let state = self.at(request.flow);
        if let Some(completed_at) = state.completed_at.take() {
            state.think.note(now.since(completed_at).0.min(THINK_MAX_NS));
        }
        if request.moves_data() {
            if let Some(end) = state.last_end_bytes {
                let limit = state.seek_bytes.value().map_or(u64::MAX, |mean| 4 * mean + 2 * CLOSE_BYTES);
                state.seek_bytes.note(end.abs_diff(request.offset_bytes).min(limit));
            }
            state.last_end_bytes = Some(request.end_bytes());
        }
        state.queued += 1;
        match self.wait {
            Some(wait) if wait.flow == request.flow => self.wait = None,
            Some(_) if request.sync && request.kind == Kind::Read => self.rival_bytes = Some(request.offset_bytes),
            _ => {}
        }
        self.below.add(now, request);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        if self.below.queued() == 0 {
            return Dispatch::Idle;
        }
        if let Some(wait) = self.wait {
            if let Some(until) = self.worth_waiting(wait, now) {
                return Dispatch::WaitUntil(until);
            }
            self.wait = None;
        }
        let answer = self.below.next(now);
        if let Dispatch::Send(request) = answer {
            let state = self.at(request.flow);
            state.queued = state.queued.saturating_sub(1);
            state.in_flight += 1;
            if request.moves_data() {
                self.last_end_bytes = request.end_bytes();
            }
        }
        answer
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let state = self.at(request.flow);
        state.in_flight = state.in_flight.saturating_sub(1);
        state.completed_at = Some(now);
        if request.sync && request.kind == Kind::Read {
            self.wait = Some(Wait { flow: request.flow, since: now });
            self.rival_bytes = self.below.read_at_or_after(request.end_bytes());
            self.last_end_bytes = request.end_bytes();
        }
    }

    fn queued(&self) -> usize {
        self.below.queued()
    }
}
