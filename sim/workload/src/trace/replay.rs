//! A process that does what a trace says.

use super::feed::{Ahead, Feed, Lane};
use super::reader::TraceReader;
use super::record::Record;
use super::replay_options::{Pace, ReplayOptions, Replayed};
use crate::{IoRequest, Source, Step};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process that replays a trace, or one volume of it. A [`Source`] has no way to say that something failed, so that is found
/// in [`TraceSource::replayed`].
pub struct TraceSource {
    feed: Arc<Mutex<Feed>>,
    lane: usize,
    pace: Pace,
    sync_writes: bool,
    outstanding: u32,
    started: Option<Nanos>,
}

/// A process that is far ahead of the others looks again after so long.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

impl TraceSource {
    /// A process that replays what is left of `trace`. A speed that is not above 0 counts as 1.
    pub fn new(trace: TraceReader, options: ReplayOptions) -> Self {
        let lane = Lane { volume: options.volume, base_bytes: 0, region_bytes: options.capacity_bytes };
        Self::of(trace, options, &[lane]).0
    }

    /// A process for each of `lanes`, which share one reading of `trace`; `options.volume` and `options.capacity_bytes` are the
    /// lanes' to say. They start together. At [`Pace::Closed`] each has its own depth, and none gets further ahead of the others
    /// than memory allows.
    pub fn split(trace: TraceReader, options: ReplayOptions, lanes: &[Lane]) -> Vec<Self> {
        if lanes.is_empty() {
            return Vec::new();
        }
        let (first, feed) = Self::of(trace, options, lanes);
        let others = (1..lanes.len()).map(|lane| Self::on(Arc::clone(&feed), options, lane));
        std::iter::once(first).chain(others).collect()
    }

    fn of(trace: TraceReader, options: ReplayOptions, lanes: &[Lane]) -> (Self, Arc<Mutex<Feed>>) {
        let feed = Arc::new(Mutex::new(Feed::new(trace, options, lanes)));
        (Self::on(Arc::clone(&feed), options, 0), feed)
    }

    fn on(feed: Arc<Mutex<Feed>>, options: ReplayOptions, lane: usize) -> Self {
        let ReplayOptions { pace, sync_writes, .. } = options;
        Self { feed, lane, pace, sync_writes, outstanding: 0, started: None }
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the account of the whole replay appears, when it has ended or is dropped.
    pub fn replayed(&self) -> Arc<Mutex<Replayed>> {
        self.feed().shared()
    }

    /// When what the trace did at `at` is done again.
    fn instant(&self, started: Nanos, at: Nanos) -> Nanos {
        match self.pace {
            Pace::Open { speed } if speed > 0.0 && speed != 1.0 => started + Nanos((at.0 as f64 / speed) as u64),
            Pace::Open { .. } => started + at,
            Pace::Closed { .. } => started,
        }
    }

    fn may_not_ask(&self) -> bool {
        matches!(self.pace, Pace::Closed { depth } if self.outstanding >= depth.max(1))
    }
}

impl Source for TraceSource {
    fn next(&mut self, now: Nanos) -> Step {
        let started = *self.started.get_or_insert(now);
        if self.may_not_ask() {
            return Step::Blocked;
        }
        let mut feed = self.feed();
        let record: Record = match feed.peek(self.lane) {
            Ahead::Request(record) => record,
            Ahead::NothingBefore(at) => return Step::At(self.instant(started, at).max(now + LOOK_AGAIN)),
            Ahead::End => return if self.outstanding == 0 { Step::Finished } else { Step::Blocked },
        };
        let due = self.instant(started, record.at);
        if now < due {
            return Step::At(due);
        }
        feed.take(self.lane);
        drop(feed);
        self.outstanding += 1;
        Step::Issue(IoRequest {
            kind: record.kind,
            sync: matches!(record.kind, Kind::Read | Kind::Flush) || self.sync_writes,
            tag: None,
            offset_bytes: record.offset_bytes,
            length_bytes: record.length_bytes,
        })
    }

    fn completed(&mut self, _now: Nanos, _request: &IoRequest) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

impl Drop for TraceSource {
    fn drop(&mut self) {
        self.feed().publish();
    }
}
