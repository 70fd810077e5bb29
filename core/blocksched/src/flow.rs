//! A flow is one stream of requests that a scheduler tells apart: a process, a VM's disk, a guest application.

use minerva_model::Nanos;

/// A flow's number: small, dense and given out by the caller, so that schedulers index by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

impl FlowId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A group of flows, such as the processes of one VM; small and dense as well. Every flow starts in group 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kernel's I/O classes (`ioprio_set(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Before everyone else.
    RealTime,
    /// The normal class.
    #[default]
    BestEffort,
    /// Only when nobody else wants the disk.
    Idle,
}

/// What a flow was promised: at most `burst + rate * t` cost units in any interval `t` are served within `delay` each.
/// The words of pClock and HTBS: sigma, rho, delta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contract {
    /// rho, in cost units a second (requests, or size units; see [`crate::Cost`]).
    pub rate_per_second: f64,
    /// sigma, in cost units.
    pub burst: f64,
    /// delta.
    pub delay: Nanos,
}

/// Everything a scheduler may want to know of a flow. Each takes what it understands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowParameters {
    /// Proportional weight, 1 to 10,000; 100 is neutral (SFQ, BFQ, mClock).
    pub weight: u32,
    /// The group it belongs to (CFQ, BFQ).
    pub group: GroupId,
    /// I/O class (deadline, CFQ, BFQ).
    pub class: Class,
    /// Best-effort level, 0 highest to 7 (CFQ, BFQ).
    pub level: u8,
    /// Guarantee (pClock, HTBS).
    pub contract: Option<Contract>,
    /// Cost units a second that are reserved (mClock).
    pub reservation_per_second: f64,
    /// Cost units a second that are not exceeded; infinite for none (mClock).
    pub limit_per_second: f64,
    /// Priority of requests that carry no tag, 1 to 254 (Tag).
    pub tag_default: u8,
    /// Greatest priority that a request's tag can claim, 1 to 254 (Tag).
    pub tag_max: u8,
}

impl Default for FlowParameters {
    fn default() -> Self {
        Self {
            weight: 100,
            group: GroupId(0),
            class: Class::BestEffort,
            level: 4,
            contract: None,
            reservation_per_second: 0.0,
            limit_per_second: f64::INFINITY,
            tag_default: 1,
            tag_max: 254,
        }
    }
}
