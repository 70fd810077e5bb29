//! What every scheduler owes its caller, whatever the load.

use minerva_blocksched::{
    Anticipatory, AnticipatoryOptions, AtLimit, Bfq, BfqOptions, Cfq, CfqOptions, Contract, Cost, Deadline,
    DeadlineOptions, Dispatch, FlowId, FlowParameters, GroupId, Htbs, HtbsOptions, Kind, MClock, Noop, PClock, Request,
    RequestId, Scheduler, Sfq, Tag, TagOptions,
};
use minerva_model::Nanos;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use std::collections::BTreeSet;

const FLOWS: u32 = 6;

/// Each, and whether it never keeps a free device idle while something is queued.
fn every_scheduler() -> Vec<(Box<dyn Scheduler>, bool)> {
    let unplugged = TagOptions { plug: Nanos::ZERO, ..TagOptions::default() };
    vec![
        (Box::new(Noop::new()), true),
        (Box::new(Sfq::new(4, Cost::PerBytes(4096))), true),
        (Box::new(PClock::new(Cost::PerRequest)), true),
        (Box::new(Htbs::new(HtbsOptions::default())), false),
        (Box::new(Htbs::new(HtbsOptions::original())), false),
        (Box::new(MClock::new(Cost::PerRequest, AtLimit::Wait)), false),
        (Box::new(MClock::new(Cost::PerRequest, AtLimit::Allow)), true),
        (Box::new(Tag::new(TagOptions::default())), false),
        (Box::new(Tag::new(unplugged)), true),
        (Box::new(Bfq::new(BfqOptions::default())), false),
        (Box::new(Deadline::new(DeadlineOptions::default())), true),
        (Box::new(Anticipatory::new(AnticipatoryOptions::default())), false),
        (Box::new(Cfq::new(CfqOptions::default())), false),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add { flow: u32, offset: u32, length: u32, sync: bool, kind: Kind, tag: Option<u8> },
    Next,
    Complete,
    Pass(u32),
    Parameters { flow: u32, weight: u32, rate: u16, limit: u16 },
    Remove(u32),
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
    ]
}

/// Runs a script against one scheduler and keeps account of every request.
struct Account {
    conserves: bool,
    now: Nanos,
    added: u64,
    waiting: BTreeSet<u64>,
    sent: Vec<Request>,
}

impl Account {
    fn send(&mut self, request: Request) -> Result<(), String> {
        if !self.waiting.remove(&request.id.0) {
            return Err(format!("request {} was sent twice or never added", request.id.0));
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
                self.waiting.insert(self.added);
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
                    group: GroupId(flow % 3),
                    ..FlowParameters::default()
                };
                scheduler.set_flow(self.now, FlowId(flow), parameters);
            }
            Step::Remove(flow) => scheduler.remove_flow(self.now, FlowId(flow)),
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
                Dispatch::WaitUntil(until) => self.now = self.now.max(until),
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

fn run((scheduler, conserves): &mut (Box<dyn Scheduler>, bool), steps: &[Step]) -> Result<Vec<u64>, String> {
    let scheduler = scheduler.as_mut();
    let mut account =
        Account { conserves: *conserves, now: Nanos::ZERO, added: 0, waiting: BTreeSet::new(), sent: Vec::new() };
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
    fn every_request_is_served_once(steps in proptest::collection::vec(step(), 0..300)) {
        for mut scheduler in every_scheduler() {
            let name = scheduler.0.name();
            let result = run(&mut scheduler, &steps);
            prop_assert!(result.is_ok(), "{}: {:?}", name, result);
        }
    }

    #[test]
    fn equal_calls_give_equal_answers(steps in proptest::collection::vec(step(), 0..200)) {
        for (mut first, mut second) in every_scheduler().into_iter().zip(every_scheduler()) {
            prop_assert_eq!(run(&mut first, &steps), run(&mut second, &steps));
        }
    }
}
