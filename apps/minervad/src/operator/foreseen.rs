//! What was expected of tenants and what then came, for people: nothing is decided by it, so that it is not the engine's.

use crate::metrics::Metrics;
use minerva_api::v1;
use minerva_model::{DeviceId, Forecast, Horizon, Interval, Nanos, Outlook, Signals, TenantId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Slices that are kept of each pair.
const SLICES_MAX: usize = 300;
/// Pairs of which they are kept, 16 MB in all; of more there is no past.
const PAIRS_MAX: usize = 1_000;

type Pair = (TenantId, DeviceId);

#[derive(Debug, Default)]
struct Past {
    slices: VecDeque<Came>,
    /// Bytes that were expected of the slice that is under way.
    expected: Option<[f64; 3]>,
}

/// A slice. Bytes a second.
#[derive(Clone, Copy, Debug)]
struct Came {
    unix_ns: i64,
    read: f32,
    written: f32,
    /// Value, lower and upper end.
    expected: Option<[f32; 3]>,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Foreseen {
    pairs: BTreeMap<Pair, Past>,
    /// Disks and groups whose days ahead have gauges, each with its label `kind`.
    loads: BTreeSet<(&'static str, String)>,
}

impl Foreseen {
    /// A slice has ended: `outlook` is of the next one, which will be `slice` long.
    pub(crate) fn note(&mut self, unix_ns: i64, signals: &Signals, outlook: &Outlook, slice: Nanos, metrics: &Metrics) {
        let next: Vec<&Forecast> = outlook.forecasts().iter().filter(|row| row.horizon == Horizon::NextSlice).collect();
        let is_foreseen = |pair: &Pair| next.binary_search_by_key(pair, |row| (row.tenant, row.device)).is_ok();
        self.pairs.retain(|pair, _| is_foreseen(pair));
        for row in next {
            let pair = (row.tenant, row.device);
            if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&pair) {
                continue;
            }
            let (read, written) = rates(signals, pair);
            let past = self.pairs.entry(pair).or_default();
            let seconds = slice.as_secs_f64();
            let expected = past.expected.replace(both(row)).map(|bytes| bytes.map(|end| (end / seconds) as f32));
            // Both ends are the value until enough came: that is no interval.
            if let Some([_, lower, upper]) = expected.filter(|[_, lower, upper]| lower < upper) {
                metrics.interval_held((lower..=upper).contains(&(read + written)));
            }
            if past.slices.len() >= SLICES_MAX {
                past.slices.pop_front();
            }
            past.slices.push_back(Came { unix_ns, read, written, expected });
        }
    }

    /// These disks and groups have gauges of their days ahead now; those that had and are gone have them no more.
    pub(crate) fn note_loads(&mut self, loads: BTreeSet<(&'static str, String)>, metrics: &Metrics) {
        for (kind, name) in self.loads.difference(&loads) {
            metrics.load_gone(kind, name);
        }
        self.loads = loads;
    }

    /// The latest slices of a pair, oldest first.
    pub(crate) fn past(&self, pair: Pair) -> Vec<v1::PastSlice> {
        let shown = |came: &Came| v1::PastSlice {
            unix_ns: came.unix_ns,
            read_bytes_per_second: came.read.into(),
            write_bytes_per_second: came.written.into(),
            expected: came.expected.map(|[value, lower, upper]| v1::Interval {
                value: value.into(),
                lower: lower.into(),
                upper: upper.into(),
                coverage_permille: minerva_forecast::COVERAGE_PERMILLE,
            }),
        };
        self.pairs.get(&pair).map(|past| past.slices.iter().map(shown).collect()).unwrap_or_default()
    }
}

/// Reads and writes together. Both were made of one interval, so that their ends add up to its ends.
fn both(row: &Forecast) -> [f64; 3] {
    let sum = |end: fn(&Interval) -> f64| end(&row.read_bytes) + end(&row.write_bytes);
    [sum(|interval| interval.value), sum(|interval| interval.lower), sum(|interval| interval.upper)]
}

/// What a pair read and wrote in the slice, in bytes a second; one that was not read did nothing.
fn rates(signals: &Signals, pair: Pair) -> (f32, f32) {
    let Ok(index) = signals.io.binary_search_by_key(&pair, |row| (row.tenant, row.device)) else { return (0.0, 0.0) };
    let row = &signals.io[index];
    let seconds = row.elapsed.as_secs_f64().max(1e-9);
    let rate = |bytes: u64| (bytes as f64 / seconds) as f32;
    (rate(row.transferred.read_bytes), rate(row.transferred.write_bytes))
}

#[cfg(test)]
mod tests {
    use super::{Foreseen, PAIRS_MAX, SLICES_MAX};
    use crate::metrics::Metrics;
    use minerva_model::{
        DeviceId, Forecast, Horizon, Interval, IoCounters, IoSignals, Nanos, Outlook, Signals, TenantId,
    };

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn outlook(tenants: u64, bytes: f64) -> Outlook {
        let row = |tenant| Forecast {
            tenant: TenantId(tenant),
            device: DISK,
            horizon: Horizon::NextSlice,
            read_bytes: Interval { value: bytes, lower: bytes / 2.0, upper: bytes * 2.0, coverage_permille: 800 },
            write_bytes: Interval::default(),
            busy_permille: 1_000,
            skill: 0.0,
            is_naive: false,
            made_at: Nanos::ZERO,
        };
        Outlook::new((0..tenants).map(row).collect())
    }

    fn signals(bytes: u64) -> Signals {
        let row = IoSignals {
            tenant: TenantId(0),
            device: DISK,
            elapsed: Nanos::from_secs(2),
            transferred: IoCounters { read_bytes: bytes, ..IoCounters::default() },
            latency: None,
            served: None,
            disk_time: Nanos::ZERO,
            active: true,
        };
        Signals { io: vec![row], ..Signals::default() }
    }

    #[test]
    fn what_came_stands_beside_what_was_expected_of_it() {
        let (metrics, _) = Metrics::new("shadow");
        let mut foreseen = Foreseen::default();
        let slice = Nanos::from_secs(2);
        foreseen.note(1, &signals(600), &outlook(1, 100.0), slice, &metrics);
        foreseen.note(2, &signals(120), &outlook(1, 50.0), slice, &metrics);
        foreseen.note(3, &Signals::default(), &outlook(1, 50.0), slice, &metrics);
        let past = foreseen.past((TenantId(0), DISK));
        let told: Vec<_> = past
            .iter()
            .map(|row| {
                (row.unix_ns, row.read_bytes_per_second, row.expected.map(|all| (all.value, all.lower, all.upper)))
            })
            .collect();
        assert_eq!(told, [(1, 300.0, None), (2, 60.0, Some((50.0, 25.0, 100.0))), (3, 0.0, Some((25.0, 12.5, 50.0)))]);
        assert_eq!((metrics.intervals_of("held"), metrics.intervals_of("missed")), (1, 1));
    }

    #[test]
    fn a_forecast_without_an_interval_counts_neither_way() {
        let (metrics, _) = Metrics::new("shadow");
        let mut foreseen = Foreseen::default();
        let mut rows = outlook(1, 100.0).forecasts().to_vec();
        // As of the first twenty slices: both ends are the value.
        rows[0].read_bytes = Interval { value: 600.0, lower: 600.0, upper: 600.0, coverage_permille: 800 };
        let outlook = Outlook::new(rows);
        (0..5).for_each(|at| foreseen.note(at, &signals(600), &outlook, Nanos::from_secs(2), &metrics));
        assert_eq!((metrics.intervals_of("held"), metrics.intervals_of("missed")), (0, 0));
        assert_eq!(foreseen.past((TenantId(0), DISK)).len(), 5, "what was expected is shown all the same");
    }

    #[test]
    fn the_past_is_bounded_in_slices_and_pairs() {
        let (metrics, _) = Metrics::new("shadow");
        let mut foreseen = Foreseen::default();
        let all = outlook(PAIRS_MAX as u64 + 5, 1.0);
        for number in 0..=SLICES_MAX {
            foreseen.note(number as i64, &signals(2), &all, Nanos::SECOND, &metrics);
        }
        assert_eq!((foreseen.pairs.len(), foreseen.past((TenantId(0), DISK)).len()), (PAIRS_MAX, SLICES_MAX));
        foreseen.note(0, &signals(2), &outlook(1, 1.0), Nanos::SECOND, &metrics);
        assert_eq!(foreseen.pairs.len(), 1, "nothing is known of the others any more");
    }
}
