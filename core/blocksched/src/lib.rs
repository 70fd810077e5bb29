//! Per-request disk schedulers behind one trait.
//!
//! The same code schedules requests in the simulator and on Minerva's own data path, so it is pure: the instant is an
//! argument, no scheduler reads a clock, and two runs with the same calls give the same answers.
//!
//! A caller owns a device with room for some requests. Whenever there is room it asks [`Scheduler::next`] and does what the
//! answer says: send this request, ask again at an instant (the scheduler keeps the disk idle on purpose, because somebody
//! who is about to ask is worth waiting for), or wait until something is added. It reports completions, by which
//! schedulers learn service and think times.
//!
//! Which schedulers there are, by what names, and how they are built: [`SchedulerName`]. A new one is a file in
//! `src/catalog/` and its lines in `src/catalog.rs`; everything else goes through that list.
//!
//! Limits: a decision costs O(log flows) and allocates nothing once every flow and queue has had its greatest size.

mod admission;
mod catalog;
mod flow;
mod heap;
mod in_flight;
mod injection;
mod peak_rate;
mod request;
mod sorted;
mod table;
mod tokens;
mod wf2q;

pub use admission::{Admission, Applicant, Capacity, Discipline, Feasibility, ServiceTimes, Tightest, admit};
pub use catalog::{
    Anticipatory, AnticipatoryOptions, AtLimit, Bfq, BfqOptions, BuildOptions, Cfq, CfqOptions, Deadline,
    DeadlineOptions, Entry, Htbs, HtbsOptions, MClock, Noop, PClock, Promise, SchedulerName, SequentialTest, Sfq,
    Spare, TAG_DEPTH_MAX, Tag, TagOptions, UNIT_BYTES, UnknownScheduler, WithinFlow, priority,
};
pub use flow::{Class, Contract, FlowId, FlowParameters, GroupId};
pub use heap::{HeapKey, IndexedHeap, Narrow, PlainKey};
pub use request::{Cost, Kind, Request, RequestId};

use minerva_model::Nanos;

/// What a scheduler wants done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Send this request to the device.
    Send(Request),
    /// Send nothing, and ask again at this instant or when something is added or completed, whichever is first.
    WaitUntil(Nanos),
    /// Nothing is queued, or nothing may be sent before the next addition or completion.
    Idle,
}

/// A request scheduler. Instants never go backwards from call to call.
pub trait Scheduler {
    /// The name people use, such as `htbs`.
    fn name(&self) -> &'static str;

    /// Sets what a flow is promised; also announces the flow. May be called at any time, also with requests queued.
    /// A flow that was never announced has [`FlowParameters::default`].
    fn set_flow(&mut self, now: Nanos, flow: FlowId, parameters: FlowParameters);

    /// The flow is gone and its number may come again as another flow. Its queued requests are still dispatched; where they
    /// are not to be, [`Scheduler::cancel`] comes first.
    fn remove_flow(&mut self, now: Nanos, flow: FlowId);

    /// Takes back all that a flow has queued, as when the guest behind it was reset: none of it is ever sent, and each is
    /// appended to `cancelled`, in no particular order. What they were charged in advance is given back, and the disk is not
    /// kept idle for the flow. What is at the device stays there and is to be completed; the flow's parameters stay. Costs up
    /// to O(n log n) with n requests queued of all flows.
    fn cancel(&mut self, now: Nanos, flow: FlowId, cancelled: &mut Vec<Request>);

    /// A request that was taken back went to the device all the same, past the order and without a [`Scheduler::complete`], as when a guest
    /// stops its disk and waits for it. A scheduler that keeps account of what flows were served charges it to its flow, which waits
    /// the longer for what it asks for next.
    fn charge(&mut self, _now: Nanos, _request: &Request) {}

    /// Sets a group's weight, for schedulers that share between groups of flows first. Groups start at 100.
    fn set_group_weight(&mut self, _now: Nanos, _group: GroupId, _weight: u32) {}

    /// Queues a request.
    fn add(&mut self, now: Nanos, request: Request);

    /// Says what to do while the device has room for one more request.
    fn next(&mut self, now: Nanos) -> Dispatch;

    /// A request that was sent has completed.
    fn complete(&mut self, now: Nanos, request: &Request);

    /// Requests queued and not yet sent.
    fn queued(&self) -> usize;
}
