//! What is drawn of a tenant on a disk: reads and writes together, in bytes a second.

use minerva_api::v1;

/// One slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    /// What came; nothing for a slice that is still to come.
    pub(super) came: Option<f64>,
    /// What was, or is, expected: value, lower and upper end.
    pub(super) expected: Option<[f64; 3]>,
}

/// Slices in order.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) points: Vec<Point>,
    /// How many of them are over.
    pub(super) past: usize,
    pub(super) slice_seconds: f64,
    /// When the last of those ended, for people.
    pub(super) unix_ns: i64,
    /// What is drawn as the interval, for people.
    pub(super) interval: String,
}

/// What the intervals of slices are.
pub(super) const INTERVAL: &str = "interval: 80 of 100 are within";

impl Series {
    pub(super) fn new(answer: &v1::ForecastResponse, disk: &v1::DiskForecast) -> Self {
        let past = disk.past.iter().map(|slice| Point {
            came: Some(slice.read_bytes_per_second + slice.write_bytes_per_second),
            expected: slice.expected.map(ends),
        });
        let count = disk.reads_ahead.len().max(disk.writes_ahead.len());
        let at = |ahead: &[v1::SliceAhead], index: usize| {
            ahead.get(index).and_then(|slice| slice.expected).map_or([0.0; 3], ends)
        };
        let ahead = (0..count).map(|index| {
            let (reads, writes) = (at(&disk.reads_ahead, index), at(&disk.writes_ahead, index));
            let expected = std::array::from_fn(|end| reads[end] + writes[end]);
            Point { came: None, expected: Some(expected) }
        });
        Self {
            points: past.chain(ahead).collect(),
            past: disk.past.len(),
            // Slices shorter than a second are forecast by the second; what is behind is drawn slice by slice all the same.
            slice_seconds: answer.slice_ns as f64 / 1e9,
            unix_ns: answer.unix_ns,
            interval: INTERVAL.to_owned(),
        }
    }

    /// How many of the slices that are over had an interval, and how many of those lay within it, in words.
    pub(super) fn held(&self) -> Option<String> {
        let pairs = self.points.iter().filter_map(|point| point.came.zip(point.expected));
        // Both ends are the value until enough came: that is no interval.
        let pairs = pairs.filter(|(_, [_, lower, upper])| lower < upper);
        let is_within = |(came, [_, lower, upper]): (f64, [f64; 3])| (lower..=upper).contains(&came);
        let held: Vec<bool> = pairs.map(is_within).collect();
        let (count, within) = (held.len(), held.iter().filter(|held| **held).count());
        (count > 0).then(|| format!("of {count} slices that had an interval {within} lay within it"))
    }

    /// The latest `past` slices, and all that are to come.
    pub(super) fn latest(mut self, past: usize) -> Self {
        let over = self.past.saturating_sub(past);
        self.points.drain(..over);
        self.past -= over;
        self
    }

    /// What all that is drawn is below: a width of an interval beyond reason does not flatten the rest.
    pub(super) fn top(&self) -> f64 {
        let values =
            self.points.iter().flat_map(|point| point.came.into_iter().chain(point.expected.map(|ends| ends[0])));
        let largest = values.fold(0.0, f64::max);
        let upper = self.points.iter().filter_map(|point| point.expected).map(|ends| ends[2]).fold(0.0, f64::max);
        upper.clamp(largest, 2.0 * largest).max(1.0)
    }
}

fn ends(interval: v1::Interval) -> [f64; 3] {
    [interval.value, interval.lower, interval.upper]
}
