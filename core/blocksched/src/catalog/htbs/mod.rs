//! HTBS, the high-throughput token bucket scheduler (Rocha and Bona, MSST 2012): pClock's guarantees, without
//! losing them, and most of the disk, to deceptive idleness.
//!
//! Requests get tags as in pClock. Two things differ. The next request of the flow in service starts at the same instant as
//! the one before, so a flow that asks again at once keeps its turn, up to B_max units. And when that next request is not
//! there yet though the flow is sequential and has tokens, the disk is kept idle for it, up to T_wait: seeking away and back
//! would cost more. A request that hangs keeps the disk for its flow no longer than [`HUNG_AFTER`](crate::in_flight::HUNG_AFTER).
//!
//! The original's weaknesses are mended, each behind a field of [`HtbsOptions`]. The greatest change is spare time: a turn
//! goes on beyond what the contract asks for while every other flow's next turn, as long as its contract makes it, still
//! fits before the earliest deadline. How long turns take is measured. What is sent on spare time leaves no debt. Flows
//! without a contract have an equal part of it (`parts`).

mod grant;
mod learn;
mod options;
mod pace;
mod parts;
mod sequence;
mod starts;
mod terms;
#[cfg(test)]
mod tests;

pub use options::{HtbsOptions, SequentialTest, Spare, WithinFlow};

use super::{BuildOptions, Entry, Promise, UNIT_BYTES};
use crate::in_flight::InFlight;
use crate::table::{Flow, FlowTable, sweep};
use crate::tokens::{Bucket, Instant, instant, spacing, whole};
use crate::{Cost, Discipline, Dispatch, FlowId, FlowParameters, IndexedHeap, Narrow, Request, Scheduler};
use minerva_model::Nanos;
use pace::Estimate;
use sequence::Sequence;
use starts::Starts;
use terms::Terms;

/// Fewer tokens than this are none (the original counts hundredths).
const TOKENS_MIN: f64 = 0.01;

/// No turn is taken to last longer, so that the sum over all flows fits into 64 bits whatever was promised. There is never room for one.
const TURN_MAX: Nanos = Nanos::from_secs(86_400);

/// HTBS. Not work-conserving: it waits for the flow in service.
#[derive(Debug)]
pub struct Htbs {
    options: HtbsOptions,
    flows: FlowTable<State, Tags>,
    /// Backlogged flows by their smallest start, as stored.
    by_start: Starts,
    /// Backlogged flows by the deadline of their oldest request, as stored.
    by_finish: IndexedHeap<Narrow>,
    /// Flows without a contract that wait for their part, by when they may have it.
    parts: IndexedHeap<Nanos>,
    drift: Instant,
    /// The flow in service.
    current: Option<FlowId>,
    /// When the wait for the flow in service ends, if one is on.
    waiting_until: Option<Nanos>,
    turn_began: Nanos,
    /// Whose request was sent last.
    last_sent: Option<FlowId>,
    /// Of all flows, without those that hang.
    in_flight: u32,
    /// The time of a request after a change of flows beyond what its units take.
    seek: Estimate,
    /// The sum of what is reserved for the next turn of each backlogged flow.
    reserved_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    terms: Terms,
    bucket: Bucket,
    /// Smallest start: that of the request sent last, or of the oldest pending one. Stored while backlogged.
    start_min: Instant,
    /// Start of the newest request. Stored while backlogged.
    start_max: Instant,
    /// Units served in this turn.
    turn_units: u64,
    in_flight: InFlight,
    sequence: Sequence,
    sent_at: Nanos,
    /// The last request followed one of another flow.
    came_by_seek: bool,
    completed_at: Option<Nanos>,
    /// The time of one unit of this flow at the disk.
    unit: Estimate,
    /// From a completion to the next request.
    think: Estimate,
    /// What is queued, in units.
    queued_units: u64,
    /// What of that is charged to the bucket: less, once a debt was forgiven for being too great.
    queued_charge: f64,
    /// What is reserved for its next turn while it is backlogged.
    reserved_ns: u64,
    /// Without a contract: from when it may have its next part.
    part_not_before: Nanos,
    /// Up to when its present part was charged.
    part_charged_at: Nanos,
}

/// Why a request leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Its flow has the earliest deadline.
    New,
    /// Its flow is in service and has tokens left.
    Owed,
    /// Its flow is in service and nobody else is hurried.
    OnSpareTime,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tags {
    start: Instant,
    /// From the start to the deadline.
    delay_ns: u64,
    /// What it costs.
    units: u32,
}

impl Tags {
    /// The deadline.
    fn finish(&self) -> Instant {
        self.start.saturating_add(Instant::from(self.delay_ns))
    }
}

impl Htbs {
    /// With these options.
    pub fn new(options: HtbsOptions) -> Self {
        Self {
            options,
            flows: FlowTable::with(State { terms: Terms::of(&options, None), ..State::default() }),
            by_start: Starts::default(),
            by_finish: IndexedHeap::new(),
            parts: IndexedHeap::new(),
            drift: 0,
            current: None,
            waiting_until: None,
            turn_began: Nanos::ZERO,
            last_sent: None,
            in_flight: 0,
            seek: Estimate::assumed(options.spare.unwrap_or_default().seek_assumed),
            reserved_ns: 0,
        }
    }

    /// Moves all tags back when every backlogged flow is ahead of its contract.
    fn adjust(&mut self, now: Instant) {
        if let Some(start) = self.by_start.least_after(now + self.drift) {
            self.drift = start - now;
        }
    }

    fn refill(&mut self, flow: FlowId, now: Instant) {
        let drift = self.drift;
        let Flow { queue, state, .. } = self.flows.at(flow);
        if queue.is_empty() {
            state.bucket.skip_drift(drift);
        }
        let forgiven = state.bucket.refill(now, drift, state.terms.rate, state.terms.fill);
        state.queued_charge = (state.queued_charge - forgiven).max(0.0);
    }

    /// The request that just came is the one for which the flow in service was kept.
    fn keeps_turn(&mut self, flow: FlowId) -> bool {
        if self.current != Some(flow) {
            return false;
        }
        let Flow { queue, state, .. } = self.flows.at(flow);
        queue.is_empty() && state.turn_units < state.terms.turn_units_max
    }

    /// Whether the flow in service gains from going on: it is sequential, and has its next request queued or somebody who waits for
    /// the last one; or it has its part.
    fn is_worth_keeping(&mut self, flow: FlowId) -> bool {
        let options = self.options;
        let Flow { queue, state, .. } = self.flows.at(flow);
        let comes = !queue.is_empty() || state.sequence.last_sync || !options.wait_for_sync_only;
        (state.sequence.is_sequential(options.sequential) && comes) || self.keeps_part(flow)
    }

    /// Whether the contract of the flow in service gives it the next request of its turn.
    fn is_owed(&mut self, flow: FlowId, now: Nanos) -> bool {
        self.refill(flow, instant(now));
        let gives_spare = self.options.spare.is_some();
        let state = &self.flows.at(flow).state;
        // Tokens bound what a contract may hold the disk for. A flow without one is bounded by its turn, and where spare
        // time is given away it has nothing else.
        let may_spend = if state.terms.has_contract { state.bucket.tokens > TOKENS_MIN } else { !gives_spare };
        may_spend && state.turn_units < state.terms.turn_units_max
    }

    /// Whether the turn of the flow in service can go on for `more_ns` on spare time.
    fn has_spare(&mut self, flow: FlowId, now: Nanos, more_ns: f64) -> bool {
        let is_short = |spare: Spare| now.since(self.turn_began) < spare.turn_time_max;
        let is_alone = || self.by_finish.peek_except(flow.index()).is_none();
        self.options.spare.is_some_and(|spare| is_short(spare) || is_alone()) && self.has_room(flow, now, more_ns)
    }

    /// Whether a flow can have `more_ns` of the disk now, and every other flow's next turn is still in time.
    fn has_room(&mut self, flow: FlowId, now: Nanos, more_ns: f64) -> bool {
        self.room_until(flow, more_ns).is_none_or(|until| instant(now) <= until)
    }

    /// Up to when it can; none while nobody else is backlogged.
    fn room_until(&mut self, flow: FlowId, more_ns: f64) -> Option<Instant> {
        let (Narrow(finish), _) = self.by_finish.peek_except(flow.index())?;
        let own_ns = self.flows.at(flow).state.reserved_ns;
        let others_ns = self.reserved_ns.saturating_sub(own_ns) as f64 + (self.seek.high_ns() - self.seek.mean_ns());
        Some((finish - self.drift).saturating_sub(whole(more_ns + others_ns)))
    }

    /// What the oldest request of a flow is expected to take when the flow goes on.
    fn next_request_ns(&mut self, flow: FlowId) -> f64 {
        let flow = self.flows.at(flow);
        let units = flow.queue.front().map_or(1, |(_, tags)| tags.units);
        flow.state.unit.mean_ns() * f64::from(units)
    }

    /// How long the flow in service is expected to think; `None` when it is not worth waiting for.
    fn expected_wait(&mut self, flow: FlowId) -> Option<Nanos> {
        let options = self.options;
        let think = self.flows.at(flow).state.think;
        if !options.wait_as_measured || !think.is_measured() {
            return Some(options.wait_max);
        }
        (think.mean_ns() <= options.wait_max.0 as f64).then(|| options.wait_max.min(Nanos(think.high_ns() as u64)))
    }

    /// The instant until which the disk is kept idle for the flow in service, if it should be.
    fn wait_for(&mut self, current: FlowId, now: Nanos, owed: bool) -> Option<Nanos> {
        let expected = self.expected_wait(current)?;
        if !owed && !self.has_spare(current, now, expected.0 as f64) {
            return None;
        }
        let (Narrow(finish), slot) = self.by_finish.peek()?;
        // One that has passed already is no better off for a second seek.
        let due = finish - self.drift;
        if self.options.yield_to_due && due > instant(now) && due <= instant(now + expected) {
            return None;
        }
        let position = self.flows.at(current).state.sequence.position_bytes();
        let other = self.flows.at(FlowId(slot as u32)).queue.front().map(|(request, _)| request.offset_bytes);
        if let (Some(position), Some(other)) = (position, other)
            && position.abs_diff(other) < self.options.close_bytes
        {
            return None;
        }
        Some(*self.waiting_until.get_or_insert(now + self.options.wait_max))
    }

    /// Until when others wait for what the flow in service has at the device, if they do. What its contract gives it is done before anything else;
    /// on spare time, and for a flush, which can take long, they wait no longer than their contracts leave room: a device that takes several
    /// requests can have theirs beside it.
    fn wait_for_device(&mut self, flow: FlowId, now: Nanos, owed: bool) -> Option<Nanos> {
        let State { in_flight, sequence, .. } = self.flows.at(flow).state;
        let mut until = in_flight.hung_at();
        if !owed {
            if !self.has_spare(flow, now, 0.0) {
                return None;
            }
            until = until.min(self.turn_began + self.options.spare.unwrap_or_default().turn_time_max);
        }
        let yields = self.options.yield_to_due && (!owed || sequence.last_moved_nothing);
        if let Some(room_until) = self.room_until(flow, 0.0).filter(|_| yields) {
            let after = room_until.saturating_add(1).max(0);
            until = until.min(Nanos(u64::try_from(after).unwrap_or(u64::MAX)));
        }
        (now < until).then_some(until)
    }

    /// Chooses the flow to serve, or says to wait.
    fn select(&mut self, now: Nanos) -> Result<(FlowId, Turn), Dispatch> {
        if self.flows.queued() == 0 {
            return Err(Dispatch::Idle);
        }
        if self.waiting_until.is_some_and(|until| until <= now) {
            self.waiting_until = None;
            self.current = self.current.filter(|flow| !self.flows.at(*flow).queue.is_empty());
        }
        if let Some(flow) = self.current
            && let Some(answer) = self.go_on(flow, now)
        {
            return answer;
        }
        self.waiting_until = None;
        let first_due = self.by_finish.peek().map(|(_, slot)| FlowId(slot as u32));
        let Some(flow) = self.part_due(now).or(first_due) else { return Err(Dispatch::Idle) };
        self.current = Some(flow);
        self.turn_began = now;
        self.flows.at(flow).state.part_charged_at = now;
        self.flows.at(flow).state.turn_units = 0;
        Ok((flow, Turn::New))
    }

    /// Goes on with the flow in service, or waits for it; `None` when its turn is over.
    fn go_on(&mut self, flow: FlowId, now: Nanos) -> Option<Result<(FlowId, Turn), Dispatch>> {
        if !self.is_worth_keeping(flow) {
            return None;
        }
        let owed = self.is_owed(flow, now);
        if !owed && self.flows.at(flow).state.terms.has_contract && self.part_due(now).is_some() {
            return None;
        }
        if !self.flows.at(flow).queue.is_empty() {
            let next_ns = self.next_request_ns(flow);
            let spare = !owed && self.has_spare(flow, now, next_ns);
            return (owed || spare).then_some(Ok((flow, if spare { Turn::OnSpareTime } else { Turn::Owed })));
        }
        let in_flight = self.flows.at(flow).state.in_flight;
        let until = match in_flight.count() {
            0 if in_flight.hangs() => None,
            0 => self.wait_for(flow, now, owed),
            // Its last request is still at the device: what follows it cannot be here yet.
            _ if now < in_flight.hung_at() => self.wait_for_device(flow, now, owed),
            _ => {
                self.give_up(flow, now);
                None
            }
        };
        until.map(|until| Err(Dispatch::WaitUntil(until)))
    }

    /// What is sent beyond the contract on spare time is not charged: it is taken back from what the arrival was charged.
    fn forgive(&mut self, flow: FlowId, units: u32, now: Nanos) {
        let drift = self.drift;
        let state = &mut self.flows.at(flow).state;
        let settled = state.bucket.tokens.max(0.0);
        state.bucket.tokens = (state.bucket.tokens + f64::from(units)).min(settled);
        let earlier = state.start_max - spacing(state.terms.unit_ns, units);
        state.start_max = earlier.max(state.start_max.min(instant(now) + drift));
    }

    /// Reserves the time of a flow's next turn while it is backlogged: a seek and what its contract lets it have, which is
    /// what it has queued, within the burst and what a delay earns, and at least what a delay earns, as it may ask on. A flow
    /// without a contract is never due.
    fn reserve(&mut self, flow: FlowId) {
        let seek_ns = self.seek.mean_ns();
        let Flow { queue, state, .. } = self.flows.at(flow);
        let wanted_ns = match queue.front() {
            Some((_, tags)) if state.terms.has_contract => {
                let [least, most] = state.terms.turn_units;
                let units = (state.queued_units as f64).clamp(least, most).max(f64::from(tags.units));
                ((seek_ns + state.unit.mean_ns() * units) as u64).min(TURN_MAX.0)
            }
            _ => 0,
        };
        self.reserved_ns = self.reserved_ns - state.reserved_ns + wanted_ns;
        state.reserved_ns = wanted_ns;
    }

    /// Which of the flow's queued requests leaves.
    fn choose_within(&mut self, flow: FlowId, now: Nanos) -> usize {
        let WithinFlow::Sweep { window } = self.options.within_flow else { return 0 };
        let flow = self.flows.at(flow);
        let delay = flow.state.terms.delay;
        let position = flow.state.sequence.position_bytes().unwrap_or(0);
        sweep(&flow.queue, position, now, Nanos(delay.0 / 2), window)
    }

    /// The start tag of a request of `units` that comes at `at`, both as stored.
    fn start_tag(&mut self, flow: FlowId, units: u32, at: Instant, keeps_turn: bool, asks_on: bool) -> Instant {
        let (start_not_past, due_by_rate) = (self.options.start_not_past, self.options.due_by_rate);
        let state = &self.flows.at(flow).state;
        let next = state.start_max + spacing(state.terms.unit_ns, units);
        if state.bucket.tokens < TOKENS_MIN {
            return if start_not_past { next.max(at) } else { next };
        }
        if due_by_rate && asks_on {
            // What it fell behind by more than a delay is past helping.
            return next.clamp(at - instant(state.terms.delay), at);
        }
        if keeps_turn { state.start_min } else { at }
    }

    fn track_head(&mut self, flow: FlowId) {
        self.reserve(flow);
        let drift = self.drift;
        let slot = flow.index();
        let flow = self.flows.at(flow);
        match flow.queue.front() {
            Some((_, tags)) => {
                self.by_start.set(slot, flow.state.start_min);
                self.by_finish.set(slot, Narrow(tags.finish()));
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

/// Ours, for a disk.
fn options(disk: BuildOptions) -> HtbsOptions {
    tuned(HtbsOptions { cost: Cost::PerBytes(UNIT_BYTES), ..HtbsOptions::default() }, disk)
}

fn tuned(options: HtbsOptions, disk: BuildOptions) -> HtbsOptions {
    HtbsOptions {
        turn_units_max: disk.turn_units_max.unwrap_or(options.turn_units_max),
        wait_max: disk.wait_max.unwrap_or(options.wait_max),
        ..options
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "htbs",
    summary: "HTBS as Minerva mended it.",
    build: |disk| Box::new(Htbs::new(options(disk))),
    options: |disk| format!("{:?}", options(disk)),
    depth: |disk| if disk.rotational { 1 } else { disk.depth },
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::Contract],
    discipline: Some(Discipline::Turns),
    conserves_work: false,
};

/// The published one in the catalogue.
pub(super) const ORIGINAL_ENTRY: Entry = Entry {
    name: "htbs-original",
    summary: "HTBS as it was published; its contracts count requests.",
    build: |disk| Box::new(Htbs::new(tuned(HtbsOptions::original(), disk))),
    options: |disk| format!("{:?}", tuned(HtbsOptions::original(), disk)),
    depth: |disk| if disk.rotational { 1 } else { disk.depth },
    sends_beside_hung: false,
    cost: Cost::PerRequest,
    promises: &[Promise::Contract],
    discipline: None,
    conserves_work: false,
};

impl Scheduler for Htbs {
    fn name(&self) -> &'static str {
        "htbs"
    }

    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters) {
        let terms = Terms::of(&self.options, parameters.contract);
        let Flow { parameters: of, state, .. } = self.flows.at(flow);
        let is_new = of.contract != parameters.contract;
        (*of, state.terms) = (parameters, terms);
        if is_new {
            self.begin_anew(flow, now);
        }
        self.reserve(flow);
        self.track_part(flow, now);
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        if self.current == Some(flow) {
            self.current = None;
            self.waiting_until = None;
        }
        let terms = Terms::of(&self.options, None);
        let Flow { parameters: of, state, .. } = self.flows.at(flow);
        // What it has queued keeps its tags: it is still to be sent.
        (*of, state.terms) = (FlowParameters::default(), terms);
        self.reserve(flow);
        self.track_part(flow, now);
        let flow = self.flows.at(flow);
        if flow.queue.is_empty() {
            // What is at the device is yet to be completed.
            let State { in_flight, sent_at, terms, .. } = flow.state;
            flow.state = State { in_flight, sent_at, terms, ..State::default() };
        }
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        if self.current == Some(flow) {
            self.current = None;
            self.waiting_until = None;
        }
        let Some((_, tags)) = self.flows.at(flow).queue.front().copied() else { return };
        // Before it leaves the backlog: what the drift moved until now is its credit.
        self.refill(flow, instant(now));
        let state = &mut self.flows.at(flow).state;
        state.bucket.tokens += std::mem::take(&mut state.queued_charge);
        state.queued_units = 0;
        // The next one starts where the oldest of them would have.
        state.start_max = tags.start - spacing(state.terms.unit_ns, tags.units);
        state.start_min = state.start_max;
        self.flows.cancel(flow, cancelled);
        self.track_head(flow);
        self.track_part(flow, now);
    }

    fn charge(&mut self, now: Nanos, request: &Request) {
        self.refill(request.flow, instant(now));
        let (units, drift) = (self.options.cost.of(request) as u32, self.drift);
        let Flow { queue, state, .. } = self.flows.at(request.flow);
        state.bucket.tokens -= f64::from(units);
        let present = instant(now) + if queue.is_empty() { 0 } else { drift };
        state.start_max = state.start_max.max(present) + spacing(state.terms.unit_ns, units);
        if !state.terms.has_contract {
            self.charge_part_beside(request.flow, now, units);
        }
    }

    fn add(&mut self, now: Nanos, request: Request) {
        let at = instant(now);
        self.adjust(at);
        let keeps_turn = self.keeps_turn(request.flow);
        if self.current == Some(request.flow) {
            self.waiting_until = None;
        }
        let asks_on = self.note_think(request.flow, now);
        let drift = self.drift;
        let flow = self.flows.at(request.flow);
        let was_empty = flow.queue.is_empty();
        if was_empty {
            flow.state.start_min += drift;
            flow.state.start_max += drift;
        }
        self.refill(request.flow, at);
        let units = self.options.cost.of(&request) as u32;
        let start = self.start_tag(request.flow, units, at + drift, keeps_turn, asks_on);
        let flow = self.flows.at(request.flow);
        let state = &mut flow.state;
        let tags = Tags { start, delay_ns: state.terms.delay.0, units };
        state.start_min = if was_empty { start } else { state.start_min.min(start) };
        state.start_max = if was_empty { start } else { state.start_max.max(start) };
        state.bucket.tokens -= f64::from(units);
        state.queued_charge += f64::from(units);
        state.queued_units += u64::from(units);
        self.flows.push(request, tags);
        self.track_head(request.flow);
        self.track_part(request.flow, now);
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        let (flow, turn) = match self.select(now) {
            Ok(chosen) => chosen,
            Err(answer) => return answer,
        };
        // Before it may leave the backlog: what the drift moved until now is its credit.
        self.refill(flow, instant(now));
        let position = self.choose_within(flow, now);
        let Some((request, tags)) = self.flows.take(flow, position) else { return Dispatch::Idle };
        // Flushes and discards move nothing: the seek, if one is needed, is the next request's.
        let came_by_seek = request.moves_data() && self.last_sent.replace(flow) != Some(flow);
        let state = &mut self.flows.at(flow).state;
        state.start_min = tags.start;
        state.queued_units -= u64::from(tags.units);
        state.queued_charge = (state.queued_charge - f64::from(tags.units)).max(0.0);
        state.turn_units += u64::from(tags.units);
        state.in_flight.dispatched(now);
        state.sequence.note(&request);
        state.sent_at = now;
        state.came_by_seek = came_by_seek;
        self.in_flight += 1;
        let ahead = turn == Turn::New && tags.start - self.drift > instant(now);
        if turn == Turn::OnSpareTime || (ahead && self.options.spare.is_some()) {
            self.forgive(flow, tags.units, now);
        }
        self.track_head(flow);
        self.track_part(flow, now);
        Dispatch::Send(request)
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let state = &mut self.flows.at(request.flow).state;
        state.completed_at = Some(now);
        if !state.in_flight.completed(now, request) {
            // It hung: what it took was charged then, and says nothing of the disk.
            return;
        }
        // How long a flush takes depends on what was written before it, and a discard on the disk alone, not on their own units.
        if self.in_flight == 1 && request.moves_data() {
            self.measure(now, request);
        }
        let at_device = u64::from(self.in_flight.max(1));
        self.in_flight = self.in_flight.saturating_sub(1);
        let state = &self.flows.at(request.flow).state;
        if !state.terms.has_contract {
            self.charge_part(request.flow, now, at_device);
            self.track_part(request.flow, now);
        }
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
