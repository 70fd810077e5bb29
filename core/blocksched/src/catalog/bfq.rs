//! BFQ: budget fair queueing. Weights are obeyed in bytes, however large or far apart the requests are.
//!
//! One flow is in service at a time and keeps the disk until its budget is used, its time is up, or it has nothing more to
//! ask. For a flow that will ask again at once the disk is kept idle for a short while, and always so when weights differ,
//! because otherwise a synchronous flow could not get more than the others whatever its weight. Where the idling serves only
//! that, others' requests are slipped in. So it is too between equal flows that have parts of their own of a disk that seeks: to go
//! from one part to another takes longer than to stay in one.
//!
//! Constants and rules are the public ones of the kernel's BFQ; low-latency heuristics (weight raising) are left out, as
//! weights are obeyed only without them.

#[cfg(test)]
mod tests;

use super::{BuildOptions, Entry, Promise, UNIT_BYTES};
use crate::in_flight::InFlight;
use crate::injection::{Injection, Limit};
use crate::peak_rate::PeakRate;
use crate::table::{FlowTable, SWEEP_WINDOW, sweep};
use crate::wf2q::Level;
use crate::{Class, Cost, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, Scheduler};
use minerva_model::Nanos;

/// Options, with the kernel's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BfqOptions {
    /// The greatest budget; none for what the disk can transfer within the time-out, as it is learnt.
    pub budget_bytes_max: Option<u64>,
    /// How long a flow may stay in service.
    pub budget_timeout: Nanos,
    /// How long the disk is kept idle for the flow in service.
    pub slice_idle: Nanos,
    /// How much a write that nobody waits for is charged.
    pub async_charge_factor: u64,
    /// The disk seeks.
    pub rotational: bool,
    /// The disk takes several requests at once.
    pub queues_internally: bool,
    /// Each flow has a part of the disk of its own.
    pub flows_lie_apart: bool,
    /// The clock of the timer by which the block layer asks again when it got no request. It is set for the next tick, and a
    /// timer never comes early: it fires at the one after that. None if the block layer does not ask.
    pub tick: Option<Nanos>,
}

impl Default for BfqOptions {
    fn default() -> Self {
        Self {
            budget_bytes_max: None,
            budget_timeout: Nanos::from_millis(125),
            slice_idle: Nanos::from_millis(8),
            async_charge_factor: 3,
            rotational: true,
            queues_internally: false,
            flows_lie_apart: false,
            tick: Some(Nanos::from_millis(4)),
        }
    }
}

/// The greatest budget until the disk's rate is known.
const BUDGET_BYTES_MAX: u64 = 16 * 1024 * 512;
/// Services before the learnt rate is trusted.
const SERVICES_MIN: u32 = 11;
/// Bytes a second that a disk is taken for at first: one that seeks, one that does not.
const RATES_START: [f64; 2] = [73e6, 172e6];
/// Shorter services do not show that a flow is slow.
const SLOW_TIME_MIN: Nanos = Nanos::from_millis(20);
/// A jump further than this is a seek.
const SEEK_BYTES: u64 = 8 * 100 * 512;
/// More seeks than this among the last 32 requests make a flow seeky.
const SEEKS_MAX: u32 = 19;
/// On a disk that does not seek, only one request from this size on is at the disk when it is slipped in.
const LARGE_BYTES: u64 = 64 * 512;
/// The oldest request of a flow goes first once it waited this long.
const FIFO_EXPIRE_SYNC: Nanos = Nanos::from_millis(125);

/// The bytes of service that a request is. A discard moves none, whatever its length, and is charged as [`Cost`] charges it.
fn service_bytes(request: &Request) -> u64 {
    u64::from(if request.kind == Kind::Discard { UNIT_BYTES } else { request.length_bytes.max(512) })
}

/// BFQ. Not work-conserving: it idles for the flow in service.
#[derive(Debug)]
pub struct Bfq {
    options: BfqOptions,
    flows: FlowTable<State, ()>,
    groups: Level,
    group_flows: Vec<Level>,
    group_weights: Vec<u32>,
    service: Option<Service>,
    position_bytes: u64,
    peak_rate: PeakRate,
    services: u32,
    injection: Injection,
    /// The block layer asks: something was added, or a tick has come.
    asked: bool,
    /// When the timer fires that is set.
    tick_at: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Service {
    flow: FlowId,
    group: usize,
    began: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    budget_bytes: u64,
    in_flight: InFlight,
    last_end_bytes: Option<u64>,
    seeks: u32,
    completed_at: Option<Nanos>,
    think_mean_ns: u64,
    sync: bool,
    limit: Limit,
}

/// Why the disk is kept idle for the flow in service, while others have work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idling {
    /// It is not.
    No,
    /// The flow would lose its share, or its part of the disk be left.
    ForFairness,
    /// The disk does more in all.
    ForThroughput,
}

/// Why service ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    BudgetUsed,
    Timeout,
    TooIdle,
    NoMore,
}

impl Bfq {
    /// With these options.
    pub fn new(options: BfqOptions) -> Self {
        Self {
            options,
            flows: FlowTable::new(),
            groups: Level::default(),
            group_flows: Vec::new(),
            group_weights: Vec::new(),
            service: None,
            position_bytes: 0,
            peak_rate: PeakRate::default(),
            services: 0,
            injection: Injection::default(),
            asked: false,
            tick_at: None,
        }
    }

    /// The greatest budget now.
    fn budget_bytes_max(&self) -> u64 {
        let learnt =
            || self.peak_rate.bytes_within(self.options.budget_timeout).filter(|_| self.services > SERVICES_MIN);
        self.options.budget_bytes_max.or_else(learnt).unwrap_or(BUDGET_BYTES_MAX).max(32)
    }

    fn group_weight(&self, group: usize) -> u64 {
        u64::from(self.group_weights.get(group).copied().unwrap_or(100))
    }

    fn level(&mut self, group: usize) -> &mut Level {
        if group >= self.group_flows.len() {
            self.group_flows.resize_with(group + 1, Level::default);
        }
        &mut self.group_flows[group]
    }

    /// The weight that a flow's class, level and weight give it. The kernel's is (8 - level) x 10 for want of another; here that is a
    /// factor, 1 at the usual level.
    fn weight_of(parameters: &FlowParameters) -> u64 {
        let by_level = 25 * (8 - u64::from(parameters.level.min(7)));
        let weight = u64::from(parameters.weight.clamp(1, 10_000)) * by_level;
        match parameters.class {
            Class::RealTime => weight * 100,
            Class::BestEffort => weight,
            Class::Idle => 1,
        }
    }

    fn budget_of(&self, state: &State) -> u64 {
        let most = self.budget_bytes_max();
        if state.budget_bytes == 0 { most / 3 * 2 } else { state.budget_bytes.clamp(most / 32, most) }
    }

    /// Whether the disk is ever kept idle for the flow in service.
    fn may_idle(&mut self, service: Service) -> bool {
        let flow = self.flows.at(service.flow);
        let may_come = flow.state.sync && !flow.state.in_flight.hangs();
        self.options.slice_idle > Nanos::ZERO && may_come && flow.parameters.class != Class::Idle
    }

    /// Until when the disk is kept idle for the flow in service, if it is: for who is away from its last completion on.
    fn idle_until(&mut self, service: Service) -> Nanos {
        let state = &self.flows.at(service.flow).state;
        if state.in_flight.count() > 0 {
            return state.in_flight.hung_at();
        }
        state.completed_at.unwrap_or(service.began) + self.options.slice_idle
    }

    /// Whether the disk is kept idle for the flow in service, while others have work.
    fn idling(&mut self, service: Service) -> Idling {
        if !self.may_idle(service) {
            return Idling::No;
        }
        // As in the kernel, two groups with work are never taken for equals, whatever their weights.
        let symmetric = self.groups.active() <= 1 && self.level(service.group).is_symmetric();
        let slice_idle = self.options.slice_idle;
        let BfqOptions { rotational, queues_internally, flows_lie_apart, .. } = self.options;
        let state = &self.flows.at(service.flow).state;
        let thinks_briefly = state.think_mean_ns <= slice_idle.0;
        let seeky = state.seeks.count_ones() > SEEKS_MAX;
        let gains = rotational && !queues_internally || (rotational || !queues_internally) && !seeky;
        let stays_near = thinks_briefly && rotational && flows_lie_apart;
        match (thinks_briefly && gains, symmetric && !stays_near) {
            (true, _) => Idling::ForThroughput,
            (false, false) => Idling::ForFairness,
            (false, true) => Idling::No,
        }
    }

    /// Ends the service of a flow that did not come back in time, whether anybody else had work meanwhile or not.
    fn end_if_away(&mut self, now: Nanos) {
        let Some(service) = self.service else { return };
        if !self.flows.at(service.flow).queue.is_empty() {
            return;
        }
        let until = self.idle_until(service);
        if until <= now && self.may_idle(service) {
            let hung = self.flows.at(service.flow).state.in_flight.give_up();
            self.injection.give_up(hung);
            self.peak_rate.give_up(hung);
            self.end_service(until, End::TooIdle);
        }
    }

    /// Goes on with the flow in service: what to do, or `None` when its service has ended.
    fn go_on(&mut self, now: Nanos) -> Option<Dispatch> {
        self.end_if_away(now);
        let service = self.service?;
        let timed_out = now.since(service.began) >= self.options.budget_timeout;
        let flow = self.flows.at(service.flow);
        if let Some((request, ())) = flow.queue.front() {
            let cost = service_bytes(request);
            let used = self.level(service.group).used_bytes();
            let end = if timed_out && used > 0 {
                End::Timeout
            } else if used > 0 && cost > self.level(service.group).left_bytes() {
                End::BudgetUsed
            } else {
                return Some(self.send(service.flow, service.group, true, now));
            };
            self.end_service(now, end);
            return None;
        }
        let until = self.idle_until(service);
        let idling = self.idling(service);
        // Also past its time: it leaves with its next request queued, for without one it would lose its place.
        if idling == Idling::No {
            self.end_service(now, if timed_out { End::Timeout } else { End::NoMore });
            return None;
        }
        Some(if idling == Idling::ForFairness { self.inject(service, now, until) } else { Dispatch::WaitUntil(until) })
    }

    /// Slips in a request of somebody else if that is bearable; else says to wait on, `until` then at most.
    fn inject(&mut self, service: Service, now: Nanos, until: Nanos) -> Dispatch {
        let limit = self.flows.at(service.flow).state.limit.requests();
        let tick = self.options.tick.filter(|_| self.injection.in_flight() < limit);
        let Some(tick) = tick else { return Dispatch::WaitUntil(until) };
        // A completion does not make the block layer ask while a flow is waited for.
        if self.asked
            && let Some((group, flow)) = self.candidate(service)
        {
            return self.send(flow, group, false, now);
        }
        // One that is set stays as it is.
        let tick_at = *self.tick_at.get_or_insert(Nanos((now.0 / tick.0.max(1) + 2) * tick.0.max(1)));
        Dispatch::WaitUntil(until.min(tick_at))
    }

    /// Who is next after the flow in service, if a request of theirs can be slipped in.
    fn candidate(&mut self, service: Service) -> Option<(usize, FlowId)> {
        let (group, slot) = match self.level(service.group).next_waiting() {
            Some(slot) => (service.group, slot),
            None => self.groups.next_waiting().and_then(|group| Some((group, self.level(group).next_waiting()?)))?,
        };
        let flow = FlowId(slot as u32);
        let bytes = self.flows.at(flow).queue.front().map(|(request, ())| service_bytes(request))?;
        let is_large = !self.options.rotational && bytes >= LARGE_BYTES;
        let fits = bytes <= self.level(group).left_bytes_of(slot);
        (fits && !(is_large && self.injection.in_flight() > 0)).then_some((group, flow))
    }

    fn send(&mut self, flow: FlowId, group: usize, in_service: bool, now: Nanos) -> Dispatch {
        let position = self.position_bytes;
        let index = sweep(&self.flows.at(flow).queue, position, now, FIFO_EXPIRE_SYNC, SWEEP_WINDOW);
        let Some((request, ())) = self.flows.take(flow, index) else { return Dispatch::Idle };
        let factor = if request.sync { 1 } else { self.options.async_charge_factor };
        let charge = service_bytes(&request) * factor;
        self.groups.serve(group, charge);
        self.level(group).serve(flow.index(), charge);
        let has_more = !self.flows.at(flow).queue.is_empty();
        if !in_service && !has_more {
            self.leave(flow, group);
        }
        self.flows.at(flow).state.in_flight.dispatched(now);
        self.injection.sent(&request, in_service);
        if request.moves_data() {
            let near = position.abs_diff(request.offset_bytes) <= SEEK_BYTES;
            let start = RATES_START[usize::from(!self.options.rotational)];
            self.peak_rate.dispatched(now, u64::from(request.length_bytes), near, start);
            self.position_bytes = request.end_bytes();
        }
        Dispatch::Send(request)
    }

    /// A flow that is not in service has no more work.
    fn leave(&mut self, flow: FlowId, group: usize) {
        self.level(group).leave(flow.index());
        if self.level(group).active() == 0 {
            self.groups.leave(group);
        }
    }

    /// Ends the service and sets the next budget by how it ended.
    fn end_service(&mut self, now: Nanos, end: End) {
        let Some(service) = self.service.take() else { return };
        let most = self.budget_bytes_max();
        let least = most / 32;
        let used = self.level(service.group).used_bytes();
        let left = self.level(service.group).left_bytes();
        let spent = now.since(service.began);
        let flow = self.flows.at(service.flow);
        let before = if flow.state.budget_bytes == 0 { most / 3 * 2 } else { flow.state.budget_bytes };
        flow.state.budget_bytes = match end {
            End::TooIdle if flow.state.in_flight.count() > 0 => (2 * before).min(most),
            End::TooIdle => before.saturating_sub(4 * least).max(least),
            End::Timeout => (2 * before).min(most),
            End::BudgetUsed => (4 * before).min(most),
            End::NoMore => used.clamp(least, most),
        };
        // A flow that held the disk long for little is charged for the time: seeks are paid by who makes them.
        let slow = end == End::Timeout && left >= (used + left) / 3 || spent > SLOW_TIME_MIN && used < most / 2;
        let by_time = u128::from(most) * u128::from(spent.0) / u128::from(self.options.budget_timeout.0.max(1));
        let charged = if slow { u64::try_from(by_time).unwrap_or(most).min(most).max(used) } else { used };
        let flow = self.flows.at(service.flow);
        let weight = Self::weight_of(&flow.parameters);
        let (state, more) = (flow.state, !flow.queue.is_empty());
        let budget = self.budget_of(&state);
        self.level(service.group).expire(charged, more.then_some((weight, budget)));
        let group_more = self.level(service.group).active() > 0;
        let group_weight = self.group_weight(service.group);
        self.groups.expire(charged, group_more.then_some((group_weight, most)));
    }

    fn answer(&mut self, now: Nanos) -> Dispatch {
        if self.flows.queued() == 0 {
            return Dispatch::Idle;
        }
        if let Some(answer) = self.go_on(now) {
            return answer;
        }
        let Some(group) = self.groups.pick() else { return Dispatch::Idle };
        let Some(slot) = self.level(group).pick() else { return Dispatch::Idle };
        let flow = FlowId(slot as u32);
        self.service = Some(Service { flow, group, began: now });
        self.services = self.services.saturating_add(1);
        self.send(flow, group, true, now)
    }

    fn activate(&mut self, flow: FlowId) {
        let parameters = self.flows.at(flow).parameters;
        let state = self.flows.at(flow).state;
        let group = parameters.group.index();
        let (weight, budget) = (Self::weight_of(&parameters), self.budget_of(&state));
        self.level(group).activate(flow.index(), weight, budget);
        if !self.groups.is_active(group) {
            let (weight, budget) = (self.group_weight(group), self.budget_bytes_max());
            self.groups.activate(group, weight, budget);
        }
    }
}

impl BfqOptions {
    /// The kernel's BFQ finds out whether a disk queues by how many requests it has at once.
    fn for_disk(disk: BuildOptions) -> Self {
        Self {
            rotational: disk.rotational,
            queues_internally: !disk.rotational || disk.depth > 1,
            flows_lie_apart: disk.flows_lie_apart,
            ..Self::default()
        }
    }
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "bfq",
    summary: "Budget fair queueing.",
    build: |disk| Box::new(Bfq::new(BfqOptions::for_disk(disk))),
    options: |disk| format!("{:?}", BfqOptions::for_disk(disk)),
    depth: |disk| disk.depth,
    sends_beside_hung: false,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::GroupWeights],
    discipline: None,
    conserves_work: false,
};

impl Scheduler for Bfq {
    fn name(&self) -> &'static str {
        "bfq"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        let old = self.flows.at(flow).parameters;
        // A flow with work stays in its group until it has none: its place in the group's order is there.
        let busy = self.level(old.group.index()).is_active(flow.index());
        let group = if busy { old.group } else { parameters.group };
        self.flows.at(flow).parameters = FlowParameters { group, ..parameters };
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        let FlowParameters { group, .. } = self.flows.at(flow).parameters;
        let idle = self.flows.at(flow).queue.is_empty();
        if idle && self.service.is_some_and(|service| service.flow == flow) {
            self.end_service(now, End::NoMore);
        }
        self.level(group.index()).forget(flow.index());
        let flow = self.flows.at(flow);
        flow.parameters = FlowParameters { group, ..FlowParameters::default() };
        flow.state = State { in_flight: flow.state.in_flight, ..State::default() };
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        self.flows.cancel(flow, cancelled);
        if self.service.is_some_and(|service| service.flow == flow) {
            self.end_service(now, End::NoMore);
            return;
        }
        let group = self.flows.at(flow).parameters.group.index();
        if self.level(group).is_active(flow.index()) {
            self.leave(flow, group);
        }
    }

    fn charge(&mut self, _now: Nanos, request: &Request) {
        let factor = if request.sync { 1 } else { self.options.async_charge_factor };
        let bytes = service_bytes(request) * factor;
        let parameters = self.flows.at(request.flow).parameters;
        let group = parameters.group.index();
        self.level(group).charge(request.flow.index(), Self::weight_of(&parameters), bytes);
        let weight = self.group_weight(group);
        self.groups.charge(group, weight, bytes);
    }

    fn set_group_weight(&mut self, _now: Nanos, group: GroupId, weight: u32) {
        let group = group.index();
        if group >= self.group_weights.len() {
            self.group_weights.resize(group + 1, 100);
        }
        self.group_weights[group] = weight.clamp(1, 10_000);
    }

    fn add(&mut self, now: Nanos, request: Request) {
        self.end_if_away(now);
        let flow = self.flows.at(request.flow);
        let state = &mut flow.state;
        let is_away = flow.queue.is_empty() && state.in_flight.count() == 0 && !state.in_flight.hangs();
        if let Some(completed_at) = state.completed_at.filter(|_| is_away) {
            // A sample of more than twice the idle time says no more than that.
            let think = now.since(completed_at).0.min(2 * self.options.slice_idle.0.max(1));
            state.think_mean_ns = (7 * state.think_mean_ns + think) / 8;
        }
        if request.moves_data() {
            let jumped = state.last_end_bytes.is_some_and(|end| end.abs_diff(request.offset_bytes) > SEEK_BYTES);
            state.seeks = state.seeks << 1 | u32::from(jumped);
            state.last_end_bytes = Some(request.end_bytes());
        }
        state.sync = request.sync || request.kind == Kind::Read;
        let in_service = self.service.is_some_and(|service| service.flow == request.flow);
        if in_service && state.sync && flow.queue.is_empty() {
            let thinks_long = state.think_mean_ns > self.options.slice_idle.0;
            self.injection.arrived(now, &mut state.limit, thinks_long);
        }
        self.asked = true;
        if self.flows.push(request, ()) && !in_service {
            self.activate(request.flow);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        self.asked |= self.tick_at.take_if(|tick_at| *tick_at <= now).is_some();
        let answer = self.answer(now);
        // Having got a request, the block layer asks for the next.
        self.asked &= matches!(answer, Dispatch::Send(_));
        answer
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let state = &mut self.flows.at(request.flow).state;
        let counted = state.in_flight.completed(now, request);
        state.completed_at = Some(now);
        if counted {
            self.injection.completed(now, request, &mut state.limit);
        }
        if counted && request.moves_data() {
            self.peak_rate.completed(now);
        }
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
