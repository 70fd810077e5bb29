//! The loop. Whatever is due next happens: a completion, a process that wakes, a scheduler that waited, a slice.

use crate::account::Account;
use crate::kind::device_kind;
use crate::setup::{GuestSetup, ProcessSetup, WorldSetup};
use crate::steering::{Counters, Disks, Steering};
use crate::throttle::Throttle;
use crate::usage::by_tenant;
use minerva_blocksched::{Dispatch, FlowId, FlowParameters, GroupId, Request, RequestId, Scheduler};
use minerva_model::{Level, Nanos};
use minerva_sim_device::{DeviceModel, Request as DeviceRequest};
use minerva_sim_workload::{IoRequest, Source, Step};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) tenant: usize,
    source: Box<dyn Source>,
    pub(crate) account: Account,
    started: bool,
    /// The wake-up that is already in the heap.
    wakes_at: Option<Nanos>,
    pub(crate) finished: Option<Nanos>,
}

struct Guest {
    scheduler: Box<dyn Scheduler>,
    depth: u32,
    in_flight: u32,
    /// The flow that the host sees; each process is one when streams are passed on.
    flow: FlowId,
    passes_streams: bool,
    wait_until: Option<Nanos>,
}

pub(crate) struct Tenant {
    pub(crate) name: String,
    guest: Option<Guest>,
    counters: Counters,
    disk_time: Nanos,
}

/// A request on its way, from the process to the disk and back.
#[derive(Clone, Copy)]
pub(crate) struct Travel {
    pub(crate) process: usize,
    pub(crate) issued: Nanos,
    /// When the disk got it.
    submitted: Nanos,
    io: IoRequest,
    /// It is within what its process was promised.
    pub(crate) within: bool,
}

/// A world under way.
pub struct World {
    pub(crate) now: Nanos,
    pub(crate) device: Box<dyn DeviceModel>,
    pub(crate) host: Box<dyn Scheduler>,
    depth: u32,
    in_flight: u32,
    host_wait_until: Option<Nanos>,
    last_completion: Nanos,
    pub(crate) tenants: Vec<Tenant>,
    /// Tenants with a scheduler of their own: most have none, and there may be thousands.
    guests: Vec<usize>,
    pub(crate) processes: Vec<Process>,
    running: usize,
    /// Processes by the instant at which they wake.
    wakes: BinaryHeap<Reverse<(Nanos, usize)>>,
    pub(crate) travels: Vec<Travel>,
    /// Requests at the host as its scheduler was given them, by travel.
    at_host: Vec<Request>,
    pub(crate) free: Vec<usize>,
    pub(crate) steering: Option<Steering>,
    pub(crate) throttle: Throttle,
    pub(crate) weights: Vec<(f64, String, u32)>,
    pub(crate) bin: Nanos,
}

impl World {
    /// A world at its beginning.
    pub fn new(setup: WorldSetup) -> Self {
        let names: Vec<String> = setup.tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let disk = Disks { elevator: setup.host.name(), size_bytes: setup.device.capacity_bytes(), of_tenants: &[] };
        let steer = |engine| Steering::new(engine, &disk, &names);
        let steering = setup.engine.map(steer);
        let mut world = Self {
            now: Nanos::ZERO,
            depth: setup.depth.clamp(1, setup.device.queue_depth().max(1)),
            device: setup.device,
            host: setup.host,
            in_flight: 0,
            host_wait_until: None,
            last_completion: Nanos::ZERO,
            tenants: Vec::new(),
            guests: Vec::new(),
            processes: Vec::new(),
            running: setup.processes.len(),
            wakes: BinaryHeap::new(),
            travels: Vec::new(),
            at_host: Vec::new(),
            free: Vec::new(),
            steering,
            throttle: Throttle::default(),
            weights: Vec::new(),
            bin: setup.bin,
        };
        let process_count = setup.processes.len();
        for (index, tenant) in setup.tenants.into_iter().enumerate() {
            let group = GroupId(index as u32);
            world.host.set_group_weight(Nanos::ZERO, group, tenant.weight);
            let guest = tenant.guest.map(|GuestSetup { scheduler, depth, mut parameters, passes_streams }| {
                let flow = FlowId((process_count + index) as u32);
                parameters.group = group;
                world.host.set_flow(Nanos::ZERO, flow, parameters);
                Guest { scheduler, depth: depth.max(1), in_flight: 0, flow, passes_streams, wait_until: None }
            });
            world.guests.extend(guest.as_ref().map(|_| index));
            world.tenants.push(Tenant {
                name: tenant.name,
                guest,
                counters: Counters::default(),
                disk_time: Nanos::ZERO,
            });
        }
        for (index, process) in setup.processes.into_iter().enumerate() {
            world.admit(index, process);
        }
        world
    }

    fn admit(&mut self, index: usize, process: ProcessSetup) {
        let ProcessSetup { name, tenant, source, starts_at, parameters, promise } = process;
        let flow = FlowId(index as u32);
        let guest = &mut self.tenants[tenant].guest;
        if guest.as_ref().is_none_or(|guest| guest.passes_streams) {
            let group = GroupId(tenant as u32);
            self.host.set_flow(Nanos::ZERO, flow, FlowParameters { group, ..parameters });
        }
        if let Some(guest) = guest {
            guest.scheduler.set_flow(Nanos::ZERO, flow, parameters);
        }
        self.wakes.push(Reverse((starts_at, index)));
        let account = Account::new(self.bin, promise);
        self.processes.push(Process {
            name,
            tenant,
            source,
            account,
            started: false,
            wakes_at: Some(starts_at),
            finished: None,
        });
    }

    /// A tenant steps back, from now on; without Minerva that means nothing.
    pub fn set_level(&mut self, tenant: usize, level: Level) {
        if let Some(steering) = &mut self.steering {
            steering.set_level(self.now, tenant, level);
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Requests completed so far.
    pub fn requests(&self) -> u64 {
        self.processes.iter().map(|process| process.account.requests()).sum()
    }

    /// Bytes that a process has transferred so far.
    pub fn bytes(&self, process: usize) -> u64 {
        self.processes[process].account.bytes()
    }

    /// For how long the disk served a tenant so far. Of requests that a disk serves at once, each is given the time since the one
    /// before it was done.
    pub fn disk_time(&self, tenant: usize) -> Nanos {
        self.tenants[tenant].disk_time
    }

    /// Runs until every process has ended, or until `until`; whether every process has ended.
    pub fn run(&mut self, until: Nanos) -> bool {
        while self.running > 0 {
            // Where nothing more happens, whoever waits goes on waiting until the end.
            let Some(due) = self.next_due().filter(|due| *due <= until) else {
                self.now = self.now.max(until);
                break;
            };
            self.now = self.now.max(due);
            self.complete_due();
            self.wake_due();
            self.end_slice_due();
            for index in 0..self.guests.len() {
                self.pump_guest(self.guests[index]);
            }
            self.throttle.release_due(self.now, |request| self.host.add(self.now, request));
            self.pump_host();
        }
        self.running == 0
    }

    /// The earliest instant at which something happens.
    fn next_due(&self) -> Option<Nanos> {
        let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
        let guests = self.guests.iter().filter_map(|tenant| self.tenants[*tenant].guest.as_ref()?.wait_until).min();
        let held = self.throttle.next_release();
        let due = [self.device.next_completion(), wake, self.host_wait_until, guests, held];
        let due = due.into_iter().flatten().min()?;
        // A slice alone keeps nothing going: with nothing else to come the world stands still.
        Some(self.steering.as_ref().map_or(due, |steering| due.min(steering.next_slice())))
    }

    fn complete_due(&mut self) {
        while let Some(completion) = self.device.complete(self.now) {
            let index = completion.tag as usize;
            let request = self.at_host[index];
            self.host.complete(self.now, &request);
            self.in_flight -= 1;
            let travel = self.travels[index];
            let process = &mut self.processes[travel.process];
            process.account.note(self.now, travel.issued, &travel.io, travel.within);
            process.source.completed(self.now, &travel.io);
            let tenant = &mut self.tenants[process.tenant];
            tenant.counters.note(&travel.io);
            tenant.disk_time += completion.at.since(self.last_completion.max(travel.submitted));
            self.last_completion = completion.at;
            if let Some(guest) = &mut tenant.guest {
                guest.in_flight -= 1;
                let own = Request { flow: FlowId(travel.process as u32), ..request };
                guest.scheduler.complete(self.now, &own);
            }
            self.free.push(index);
            self.advance(travel.process);
        }
    }

    fn wake_due(&mut self) {
        while let Some(Reverse((at, index))) = self.wakes.peek().copied() {
            if at > self.now {
                return;
            }
            self.wakes.pop();
            if self.processes[index].wakes_at == Some(at) {
                self.processes[index].wakes_at = None;
                self.advance(index);
            }
        }
    }

    fn end_slice_due(&mut self) {
        let Some(steering) = self.steering.as_mut().filter(|steering| steering.next_slice() <= self.now) else {
            return;
        };
        let counters: Vec<Counters> = self.tenants.iter().map(|tenant| tenant.counters).collect();
        let used = self.processes.iter().map(|process| (process.tenant, process.source.usage(self.now)));
        let (now, busy) = (self.now, self.device.statistics().busy_time);
        for (tenant, weight) in steering.slice(now, &[busy], &counters, &by_tenant(self.tenants.len(), used)) {
            self.host.set_group_weight(self.now, GroupId(tenant as u32), weight);
            self.weights.push((self.now.as_secs_f64(), self.tenants[tenant].name.clone(), weight));
        }
        self.throttle.set_caps(self.now, steering.caps());
    }

    /// Lets a process make its moves.
    fn advance(&mut self, index: usize) {
        let process = &mut self.processes[index];
        if !std::mem::replace(&mut process.started, true) {
            process.account.start(self.now);
        }
        while process.finished.is_none() {
            match process.source.next(self.now) {
                Step::Issue(io) => {
                    let within = process.account.issued(self.now, &io);
                    let travel = Travel { process: index, issued: self.now, submitted: self.now, io, within };
                    let slot = self.free.pop().unwrap_or(self.travels.len());
                    let request = Request {
                        id: RequestId(slot as u64),
                        flow: FlowId(index as u32),
                        kind: io.kind,
                        sync: io.sync,
                        tag: io.tag,
                        offset_bytes: io.offset_bytes,
                        length_bytes: io.length_bytes,
                        arrived: self.now,
                    };
                    if slot == self.travels.len() {
                        self.travels.push(travel);
                        self.at_host.push(request);
                    } else {
                        self.travels[slot] = travel;
                        self.at_host[slot] = request;
                    }
                    let tenant = process.tenant;
                    match &mut self.tenants[tenant].guest {
                        Some(guest) => guest.scheduler.add(self.now, request),
                        None => add_to_host(&mut self.throttle, self.host.as_mut(), self.now, (tenant, request)),
                    }
                }
                Step::At(at) => {
                    let at = at.max(Nanos(self.now.0 + 1));
                    if process.wakes_at.is_none_or(|before| at < before) {
                        process.wakes_at = Some(at);
                        self.wakes.push(Reverse((at, index)));
                    }
                    return;
                }
                Step::Blocked => return,
                Step::Finished => {
                    process.finished = Some(self.now);
                    self.running -= 1;
                }
            }
        }
    }

    /// Moves what a guest's scheduler lets go to the host.
    fn pump_guest(&mut self, tenant: usize) {
        let Some(guest) = &mut self.tenants[tenant].guest else { return };
        guest.wait_until = None;
        while guest.in_flight < guest.depth {
            match guest.scheduler.next(self.now) {
                Dispatch::Send(request) => {
                    guest.in_flight += 1;
                    let flow = if guest.passes_streams { request.flow } else { guest.flow };
                    let request = Request { flow, arrived: self.now, ..request };
                    self.at_host[request.id.0 as usize] = request;
                    add_to_host(&mut self.throttle, self.host.as_mut(), self.now, (tenant, request));
                }
                Dispatch::WaitUntil(until) => {
                    guest.wait_until = Some(until);
                    return;
                }
                Dispatch::Idle => return,
            }
        }
    }

    /// Gives the disk what the host's scheduler lets go.
    fn pump_host(&mut self) {
        self.host_wait_until = None;
        while self.in_flight < self.depth {
            match self.host.next(self.now) {
                Dispatch::Send(request) => {
                    self.in_flight += 1;
                    self.travels[request.id.0 as usize].submitted = self.now;
                    let sent = DeviceRequest {
                        tag: request.id.0,
                        kind: device_kind(request.kind),
                        offset_bytes: request.offset_bytes,
                        length_bytes: request.length_bytes,
                    };
                    self.device.submit(self.now, sent);
                }
                Dispatch::WaitUntil(until) => {
                    self.host_wait_until = Some(until.max(Nanos(self.now.0 + 1)));
                    return;
                }
                Dispatch::Idle => return,
            }
        }
    }
}

/// A tenant's request comes to the host: to its scheduler, unless the tenant is capped.
fn add_to_host(throttle: &mut Throttle, host: &mut dyn Scheduler, now: Nanos, (tenant, request): (usize, Request)) {
    if let Some(request) = throttle.admit(now, tenant, request) {
        host.add(now, request);
    }
}
