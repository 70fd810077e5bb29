//! Requests put back into the order in which they were made. Who writes a trace often writes a row when its request is done, so
//! that rows stand by completion and their times go back by some milliseconds.

use super::record::{Position, Raw};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// So many requests are held at most, whatever the window in time: memory is constant.
const REQUESTS_MAX: usize = 1 << 14;

/// Requests held back until nothing that comes within the window can belong before them.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    /// By instant; of equal ones the first read comes first.
    held: VecDeque<(Raw, Position)>,
    window: Nanos,
    /// The instant of the last one given out.
    given_ns: Option<u64>,
    /// Requests that were put before another one.
    pub(super) moved: u64,
    /// How far back in time the furthest of them was put.
    pub(super) reach_max: Nanos,
}

impl Sorter {
    pub(super) fn new(window: Nanos) -> Self {
        Self { window, ..Self::default() }
    }

    /// The latest instant that was read.
    pub(super) fn newest_ns(&self) -> Option<u64> {
        self.held.back().map(|(raw, _)| raw.at_ns).or(self.given_ns)
    }

    /// Whether a request of this instant is too early to be put where it belongs.
    pub(super) fn is_too_early(&self, at_ns: u64) -> bool {
        let newest = self.newest_ns().unwrap_or(0);
        at_ns.saturating_add(self.window.0) < newest || self.given_ns.is_some_and(|given| at_ns < given)
    }

    /// Takes a request in that is not too early.
    pub(super) fn put(&mut self, raw: Raw, position: Position) {
        let place = self.held.partition_point(|(held, _)| held.at_ns <= raw.at_ns);
        if let Some((newest, _)) = self.held.back().filter(|_| place < self.held.len()) {
            self.moved += 1;
            self.reach_max = self.reach_max.max(Nanos(newest.at_ns - raw.at_ns));
        }
        self.held.insert(place, (raw, position));
    }

    /// The next request in order, if no later one can come before it; `ended` says that none will come.
    pub(super) fn take(&mut self, ended: bool) -> Option<(Raw, Position)> {
        let (oldest, newest) = (self.held.front()?.0.at_ns, self.held.back()?.0.at_ns);
        let is_settled =
            newest - oldest > self.window.0 || self.held.len() > REQUESTS_MAX || self.window == Nanos::ZERO;
        if !ended && !is_settled {
            return None;
        }
        self.given_ns = Some(oldest);
        self.held.pop_front()
    }
}
