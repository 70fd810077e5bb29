//! What every scheduler owes its caller, whatever the load.

use minerva_blocksched::{
    BuildOptions, Class, Contract, Dispatch, FlowId, FlowParameters, GroupId, Kind, Request, RequestId, Scheduler,
    SchedulerName,
};
use minerva_model::Nanos;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::BTreeMap;

const FLOWS: u32 = 6;

/// A scheduler under test, and whether it says that it never keeps a free device idle while something is queued.
struct Tested {
    name: String,
    scheduler: Box<dyn Scheduler>,
    conserves_work: bool,
}

/// Every scheduler of the catalogue, for a disk that seeks and for one that takes many requests at once.
fn every_scheduler() -> Vec<Tested> {
    let disks = [BuildOptions::for_disk(true, 1), BuildOptions::for_disk(false, 32)];
    let built = |name: &SchedulerName, disk| Tested {
        name: format!("{name} for {disk:?}"),
        scheduler: name.build(disk),
        conserves_work: name.entry().conserves_work,
    };
    SchedulerName::ALL.iter().flat_map(|name| disks.map(|disk| built(name, disk))).collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add { flow: u32, offset: u32, length: u32, sync: bool, kind: Kind, tag: Option<u8> },
    Next,
    Complete,
    Pass(u32),
    Parameters { flow: u32, weight: u32, rate: u16, limit: u16 },
    Remove(u32),
    Cancel(u32),
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![6 => Just(Kind::Read), 6 => Just(Kind::Write), 1 => Just(Kind::Flush), 1 => Just(Kind::Discard)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..FLOWS, 0u32..1000, 1u32..1_000_000, any::<bool>(), kind(), any::<Option<u8>>()).prop_map(
            |(flow, offset, length, sync, kind, tag)| Step::Add { flow, offset, length, sync, kind, tag }
        ),
        4 => Just(Step::Next),
        3 => Just(Step::Complete),
        2 => (0u32..50_000_000).prop_map(Step::Pass),
        1 => (0..FLOWS, 0u32..20_000, any::<u16>(), any::<u16>()).prop_map(|(flow, weight, rate, limit)| {
            Step::Parameters { flow, weight, rate, limit }
        }),
        1 => (0..FLOWS).prop_map(Step::Remove),
        1 => (0..FLOWS).prop_map(Step::Cancel),
    ]
}

/// Runs a script against one scheduler and keeps account of every request.
struct Account {
    conserves: bool,
    now: Nanos,
    added: u64,
    /// What is queued, and whose.
    waiting: BTreeMap<u64, FlowId>,
    sent: Vec<Request>,
    cancelled: Vec<Request>,
}

impl Account {
    fn send(&mut self, request: Request) -> Result<(), String> {
        if self.waiting.remove(&request.id.0) != Some(request.flow) {
            return Err(format!("request {} was sent twice, after it was cancelled, or never added", request.id.0));
        }
        self.sent.push(request);
        Ok(())
    }

    fn apply(&mut self, scheduler: &mut dyn Scheduler, step: Step) -> Result<(), String> {
        match step {
            Step::Add { flow, offset, length, sync, kind, tag } => {
                let request = Request {
                    id: RequestId(self.added),
                    flow: FlowId(flow),
                    kind,
                    sync,
                    tag,
                    offset_bytes: u64::from(offset) * 65_536,
                    length_bytes: if kind == Kind::Flush { 0 } else { length },
                    arrived: self.now,
                };
                self.waiting.insert(self.added, FlowId(flow));
                self.added += 1;
                scheduler.add(self.now, request);
            }
            Step::Next => match scheduler.next(self.now) {
                Dispatch::Send(request) => self.send(request)?,
                Dispatch::WaitUntil(until) if until <= self.now => return Err("waits until the past".to_owned()),
                Dispatch::WaitUntil(_) | Dispatch::Idle => {
                    if self.conserves && self.sent.is_empty() && !self.waiting.is_empty() {
                        return Err("a work-conserving scheduler kept the disk idle".to_owned());
                    }
                }
            },
            Step::Complete => {
                if !self.sent.is_empty() {
                    let request = self.sent.remove(0);
                    scheduler.complete(self.now, &request);
                }
            }
            Step::Pass(nanos) => self.now += Nanos(u64::from(nanos)),
            Step::Parameters { flow, weight, rate, limit } => {
                let contract = Contract {
                    rate_per_second: f64::from(rate),
                    burst: f64::from(limit % 100),
                    delay: Nanos::from_millis(u64::from(limit)),
                };
                let parameters = FlowParameters {
                    weight,
                    contract: (rate % 3 > 0).then_some(contract),
                    reservation_per_second: f64::from(rate % 500),
                    limit_per_second: if limit % 2 == 0 { f64::INFINITY } else { f64::from(limit) },
                    group: GroupId(u32::from(rate) % 3),
                    class: [Class::RealTime, Class::BestEffort, Class::Idle][usize::from(limit) % 3],
                    ..FlowParameters::default()
                };
                scheduler.set_flow(self.now, FlowId(flow), parameters);
            }
            Step::Remove(flow) => scheduler.remove_flow(self.now, FlowId(flow)),
            Step::Cancel(flow) => {
                let before = self.cancelled.len();
                scheduler.cancel(self.now, FlowId(flow), &mut self.cancelled);
                for request in &self.cancelled[before..] {
                    // As if it had gone to the device all the same.
                    if request.id.0 % 2 == 0 {
                        scheduler.charge(self.now, request);
                    }
                    if self.waiting.remove(&request.id.0) != Some(FlowId(flow)) {
                        return Err(format!("request {} was cancelled and not queued by flow {flow}", request.id.0));
                    }
                }
                if self.waiting.values().any(|of| *of == FlowId(flow)) {
                    return Err(format!("flow {flow} has requests queued after they were cancelled"));
                }
            }
        }
        if scheduler.queued() != self.waiting.len() {
            return Err(format!("queued {} but {} wait", scheduler.queued(), self.waiting.len()));
        }
        Ok(())
    }

    /// Completes everything and follows every wait until nothing is queued.
    fn drain(&mut self, scheduler: &mut dyn Scheduler) -> Result<(), String> {
        let mut steps = 0;
        while !self.waiting.is_empty() || !self.sent.is_empty() {
            steps += 1;
            if steps > 100_000 {
                return Err(format!("{} requests are never sent", self.waiting.len()));
            }
            match scheduler.next(self.now) {
                Dispatch::Send(request) => self.send(request)?,
                Dispatch::WaitUntil(until) => {
                    self.now = self.now.max(until);
                    // Meanwhile the device goes on; BFQ asks again at every tick while it waits for a completion.
                    if !self.sent.is_empty() {
                        let request = self.sent.remove(0);
                        scheduler.complete(self.now, &request);
                    }
                }
                Dispatch::Idle if self.sent.is_empty() => {
                    return Err(format!("idle for ever with {} requests queued", self.waiting.len()));
                }
                Dispatch::Idle => {
                    self.now += Nanos::from_micros(100);
                    let request = self.sent.remove(0);
                    scheduler.complete(self.now, &request);
                }
            }
        }
        Ok(())
    }
}

fn run(Tested { scheduler, conserves_work, .. }: &mut Tested, steps: &[Step]) -> Result<Vec<u64>, String> {
    let scheduler = scheduler.as_mut();
    let mut account = Account {
        conserves: *conserves_work,
        now: Nanos::ZERO,
        added: 0,
        waiting: BTreeMap::new(),
        sent: Vec::new(),
        cancelled: Vec::new(),
    };
    let mut order = Vec::new();
    for step in steps {
        let before = account.sent.len();
        account.apply(scheduler, *step)?;
        if account.sent.len() > before {
            order.extend(account.sent.last().map(|request| request.id.0));
        }
    }
    account.drain(scheduler)?;
    Ok(order)
}

proptest! {
    #[test]
    fn every_request_is_sent_or_cancelled_once(steps in proptest::collection::vec(step(), 0..300)) {
        for mut scheduler in every_scheduler() {
            let result = run(&mut scheduler, &steps);
            prop_assert!(result.is_ok(), "{}: {:?}", scheduler.name, result);
        }
    }

    #[test]
    fn equal_calls_give_equal_answers(steps in proptest::collection::vec(step(), 0..200)) {
        for (mut first, mut second) in every_scheduler().into_iter().zip(every_scheduler()) {
            prop_assert_eq!(run(&mut first, &steps), run(&mut second, &steps));
        }
    }
}

/// Last come, first served: what a new scheduler has to write. `loses` makes it forget what it cancels, without telling.
#[derive(Default)]
struct Sample {
    queue: Vec<Request>,
    loses: bool,
}

impl Scheduler for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn set_flow(&mut self, _now: Nanos, _flow: FlowId, _parameters: FlowParameters) {}

    fn remove_flow(&mut self, _now: Nanos, _flow: FlowId) {}

    fn cancel(&mut self, _now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>) {
        let taken = self.queue.extract_if(.., |request| request.flow == flow);
        match self.loses {
            true => drop(taken.collect::<Vec<_>>()),
            false => cancelled.extend(taken),
        }
    }

    fn add(&mut self, _now: Nanos, request: Request) {
        self.queue.push(request);
    }

    fn next(&mut self, _now: Nanos) -> Dispatch {
        self.queue.pop().map_or(Dispatch::Idle, Dispatch::Send)
    }

    fn complete(&mut self, _now: Nanos, _request: &Request) {}

    fn queued(&self) -> usize {
        self.queue.len()
    }
}

#[test]
fn a_new_scheduler_is_judged_by_the_same_properties() {
    let add = |flow| Step::Add { flow, offset: 0, length: 4096, sync: true, kind: Kind::Read, tag: None };
    let steps = [add(0), add(1), add(0), Step::Cancel(0), Step::Next, Step::Complete, add(1), Step::Next];
    let tested = |loses| Tested {
        name: "sample".to_owned(),
        scheduler: Box::new(Sample { queue: Vec::new(), loses }),
        conserves_work: true,
    };
    assert_eq!(run(&mut tested(false), &steps), Ok(vec![1, 3]));
    let lost = run(&mut tested(true), &steps).expect_err("two requests are lost");
    assert!(lost.contains("has requests queued") || lost.contains("wait"), "{lost}");
}
