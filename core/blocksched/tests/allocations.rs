//! Nothing is allocated once every flow and queue has had its greatest size. Counted, not timed.

use minerva_blocksched::{
    BuildOptions, Class, Contract, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, RequestId, Scheduler,
    SchedulerName,
};
use minerva_model::Nanos;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

/// Flows, and requests that each has queued at most.
const FLOWS: u32 = 100;
const QUEUED_MAX: u64 = 8;
/// At the device at once.
const DEPTH: usize = 4;

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates on its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more, and nothing of it is counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A scheduler under a load that goes round: flows come and go, and every round is as large as the first.
struct Load {
    scheduler: Box<dyn Scheduler>,
    now: Nanos,
    number: u64,
    at_device: VecDeque<Request>,
}

impl Load {
    fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self { scheduler, now: Nanos::ZERO, number: 0, at_device: VecDeque::with_capacity(DEPTH) }
    }

    fn add(&mut self, flow: u32) {
        self.number += 1;
        let scattered = self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let kind = match scattered % 8 {
            0 => Kind::Write,
            1 => Kind::Discard,
            2 => Kind::Flush,
            _ => Kind::Read,
        };
        self.scheduler.add(
            self.now,
            Request {
                id: RequestId(self.number),
                flow: FlowId(flow),
                kind,
                sync: kind == Kind::Read,
                tag: scattered.is_multiple_of(3).then_some((scattered >> 8) as u8),
                offset_bytes: scattered >> 24 << 12,
                length_bytes: 4096 << (scattered >> 16 & 7),
                arrived: self.now,
            },
        );
    }

    fn complete(&mut self) {
        self.now += Nanos::from_micros(500);
        if let Some(request) = self.at_device.pop_front() {
            self.scheduler.complete(self.now, &request);
        }
    }

    /// What flow 0 asks for hangs for ten seconds beside flow 1, which asks again and again. Then all is done.
    fn hang(&mut self, hung: &mut Vec<Request>) {
        (0..64).for_each(|_| self.add(0));
        self.add(1);
        let end = self.now + Nanos::from_secs(10);
        while self.now < end {
            match self.scheduler.next(self.now) {
                Dispatch::Send(request) if request.flow == FlowId(0) => hung.push(request),
                Dispatch::Send(request) => {
                    self.now += Nanos::from_millis(1);
                    self.scheduler.complete(self.now, &request);
                    self.add(1);
                }
                Dispatch::WaitUntil(until) => self.now = self.now.max(until),
                Dispatch::Idle => panic!("flow 1 has work"),
            }
        }
        hung.drain(..).for_each(|request| self.scheduler.complete(self.now, &request));
        while self.scheduler.queued() > 0 {
            match self.scheduler.next(self.now) {
                Dispatch::Send(request) => self.scheduler.complete(self.now, &request),
                Dispatch::WaitUntil(until) => self.now = self.now.max(until),
                Dispatch::Idle => panic!("there is work"),
            }
        }
    }

    /// Every flow comes with its parameters, asks for all it ever asks for, is served, and goes.
    fn round(&mut self) {
        for flow in 0..FLOWS {
            let contract =
                Contract { rate_per_second: f64::from(flow), burst: 8.0, delay: Nanos::from_millis(u64::from(flow)) };
            let parameters = FlowParameters {
                weight: 1 + flow,
                group: GroupId(flow % 7),
                class: [Class::RealTime, Class::BestEffort, Class::Idle][flow as usize % 3],
                contract: (flow % 2 == 0).then_some(contract),
                reservation_per_second: f64::from(flow % 5),
                limit_per_second: if flow % 4 == 0 { 1000.0 } else { f64::INFINITY },
                ..FlowParameters::default()
            };
            self.scheduler.set_flow(self.now, FlowId(flow), parameters);
            (0..QUEUED_MAX).for_each(|_| self.add(flow));
            // A contract comes, another goes, a third changes while requests are queued.
            let changed = Contract { rate_per_second: 1.0 + f64::from(flow), ..contract };
            let contract = (flow % 3 == 0).then_some(changed);
            self.scheduler.set_flow(self.now, FlowId(flow), FlowParameters { contract, ..parameters });
        }
        while self.scheduler.queued() > 0 || !self.at_device.is_empty() {
            if self.at_device.len() == DEPTH {
                self.complete();
                continue;
            }
            match self.scheduler.next(self.now) {
                Dispatch::Send(request) => self.at_device.push_back(request),
                Dispatch::WaitUntil(until) if self.at_device.is_empty() => self.now = self.now.max(until),
                Dispatch::WaitUntil(_) | Dispatch::Idle => self.complete(),
            }
        }
        (0..FLOWS).for_each(|flow| self.scheduler.remove_flow(self.now, FlowId(flow)));
    }
}

#[test]
fn nothing_is_allocated_beside_requests_that_hang() {
    for name in [SchedulerName::Tag, SchedulerName::Cfq] {
        let mut load = Load::new(name.build(BuildOptions::for_disk(false, 32)));
        let mut hung = Vec::with_capacity(128);
        (0..4).for_each(|_| load.hang(&mut hung));
        let before = ALLOCATIONS.get();
        (0..2).for_each(|_| load.hang(&mut hung));
        assert_eq!(ALLOCATIONS.get() - before, 0, "{name}");
    }
}

#[test]
fn nothing_is_allocated_after_warm_up() {
    let disks = [BuildOptions::for_disk(true, 1), BuildOptions::for_disk(false, 32)];
    for (name, disk) in SchedulerName::ALL.iter().flat_map(|name| disks.map(|disk| (name, disk))) {
        let mut load = Load::new(name.build(disk));
        // Each flow's kinds and sizes differ from round to round, so some queue inside may still grow in the second.
        (0..8).for_each(|_| load.round());
        let before = ALLOCATIONS.get();
        (0..8).for_each(|_| load.round());
        let allocated = ALLOCATIONS.get() - before;
        assert_eq!(
            allocated,
            0,
            "{name} for {disk:?} allocated {allocated} times in 8 rounds of {} requests",
            u64::from(FLOWS) * QUEUED_MAX
        );
    }
}
