//! Who may use the pool's disk now. Threads that serve different tenants ask before they read, write back or sync; a scheduler of
//! `core/blocksched` says whose request is next, and few are at the disk at once. So a tenant that floods the disk has its share, and what
//! another asks for waits for a few requests of it and not for all.
//!
//! Writes go to the page cache first. As long as one tenant alone uses the disk their way from there is only begun early; beside others
//! each piece waits its time here and is on the disk before the next is taken.

use crate::write_back::SendingThread;
use minerva_blocksched::{
    Cost, Dispatch, FlowId, FlowParameters, Kind, Request, RequestId, Scheduler, Sfq, UNIT_BYTES,
};
use minerva_model::Nanos;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

/// Who used the disk within so long is beside whoever uses it now.
const BESIDE: Nanos = Nanos::SECOND;

/// The queue before one disk.
#[derive(Debug)]
pub struct DiskQueue {
    begun: Instant,
    state: Mutex<State>,
    /// Started once somebody writes enough.
    sending: OnceLock<SendingThread>,
}

#[derive(Debug)]
struct State {
    scheduler: Sfq,
    next_request: u64,
    waiting: HashMap<u64, Waiter>,
    /// Bytes that were let through, of all flows.
    sent_bytes: u64,
    /// Numbers that flows had and have no more.
    free: Vec<u32>,
    flows: u32,
    latest: Latest,
}

/// A thread that waits.
#[derive(Debug)]
struct Waiter {
    thread: Thread,
    is_sent: Arc<AtomicBool>,
    flow: Arc<Counts>,
    /// What others had been let through when it came.
    others_before: u64,
}

/// The last use by the flow that came last, and by any other.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    last: Option<(FlowId, Nanos)>,
    other: Option<Nanos>,
}

impl Latest {
    /// A flow uses the disk; whether another did shortly before.
    fn note(&mut self, now: Nanos, flow: FlowId) -> bool {
        if let Some((last, at)) = self.last
            && last != flow
        {
            self.other = Some(at);
        }
        self.last = Some((flow, now));
        self.other.is_some_and(|at| now.0.saturating_sub(at.0) < BESIDE.0)
    }
}

/// What one flow has had.
#[derive(Debug, Default)]
struct Counts {
    sent_bytes: AtomicU64,
    passed_by_bytes_max: AtomicU64,
    waited: AtomicU64,
}

/// One tenant before the disk. Its number is another's once it is dropped.
#[derive(Debug)]
pub struct DiskFlow {
    queue: Arc<DiskQueue>,
    flow: FlowId,
    counts: Arc<Counts>,
}

/// Leave to use the disk, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    queue: &'a DiskQueue,
    request: Request,
}

/// What a flow met before the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFigures {
    /// Requests that were not let through at once.
    pub waited: u64,
    /// The most bytes of other flows that were let through while one of its requests waited.
    pub passed_by_bytes_max: u64,
}

impl DiskQueue {
    /// So many requests are at the disk at once.
    pub fn new(depth: u32) -> Arc<Self> {
        let state = State {
            scheduler: Sfq::new(depth, Cost::PerBytes(UNIT_BYTES)),
            next_request: 0,
            waiting: HashMap::new(),
            sent_bytes: 0,
            free: Vec::new(),
            flows: 0,
            latest: Latest::default(),
        };
        Arc::new(Self { begun: Instant::now(), state: Mutex::new(state), sending: OnceLock::new() })
    }

    /// A further tenant, of a weight of 1 to 10,000.
    pub fn flow(self: &Arc<Self>, weight: u32) -> Arc<DiskFlow> {
        let mut state = self.state();
        let number = state.free.pop().unwrap_or_else(|| {
            state.flows += 1;
            state.flows - 1
        });
        drop(state);
        let flow = DiskFlow { queue: Arc::clone(self), flow: FlowId(number), counts: Arc::default() };
        flow.set_weight(weight);
        Arc::new(flow)
    }

    /// Requests that wait.
    pub fn queued(&self) -> usize {
        self.state().waiting.len()
    }

    #[cfg(test)]
    pub(crate) fn has_sending_thread(&self) -> bool {
        self.sending.get().is_some()
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets through whom the scheduler names.
    fn dispatch(&mut self, now: Nanos) {
        // Fair queueing keeps no free disk idle, so that it never asks to be asked later.
        while let Dispatch::Send(request) = self.scheduler.next(now) {
            let Some(waiter) = self.waiting.remove(&request.id.0) else { continue };
            let bytes = u64::from(request.length_bytes);
            let others = self.sent_bytes - waiter.flow.sent_bytes.load(Ordering::Relaxed);
            waiter.flow.passed_by_bytes_max.fetch_max(others - waiter.others_before, Ordering::Relaxed);
            waiter.flow.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.sent_bytes += bytes;
            waiter.is_sent.store(true, Ordering::Release);
            waiter.thread.unpark();
        }
    }
}

impl DiskFlow {
    /// Its part beside others from now on.
    pub fn set_weight(&self, weight: u32) {
        let parameters = FlowParameters { weight, ..FlowParameters::default() };
        let mut state = self.queue.state();
        state.scheduler.set_flow(self.queue.now(), self.flow, parameters);
    }

    /// What it met so far.
    pub fn figures(&self) -> QueueFigures {
        QueueFigures {
            waited: self.counts.waited.load(Ordering::Relaxed),
            passed_by_bytes_max: self.counts.passed_by_bytes_max.load(Ordering::Relaxed),
        }
    }

    /// Waits until it may use the disk for so many bytes. None where it is alone there, and need not ask.
    pub(crate) fn enter(&self, kind: Kind, bytes: u64) -> Option<Pass<'_>> {
        let is_beside = {
            let mut state = self.queue.state();
            let now = self.queue.now();
            state.latest.note(now, self.flow)
        };
        is_beside.then(|| self.wait(kind, bytes))
    }

    /// Whether a file's data are sent to the disk by another thread; not where too much waits for that already. For who is alone there.
    pub(crate) fn send_later(&self, data: &Arc<OwnedFd>) -> bool {
        self.queue.sending.get_or_init(SendingThread::start).take(data)
    }

    fn wait(&self, kind: Kind, bytes: u64) -> Pass<'_> {
        let is_sent = Arc::new(AtomicBool::new(false));
        let mut state = self.queue.state();
        // Read under the lock, so that no scheduler sees time go back.
        let now = self.queue.now();
        let id = state.next_request;
        state.next_request += 1;
        let request = Request {
            id: RequestId(id),
            flow: self.flow,
            kind,
            sync: true,
            tag: None,
            offset_bytes: 0,
            length_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            arrived: now,
        };
        let others_before = state.sent_bytes - self.counts.sent_bytes.load(Ordering::Relaxed);
        let (thread, flow) = (thread::current(), Arc::clone(&self.counts));
        state.waiting.insert(id, Waiter { thread, is_sent: Arc::clone(&is_sent), flow, others_before });
        state.scheduler.add(now, request);
        state.dispatch(now);
        drop(state);
        if !is_sent.load(Ordering::Acquire) {
            self.counts.waited.fetch_add(1, Ordering::Relaxed);
            while !is_sent.load(Ordering::Acquire) {
                thread::park();
            }
        }
        Pass { queue: &self.queue, request }
    }
}

impl Drop for DiskFlow {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let now = self.queue.now();
        state.scheduler.remove_flow(now, self.flow);
        state.free.push(self.flow.0);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        let now = self.queue.now();
        state.scheduler.complete(now, &self.request);
        state.dispatch(now);
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskQueue, Latest};
    use minerva_blocksched::{FlowId, Kind};
    use minerva_model::Nanos;
    use std::sync::{Arc, Mutex};
    use std::thread;

    const MIB: u64 = 1 << 20;

    /// Queues requests behind one that has the disk, and lets all of them through; whose each was, in their order.
    fn order(queue: &Arc<DiskQueue>, requests: &[(usize, u64)], weights: &[u32]) -> Vec<usize> {
        let flows: Vec<_> = weights.iter().map(|weight| queue.flow(*weight)).collect();
        let first = flows[requests[0].0].wait(Kind::Write, requests[0].1);
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (queued, (flow, bytes)) in requests[1..].iter().enumerate() {
                let (flows, order) = (&flows, &order);
                scope.spawn(move || {
                    let _pass = flows[*flow].wait(Kind::Write, *bytes);
                    order.lock().unwrap().push(*flow);
                });
                while queue.queued() <= queued {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        order.into_inner().unwrap()
    }

    #[test]
    fn a_small_request_passes_a_flood_that_came_before() {
        let queue = DiskQueue::new(1);
        let mut requests = vec![(0, MIB); 20];
        requests.push((1, 4096));
        let order = order(&queue, &requests, &[100, 100]);
        assert_eq!(order.iter().position(|flow| *flow == 1), Some(0), "{order:?}");
        assert_eq!(order.len(), 20);
    }

    #[test]
    fn equal_requests_are_shared_by_weight() {
        let queue = DiskQueue::new(1);
        let requests: Vec<_> = (0..40).map(|at| (at % 2, MIB)).collect();
        let order = order(&queue, &requests, &[300, 100]);
        let heavy = order[..16].iter().filter(|flow| **flow == 0).count();
        assert!((11..=13).contains(&heavy), "three of four: {order:?}");
    }

    #[test]
    fn who_is_alone_does_not_wait_for_the_disk_and_what_is_dropped_leaves_nothing() {
        let queue = DiskQueue::new(2);
        let (one, two) = (queue.flow(100), queue.flow(100));
        assert!(one.enter(Kind::Write, MIB).is_none());
        assert!(one.enter(Kind::Write, MIB).is_none(), "it is not beside itself");
        let pass = two.wait(Kind::Write, MIB);
        drop((pass, one));
        assert_eq!(queue.flow(100).flow.0, 0, "its number is free again");
        assert_eq!(queue.queued(), 0);
    }

    #[test]
    fn only_another_flow_that_came_shortly_before_is_beside() {
        let (one, two) = (FlowId(1), FlowId(2));
        let mut latest = Latest::default();
        let second = |seconds: f64| Nanos((seconds * 1e9) as u64);
        for (at, flow, is_beside) in [
            (0.0, one, false),
            (0.5, one, false),
            (1.0, two, true),
            (1.4, one, true),
            (1.9, one, true),
            (2.1, one, false),
            (9.0, two, false),
        ] {
            assert_eq!(latest.note(second(at), flow), is_beside, "{at}");
        }
    }

    #[test]
    fn many_threads_that_come_and_go_all_get_through() {
        let queue = DiskQueue::new(3);
        let flows: Vec<_> = (1..5).map(|weight| queue.flow(weight * 50)).collect();
        thread::scope(|scope| {
            for seed in 0..8 {
                let flow = &flows[seed as usize % flows.len()];
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..500 {
                        drop(flow.wait(Kind::Read, random.u64(1..MIB)));
                    }
                });
            }
        });
        assert_eq!(queue.queued(), 0);
        let all: u64 = flows.iter().map(|flow| flow.counts.sent_bytes.load(std::sync::atomic::Ordering::Relaxed)).sum();
        assert_eq!(all, queue.state().sent_bytes);
    }
}
