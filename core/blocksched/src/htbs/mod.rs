//! HTBS, the high-throughput token bucket scheduler (Rocha and Bona, MSST 2012; seed 001): pClock's guarantees, without
//! losing them, and most of the disk, to deceptive idleness.
//!
//! Requests get tags as in pClock. Two things differ. The next request of the flow in service starts at the same instant as
//! the one before, so a flow that asks again at once keeps its turn, up to B_max units. And when that next request is not
//! there yet though the flow is sequential and has tokens, the disk is kept idle for it, up to T_wait: seeking away and back
//! would cost more.
//!
//! The original's weaknesses are mended, each behind a field of [`HtbsOptions`].

mod options;
mod sequence;

pub use options::{HtbsOptions, SequentialTest, WithinFlow};

use crate::table::{FlowTable, sweep};
use crate::tokens::{BACKGROUND, Bucket, Fill, Instant, cost_units, instant, spacing};
use crate::{Dispatch, FlowId, FlowParameters, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;
use sequence::Sequence;

/// Fewer tokens than this are none (the original counts hundredths).
const TOKENS_MIN: f64 = 0.01;

/// HTBS. Not work-conserving: it waits for the flow in service.
#[derive(Debug)]
pub struct Htbs {
    options: HtbsOptions,
    flows: FlowTable<State, Tags>,
    /// Backlogged flows by their smallest start, as stored.
    by_start: IndexedHeap<Instant>,
    /// Backlogged flows by the deadline of their oldest request, as stored.
    by_finish: IndexedHeap<Instant>,
    drift: Instant,
    /// The flow in service.
    current: Option<FlowId>,
    /// When the wait for the flow in service ends, if one is on.
    waiting_until: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    bucket: Bucket,
    /// Smallest start: that of the request sent last, or of the oldest pending one. Stored while backlogged.
    start_min: Instant,
    /// Start of the newest request. Stored while backlogged.
    start_max: Instant,
    /// Units served in this turn.
    turn_units: u64,
    in_flight: u32,
    sequence: Sequence,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tags {
    start: Instant,
    finish: Instant,
}

impl Htbs {
    /// With these options.
    pub fn new(options: HtbsOptions) -> Self {
        Self {
            options,
            flows: FlowTable::new(),
            by_start: IndexedHeap::new(),
            by_finish: IndexedHeap::new(),
            drift: 0,
            current: None,
            waiting_until: None,
        }
    }

    /// Moves all tags back when every backlogged flow is ahead of its contract.
    fn adjust(&mut self, now: Instant) {
        if let Some((start, _)) = self.by_start.peek() {
            self.drift = self.drift.max(start - now);
        }
    }

    fn refill(&mut self, flow: FlowId, now: Instant) {
        let (drift, options) = (self.drift, self.options);
        let flow = self.flows.at(flow);
        let contract = flow.parameters.contract.unwrap_or(BACKGROUND);
        let rate = contract.rate_per_second;
        // The cap is a second of rate plus the burst, not the burst alone as in pClock.
        let fill = Fill {
            initial: rate,
            cap: rate + contract.burst,
            floor: -(options.debt_seconds_max * rate.max(f64::MIN_POSITIVE)),
            credit_drift: options.credit_drift,
        };
        flow.state.bucket.refill(now, drift, rate, fill);
    }

    /// The request that just came is the one for which the flow in service was kept.
    fn keeps_turn(&mut self, flow: FlowId) -> bool {
        let turn_units_max = self.options.turn_units_max;
        let is_current = self.current == Some(flow);
        let flow = self.flows.at(flow);
        is_current && flow.queue.is_empty() && flow.state.turn_units < turn_units_max
    }

    /// Whether the flow in service may go on with its turn.
    fn may_go_on(&mut self, flow: FlowId, now: Nanos) -> bool {
        self.refill(flow, instant(now));
        let options = self.options;
        let flow = self.flows.at(flow);
        let state = flow.state;
        // Tokens bound what a contract may hold the disk for; a flow without one is bounded by its turn alone.
        let may_spend = flow.parameters.contract.is_none() || state.bucket.tokens > TOKENS_MIN;
        state.turn_units < options.turn_units_max
            && state.sequence.is_sequential(options.sequential)
            && (state.sequence.last_sync || !options.wait_for_sync_only)
            && may_spend
    }

    /// Whether the wait for the flow in service would harm somebody, or is not worth it.
    fn another_is_better(&mut self, current: FlowId, now: Nanos) -> bool {
        let Some((finish, slot)) = self.by_finish.peek() else { return false };
        let due = finish - self.drift <= instant(now + self.options.wait_max);
        if self.options.yield_to_due && due {
            return true;
        }
        let position = self.flows.at(current).state.sequence.position_bytes();
        let other = self.flows.at(FlowId(slot as u32)).queue.front().map(|(request, _)| request.offset_bytes);
        match (position, other) {
            (Some(position), Some(other)) => position.abs_diff(other) < self.options.close_bytes,
            _ => false,
        }
    }

    /// Chooses the flow to serve, or says to wait.
    fn select(&mut self, now: Nanos) -> Result<FlowId, Dispatch> {
        if self.flows.queued() == 0 {
            return Err(Dispatch::Idle);
        }
        if self.waiting_until.is_some_and(|until| until <= now) {
            self.waiting_until = None;
            self.current = self.current.filter(|flow| !self.flows.at(*flow).queue.is_empty());
        }
        if let Some(flow) = self.current
            && self.may_go_on(flow, now)
        {
            if !self.flows.at(flow).queue.is_empty() {
                return Ok(flow);
            }
            if self.flows.at(flow).state.in_flight > 0 {
                // Its last request is still at the device: what follows it cannot be here yet.
                return Err(Dispatch::Idle);
            }
            if !self.another_is_better(flow, now) {
                let until = *self.waiting_until.get_or_insert(now + self.options.wait_max);
                return Err(Dispatch::WaitUntil(until));
            }
        }
        self.waiting_until = None;
        let Some((_, slot)) = self.by_finish.peek() else { return Err(Dispatch::Idle) };
        let flow = FlowId(slot as u32);
        self.current = Some(flow);
        self.flows.at(flow).state.turn_units = 0;
        Ok(flow)
    }

    /// Which of the flow's queued requests leaves.
    fn choose_within(&mut self, flow: FlowId, now: Nanos) -> usize {
        let WithinFlow::Sweep { window } = self.options.within_flow else { return 0 };
        let flow = self.flows.at(flow);
        let delay = flow.parameters.contract.unwrap_or(BACKGROUND).delay;
        let position = flow.state.sequence.position_bytes().unwrap_or(0);
        sweep(&flow.queue, position, now, Nanos(delay.0 / 2), window)
    }

    fn track_head(&mut self, flow: FlowId) {
        let drift = self.drift;
        let slot = flow.index();
        let flow = self.flows.at(flow);
        match flow.queue.front() {
            Some((_, tags)) => {
                self.by_start.set(slot, flow.state.start_min);
                self.by_finish.set(slot, tags.finish);
            }
            None => {
                self.by_start.remove(slot);
                self.by_finish.remove(slot);
                flow.state.start_min -= drift;
                flow.state.start_max -= drift;
            }
        }
    }
}

impl Scheduler for Htbs {
    fn name(&self) -> &'static str {
        "htbs"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        self.flows.at(flow).parameters = parameters;
    }

    fn remove_flow(&mut self, _now: Nanos, flow: FlowId) {
        if self.current == Some(flow) {
            self.current = None;
            self.waiting_until = None;
        }
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters::default();
        if flow.queue.is_empty() {
            flow.state = State { in_flight: flow.state.in_flight, ..State::default() };
        }
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let at = instant(now);
        self.adjust(at);
        let keeps_turn = self.keeps_turn(request.flow);
        if keeps_turn {
            self.waiting_until = None;
        }
        let (drift, options) = (self.drift, self.options);
        let flow = self.flows.at(request.flow);
        let was_empty = flow.queue.is_empty();
        if was_empty {
            flow.state.bucket.skip_drift(drift);
            flow.state.start_min += drift;
            flow.state.start_max += drift;
        }
        self.refill(request.flow, at);
        let flow = self.flows.at(request.flow);
        let contract = flow.parameters.contract.unwrap_or(BACKGROUND);
        let start = if flow.state.bucket.tokens < TOKENS_MIN {
            let next = flow.state.start_max + spacing(&contract, options.cost.of(&request));
            if options.start_not_past { next.max(at + drift) } else { next }
        } else if keeps_turn {
            flow.state.start_min
        } else {
            at + drift
        };
        let tags = Tags { start, finish: start.saturating_add(instant(contract.delay)) };
        let state = &mut flow.state;
        state.start_min = if was_empty { start } else { state.start_min.min(start) };
        state.start_max = if was_empty { start } else { state.start_max.max(start) };
        state.bucket.tokens -= cost_units(options.cost, &request);
        self.flows.push(request, tags);
        self.track_head(request.flow);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let flow = match self.select(now) {
            Ok(flow) => flow,
            Err(answer) => return answer,
        };
        let position = self.choose_within(flow, now);
        let Some((request, tags)) = self.flows.take(flow, position) else { return Dispatch::Idle };
        let units = self.options.cost.of(&request);
        let state = &mut self.flows.at(flow).state;
        state.start_min = tags.start;
        state.turn_units += units;
        state.in_flight += 1;
        state.sequence.note(&request);
        self.track_head(flow);
        Dispatch::Send(request)
    }

    fn complete(&mut self, _now: Nanos, request: &Request) {
        let state = &mut self.flows.at(request.flow).state;
        state.in_flight = state.in_flight.saturating_sub(1);
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
