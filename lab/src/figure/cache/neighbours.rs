//! The neighbours of a burst, and what they had while they worked.

use super::burst::{MigrationArm, Written};
use crate::workload::{Access, Latency, Progress, bytes_at};
use minerva_model::Nanos;
use serde::Serialize;

/// For plots.
const BIN: Nanos = Nanos::from_millis(500);

/// Names of the neighbours, with order and bytes a request.
pub const NEIGHBOURS: [(&str, Access, u32); 2] =
    [("random reads of 8 KiB", Access::RandomRead, 8 << 10), ("scan of 256 KiB", Access::SequentialRead, 256 << 10)];

/// What a neighbour did in a stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NeighbourRun {
    /// Megabytes a second while it worked.
    pub mb_per_s: f64,
    /// How long its requests took.
    pub latency: Latency,
}

/// What came of an arm. Seconds are from the start of the neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MigrationRun {
    /// Which.
    pub arm: MigrationArm,
    /// When the burst began, was written as far as the program is concerned, and was at its place; none without a burst.
    pub burst_s: Option<[f64; 3]>,
    /// The neighbours while they worked without a pause.
    pub busy: Vec<NeighbourRun>,
    /// And while they paused now and then.
    pub pausing: Vec<NeighbourRun>,
    /// When they worked: from, until.
    pub worked_s: Vec<[f64; 2]>,
    /// Bytes that moved from the pool while they paused now and then.
    pub moved_pausing: u64,
    /// Megabytes a second of each neighbour, by half seconds.
    pub series: Vec<Vec<f64>>,
}

impl MigrationRun {
    /// Seconds until the program was done.
    pub fn done_s(&self) -> Option<f64> {
        self.burst_s.map(|[began, done, _]| done - began)
    }

    /// Seconds from when the neighbours had gone until all was at its place; none without a burst.
    pub fn placed_after_quiet_s(&self) -> Option<f64> {
        let quiet = self.worked_s.last().map_or(0.0, |[_, until]| *until);
        self.burst_s.map(|[_, _, placed]| (placed - quiet).max(0.0))
    }
}

/// What neighbours did while they worked.
pub(super) struct Stretch {
    pub(super) from: Nanos,
    pub(super) until: Nanos,
    pub(super) latencies: Vec<Latency>,
    pub(super) progress: Vec<Vec<Progress>>,
}

impl Stretch {
    fn seconds(&self) -> f64 {
        self.until.since(self.from).as_secs_f64().max(1e-3)
    }

    fn bytes(&self, place: usize) -> f64 {
        bytes_at(&self.progress[place], self.until)
    }
}

/// All that they did in an arm, and what moved from the pool meanwhile.
#[derive(Default)]
pub(super) struct Neighbours {
    pub(super) begin: Nanos,
    pub(super) stretches: Vec<Stretch>,
    pub(super) moved: u64,
}

impl Neighbours {
    pub(super) fn into_run(self, arm: MigrationArm, begin: Nanos, written: Option<Written>) -> MigrationRun {
        let since = |at: Nanos| at.since(begin).as_secs_f64();
        let places = 0..NEIGHBOURS.len();
        let (busy, pausing) = self.stretches.split_at(self.stretches.len().min(1));
        let of = |stretches: &[Stretch]| places.clone().map(|place| neighbour(stretches, place)).collect();
        MigrationRun {
            arm,
            burst_s: written.map(|Written { began, done, placed }| [since(began), since(done), since(placed)]),
            busy: of(busy),
            pausing: of(pausing),
            worked_s: self.stretches.iter().map(|stretch| [since(stretch.from), since(stretch.until)]).collect(),
            moved_pausing: self.moved,
            series: places.clone().map(|place| self.series(place)).collect(),
        }
    }

    /// Megabytes a second, by bins.
    fn series(&self, place: usize) -> Vec<f64> {
        let until = self.stretches.last().map_or(self.begin, |stretch| stretch.until);
        let bins = (until.since(self.begin).0 / BIN.0) as usize;
        let had = |at: Nanos| -> f64 { self.stretches.iter().map(|one| bytes_at(&one.progress[place], at)).sum() };
        let bin = |bin: usize| {
            let from = self.begin + Nanos(BIN.0 * bin as u64);
            (had(from + BIN) - had(from)) / BIN.as_secs_f64() / 1e6
        };
        (0..bins).map(bin).collect()
    }
}

fn neighbour(stretches: &[Stretch], place: usize) -> NeighbourRun {
    let seconds: f64 = stretches.iter().map(Stretch::seconds).sum();
    let bytes: f64 = stretches.iter().map(|stretch| stretch.bytes(place)).sum();
    NeighbourRun {
        mb_per_s: bytes / seconds.max(1e-3) / 1e6,
        latency: Latency::merged(stretches.iter().map(|stretch| &stretch.latencies[place])),
    }
}

#[cfg(test)]
mod tests {
    use super::{MigrationArm, Neighbours, Stretch, Written};
    use crate::workload::{Latency, Progress};
    use minerva_model::Nanos;

    fn stretch(from_s: u64, bytes: u64) -> Stretch {
        let (from, until) = (Nanos::from_secs(from_s), Nanos::from_secs(from_s + 2));
        let progress = vec![Progress { at: from, bytes: 0 }, Progress { at: until, bytes }];
        let latencies = vec![Latency::default(), Latency::default()];
        Stretch { from, until, latencies, progress: vec![progress.clone(), progress] }
    }

    #[test]
    fn what_neighbours_had_is_told_for_both_stretches_and_the_quiet_begins_after_them() {
        let stretches = vec![stretch(10, 4_000_000), stretch(14, 2_000_000), stretch(18, 6_000_000)];
        let neighbours = Neighbours { begin: Nanos::from_secs(10), stretches, moved: 7 };
        let [began, done, placed] = [12, 13, 27].map(Nanos::from_secs);
        let run = neighbours.into_run(MigrationArm::Pool, Nanos::from_secs(10), Some(Written { began, done, placed }));
        assert_eq!([run.busy[0].mb_per_s, run.pausing[1].mb_per_s], [2.0, 2.0]);
        assert_eq!((run.done_s(), run.placed_after_quiet_s()), (Some(1.0), Some(7.0)));
        // Bins of half a second: at work, in a pause, at work again.
        assert_eq!([run.series[0][1], run.series[0][5], run.series[0][9]], [2.0, 0.0, 1.0]);
        assert_eq!(run.series[0].len(), 20);
    }
}
