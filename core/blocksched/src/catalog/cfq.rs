//! CFQ: completely fair queueing, by time. It left the kernel with 5.0; the seeds measured against it.
//!
//! Groups share the disk by weight: each has a virtual time that grows by the time it held the disk over its part of all
//! weights, and the least is served. Inside a group each flow gets slices of time, longer for better levels, in an order in
//! which better levels come sooner; the real-time class goes first and the idle class only when nobody else asks. While a
//! flow's slice lasts the disk is kept idle for it when it thinks briefly and does not seek.

mod hanging;
#[cfg(test)]
mod tests;

use super::{Entry, Promise, UNIT_BYTES};
use crate::in_flight::{AtDevice, InFlight, PassedOver};
use crate::table::{FlowTable, SWEEP_WINDOW, sweep};
use crate::{Class, Cost, Dispatch, FlowId, FlowParameters, GroupId, IndexedHeap, Request, Scheduler};
use minerva_model::Nanos;
use std::cmp::Reverse;

/// Options, with the kernel's defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CfqOptions {
    /// A slice of a flow at level 4 whose requests somebody waits for.
    pub slice_sync: Nanos,
    /// The same for writes that nobody waits for.
    pub slice_async: Nanos,
    /// How long the disk is kept idle for a flow.
    pub slice_idle: Nanos,
    /// How long it is kept idle for a group whose last flow ran out of work; zero for never.
    pub group_idle: Nanos,
    /// Slices are shortened so that everyone is served within about this time.
    pub target_latency: Nanos,
    /// Requests at the device at once.
    pub quantum: u32,
}

impl Default for CfqOptions {
    fn default() -> Self {
        Self {
            slice_sync: Nanos::from_millis(100),
            slice_async: Nanos::from_millis(40),
            slice_idle: Nanos::from_millis(8),
            group_idle: Nanos::from_millis(8),
            target_latency: Nanos::from_millis(300),
            quantum: 8,
        }
    }
}

/// A jump further than this is a seek.
const SEEK_BYTES: u64 = 8 * 100 * 512;
/// More seeks than this among the last 32 requests make a flow seeky.
const SEEKS_MAX: u32 = 4;
/// A new group, and an idle-class flow, stands this far behind the last.
const LAST_OFFSET_NS: u64 = 200_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    in_flight: InFlight,
    seeks: u32,
    last_end_bytes: Option<u64>,
    completed_at: Option<Nanos>,
    think_mean_ns: u64,
    sync: bool,
    /// What was left of the last slice, or how far it was overrun, in nanoseconds.
    residual_ns: i64,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Flows with work, by class, by their place in the order.
    trees: [IndexedHeap<i64>; 3],
    /// The last place that was given out in the idle class.
    idle_last: Option<i64>,
    weight: Option<u32>,
    virtual_ns: u64,
}

impl Group {
    fn busy(&self) -> usize {
        self.trees.iter().map(IndexedHeap::len).sum()
    }
}

#[derive(Clone, Copy, Debug)]
struct Service {
    flow: FlowId,
    group: usize,
    began: Nanos,
    /// The slice lasts this long from its first completion: time until then is the disk's, or a host's below a guest.
    slice: Nanos,
    slice_end: Option<Nanos>,
}

/// CFQ. Not work-conserving: it idles within a slice.
#[derive(Debug)]
pub struct Cfq {
    options: CfqOptions,
    flows: FlowTable<State, ()>,
    groups: Vec<Group>,
    /// Groups with work, by virtual time.
    by_virtual: IndexedHeap<u64>,
    /// The same, the last first.
    by_virtual_last: IndexedHeap<Reverse<u64>>,
    /// The greatest virtual time that a group was served up to: where the first starts that comes to an idle disk.
    served_virtual_ns: u64,
    busy_weight: u64,
    service: Option<Service>,
    position_bytes: u64,
    at_device: AtDevice,
    passed_over: PassedOver,
}

impl Cfq {
    /// With these options.
    pub fn new(options: CfqOptions) -> Self {
        Self {
            options,
            flows: FlowTable::new(),
            groups: Vec::new(),
            by_virtual: IndexedHeap::new(),
            by_virtual_last: IndexedHeap::new(),
            served_virtual_ns: 0,
            busy_weight: 0,
            service: None,
            position_bytes: 0,
            at_device: AtDevice::default(),
            passed_over: PassedOver::default(),
        }
    }

    fn group(&mut self, group: usize) -> &mut Group {
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, Group::default);
        }
        &mut self.groups[group]
    }

    fn weight(&mut self, group: usize) -> u64 {
        u64::from(self.group(group).weight.unwrap_or(500))
    }

    /// A flow's slice before shortening: a fifth of the base more or less for each level from 4.
    fn base_slice(&self, parameters: &FlowParameters, sync: bool) -> i64 {
        let base = if sync { self.options.slice_sync } else { self.options.slice_async }.0 as i64;
        base + base / 5 * (4 - i64::from(parameters.level.min(7)))
    }

    /// The slice of a flow that was taken out of its group's order to be served, shortened when many flows share the target latency.
    fn slice(&mut self, flow: FlowId, group: usize) -> u64 {
        let Flow { parameters, sync } = self.describe(flow);
        let slice = self.base_slice(&parameters, sync).max(1) as u64;
        if !sync {
            return slice;
        }
        let share = self.weight(group) as f64 / self.busy_weight.max(1) as f64;
        let group_slice = self.options.target_latency.0 as f64 * share;
        let expected = self.options.slice_sync.0 as f64 * (self.group(group).busy() + 1) as f64;
        if expected <= group_slice {
            return slice;
        }
        let least = (2 * self.options.slice_idle.0 * slice / self.options.slice_sync.0.max(1)).min(slice);
        ((slice as f64 * group_slice / expected) as u64).max(least)
    }

    fn describe(&mut self, flow: FlowId) -> Flow {
        let flow = self.flows.at(flow);
        Flow { parameters: flow.parameters, sync: flow.state.sync }
    }

    /// Puts a flow with work into its group's order, and the group into the order of groups.
    fn enqueue(&mut self, flow: FlowId, now: Nanos) {
        let Flow { parameters, sync } = self.describe(flow);
        let best = self.base_slice(&FlowParameters { level: 0, ..parameters }, sync);
        let own = self.base_slice(&parameters, sync);
        let residual_ns = std::mem::take(&mut self.flows.at(flow).state.residual_ns);
        let index = parameters.group.index();
        let weight = self.weight(index);
        let start_ns = self.newcomers_start_ns();
        let group = self.group(index);
        let was_busy = group.busy() > 0;
        let others = (group.busy() as i64).max(0);
        let mut key = now.0 as i64 + others * (best - own) - residual_ns;
        if parameters.class == Class::Idle {
            key = group.idle_last.map_or(now.0 as i64, |last| last.max(now.0 as i64) + LAST_OFFSET_NS as i64);
            group.idle_last = Some(key);
        }
        group.trees[parameters.class as usize].set(flow.index(), key);
        if !was_busy {
            let in_service = self.service.is_some_and(|service| service.group == index);
            if !in_service {
                self.busy_weight += weight;
                let group = self.group(index);
                group.virtual_ns = group.virtual_ns.max(start_ns);
            }
            let virtual_ns = self.group(index).virtual_ns;
            self.place(index, Some(virtual_ns));
        }
    }

    /// The virtual time at which a group starts that had no work: behind the last that has, the one in service included.
    fn newcomers_start_ns(&mut self) -> u64 {
        let waiting = self.by_virtual_last.peek().map(|(Reverse(virtual_ns), _)| virtual_ns);
        let in_service = self.service.map(|service| self.group(service.group).virtual_ns);
        waiting.max(in_service).map_or(self.served_virtual_ns, |last| last + LAST_OFFSET_NS)
    }

    /// Gives a group its place in the order of groups, or takes it out.
    fn place(&mut self, group: usize, virtual_ns: Option<u64>) {
        match virtual_ns {
            Some(virtual_ns) => {
                self.by_virtual.set(group, virtual_ns);
                self.by_virtual_last.set(group, Reverse(virtual_ns));
            }
            None => {
                self.by_virtual.remove(group);
                self.by_virtual_last.remove(group);
            }
        }
    }

    /// Whether the disk is ever kept idle for the flow in service.
    fn may_idle(&mut self, service: Service) -> bool {
        let slice_idle = self.options.slice_idle;
        let flow = self.flows.at(service.flow);
        let may_come = flow.state.sync && !flow.state.in_flight.hangs();
        let idles = may_come && flow.parameters.class != Class::Idle && slice_idle > Nanos::ZERO;
        idles && flow.state.think_mean_ns <= slice_idle.0
    }

    /// Whether it is kept idle for it while others have work.
    fn should_idle(&mut self, service: Service) -> bool {
        let seeky = self.flows.at(service.flow).state.seeks.count_ones() > SEEKS_MAX;
        // A seeky flow gains nothing by itself, but its group would lose its turn to the others.
        let last_of_group = self.group(service.group).busy() == 0 && !self.by_virtual.is_empty();
        self.may_idle(service) && (!seeky || (last_of_group && self.options.group_idle > Nanos::ZERO))
    }

    /// Whether a slice that is over waits for its flow's next request: without it the group would leave the order of groups
    /// with every slice and come back at its end, whatever its weight.
    fn should_wait_busy(&mut self, service: Service, has_work: bool) -> bool {
        !has_work
            && self.options.group_idle > Nanos::ZERO
            && self.group(service.group).busy() == 0
            && self.should_idle(service)
    }

    /// Since when the flow in service has nothing at the device.
    fn away_since(&mut self, service: Service) -> Nanos {
        self.flows.at(service.flow).state.completed_at.unwrap_or_default().max(service.began)
    }

    /// Until when the disk is kept idle for the flow in service, if it is.
    fn idle_until(&mut self, service: Service) -> Nanos {
        let in_flight = self.flows.at(service.flow).state.in_flight;
        if in_flight.count() > 0 {
            return in_flight.hung_at();
        }
        let since = self.away_since(service);
        let until = since + self.options.slice_idle;
        service.slice_end.filter(|end| *end > since).map_or(until, |end| until.min(end))
    }

    /// Ends the service of a flow that did not come back in time. It is waited for from its last completion on, whether anybody
    /// else had work then or not, and is not charged for a disk that nobody wanted after that. `asks`: who is about to have work.
    fn end_if_away(&mut self, now: Nanos, asks: Option<FlowId>) {
        let Some(service) = self.service else { return };
        let flow = self.flows.at(service.flow);
        let (has_work, is_away) = (!flow.queue.is_empty(), flow.state.in_flight.count() == 0);
        let may_idle = self.may_idle(service);
        if has_work || !is_away && !may_idle {
            return;
        }
        let until = if may_idle { self.idle_until(service) } else { self.away_since(service) };
        if until <= now {
            let given_up = self.flows.at(service.flow).state.in_flight.give_up();
            self.at_device.give_up(service.flow);
            let another_asks = asks.is_some_and(|flow| flow != service.flow);
            if given_up > 0 && (another_asks || self.somebody_waits()) {
                self.flows.at(service.flow).state.in_flight.pass_over();
            }
            self.end_service(until);
        }
    }

    /// Goes on with the flow in service: what to do, or `None` when its slice has ended.
    fn go_on(&mut self, now: Nanos) -> Option<Dispatch> {
        self.end_if_away(now, None);
        let service = self.service?;
        let flow = self.flows.at(service.flow);
        let has_work = !flow.queue.is_empty();
        let over = service.slice_end.is_some_and(|end| now >= end);
        if has_work && !over {
            return Some(self.send(service, now));
        }
        let stays = if over { self.should_wait_busy(service, has_work) } else { self.should_idle(service) };
        if !stays {
            self.end_service(now);
            return None;
        }
        Some(Dispatch::WaitUntil(self.idle_until(service)))
    }

    fn send(&mut self, service: Service, now: Nanos) -> Dispatch {
        let position = self.position_bytes;
        let flow = self.flows.at(service.flow);
        let expire = if flow.state.sync { Nanos::from_millis(125) } else { Nanos::from_millis(250) };
        let index = sweep(&flow.queue, position, now, expire, SWEEP_WINDOW);
        let Some((request, ())) = self.flows.take(service.flow, index) else { return Dispatch::Idle };
        self.flows.at(service.flow).state.in_flight.dispatched(now);
        self.at_device.dispatched(now, &request);
        if request.moves_data() {
            self.position_bytes = request.end_bytes();
        }
        self.service = Some(service);
        Dispatch::Send(request)
    }

    fn end_service(&mut self, now: Nanos) {
        let Some(service) = self.service.take() else { return };
        let used = now.since(service.began).0.max(1);
        let weight = self.weight(service.group);
        let total = self.busy_weight.max(weight);
        let charge = (u128::from(used) * u128::from(total) / u128::from(weight)) as u64;
        let group = self.group(service.group);
        group.virtual_ns += charge;
        let (virtual_ns, others_busy) = (group.virtual_ns, group.busy() > 0);
        self.served_virtual_ns = self.served_virtual_ns.max(virtual_ns);
        if others_busy {
            self.place(service.group, Some(virtual_ns));
        }
        let flow = self.flows.at(service.flow);
        let has_work = !flow.queue.is_empty();
        if has_work {
            flow.state.residual_ns = service.slice_end.unwrap_or(now).0 as i64 - now.0 as i64;
            let slot = service.group;
            if !others_busy {
                self.busy_weight -= weight;
            }
            self.requeue(service.flow, slot, now);
        } else if !others_busy {
            self.busy_weight -= weight;
        }
    }

    /// A flow whose slice ended with work left goes back into its group's order without its group losing its place.
    fn requeue(&mut self, flow: FlowId, group: usize, now: Nanos) {
        let before = self.group(group).virtual_ns;
        self.enqueue(flow, now);
        self.group(group).virtual_ns = before;
        self.place(group, Some(before));
    }

    /// Starts the next flow's slice.
    fn start_service(&mut self, now: Nanos) -> Option<Service> {
        let (_, group) = self.by_virtual.peek()?;
        let tree = self.group(group).trees.iter_mut().find(|tree| !tree.is_empty())?;
        let (_, slot) = tree.pop()?;
        let flow = FlowId(slot as u32);
        if self.group(group).busy() == 0 {
            self.place(group, None);
        }
        let slice = self.slice(flow, group);
        Some(Service { flow, group, began: now, slice: Nanos(slice), slice_end: None })
    }
}

/// What of a flow decides its slices.
struct Flow {
    parameters: FlowParameters,
    sync: bool,
}

/// In the catalogue.
pub(super) const ENTRY: Entry = Entry {
    name: "cfq",
    summary: "Completely fair queueing, by time; left the kernel with 5.0.",
    build: |_| Box::new(Cfq::new(CfqOptions::default())),
    options: |_| format!("{:?}", CfqOptions::default()),
    depth: |disk| disk.depth,
    sends_beside_hung: true,
    cost: Cost::PerBytes(UNIT_BYTES),
    promises: &[Promise::GroupWeights],
    discipline: None,
    conserves_work: false,
};

impl Scheduler for Cfq {
    fn name(&self) -> &'static str {
        "cfq"
    }

    fn set_flow(&mut self, _now: Nanos, flow: FlowId, parameters: FlowParameters) {
        let old = self.flows.at(flow).parameters;
        let in_service = self.service.is_some_and(|service| service.flow == flow);
        let busy = in_service || !self.flows.at(flow).queue.is_empty();
        // A flow with work keeps its place in the order until it has none.
        let (group, class) = if busy { (old.group, old.class) } else { (parameters.group, parameters.class) };
        self.flows.at(flow).parameters = FlowParameters { group, class, ..parameters };
    }

    fn remove_flow(&mut self, now: Nanos, flow: FlowId) {
        // Its number may be another's next.
        if self.flows.at(flow).state.in_flight.is_passed_over() {
            self.take_back(flow, now);
        }
        let idle = self.flows.at(flow).queue.is_empty();
        if idle && self.service.is_some_and(|service| service.flow == flow) {
            self.end_service(now);
        }
        self.set_flow(now, flow, FlowParameters::default());
        let flow = self.flows.at(flow);
        flow.state = State { in_flight: flow.state.in_flight, sync: flow.state.sync, ..State::default() };
    }

    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        self.flows.cancel(flow, cancelled);
        self.passed_over.remove(flow);
        if self.service.is_some_and(|service| service.flow == flow) {
            self.end_service(now);
            return;
        }
        self.leave(flow);
    }

    fn set_group_weight(&mut self, _now: Nanos, group: GroupId, weight: u32) {
        let index = group.index();
        let before = self.weight(index);
        let busy = self.by_virtual.key(index).is_some() || self.service.is_some_and(|service| service.group == index);
        self.group(index).weight = Some(weight.clamp(1, 10_000));
        if busy {
            self.busy_weight = self.busy_weight - before + self.weight(index);
        }
    }

    fn add(&mut self, now: Nanos, request: Request) {
        self.end_if_away(now, Some(request.flow));
        let cap = 2 * self.options.slice_idle.0.max(1);
        let flow = self.flows.at(request.flow);
        let state = &mut flow.state;
        let is_away = flow.queue.is_empty() && state.in_flight.count() == 0 && !state.in_flight.hangs();
        if let Some(completed_at) = state.completed_at.filter(|_| is_away) {
            state.think_mean_ns = (7 * state.think_mean_ns + now.since(completed_at).0.min(cap)) / 8;
        }
        if request.moves_data() {
            let jumped = state.last_end_bytes.is_some_and(|end| end.abs_diff(request.offset_bytes) > SEEK_BYTES);
            state.seeks = state.seeks << 1 | u32::from(jumped);
            state.last_end_bytes = Some(request.end_bytes());
        }
        state.sync = request.sync;
        let in_flight = state.in_flight;
        let in_service = self.service.is_some_and(|service| service.flow == request.flow);
        let is_first = self.flows.push(request, ());
        if !in_flight.is_passed_over() {
            self.passed_over.used(now);
            if is_first && !in_service {
                self.enqueue(request.flow, now);
            }
        } else if is_first {
            self.passed_over.set(request.flow, &in_flight);
        }
    }

    fn next(&mut self, now: Nanos) -> Dispatch {
        while let Some(flow) = self.passed_over.alone(now) {
            self.take_back(flow, now);
        }
        if let Some(flow) = self.passed_over.due(now) {
            return self.probe(flow, now);
        }
        if !self.has_work() {
            return self.passed_over.wait();
        }
        if self.at_device.count() >= self.options.quantum as usize {
            let until = self.at_device.hung_at();
            if now < until {
                return Dispatch::WaitUntil(until);
            }
            self.make_room(now);
        }
        if let Some(answer) = self.go_on(now) {
            return answer;
        }
        match self.start_service(now) {
            Some(service) => self.send(service, now),
            None => Dispatch::Idle,
        }
    }

    fn complete(&mut self, now: Nanos, request: &Request) {
        let counted = self.at_device.completed(now, request);
        let state = &mut self.flows.at(request.flow).state;
        let was_passed_over = state.in_flight.is_passed_over();
        state.in_flight.completed_one(now, counted);
        state.completed_at = Some(now);
        if was_passed_over {
            self.take_back(request.flow, now);
        }
        self.passed_over.used(now);
        if let Some(service) = self.service.as_mut().filter(|service| service.flow == request.flow) {
            service.slice_end.get_or_insert(now + service.slice);
        }
    }

    fn queued(&self) -> usize {
        self.flows.queued()
    }
}
