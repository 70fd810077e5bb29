//! Seek curves: the time an arm needs for a distance in cylinders.

use crate::limits::TIME_MS_MAX;
use serde::{Deserialize, Serialize};

/// How a profile describes its seek curve. Times in milliseconds, distances in cylinders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Seek {
    /// Lee's curve `a*sqrt(x-1) + b*(x-1) + c`, whose mean over uniformly random pairs of cylinders is `average_ms`.
    Lee {
        /// To the next cylinder.
        single_ms: f64,
        /// Mean over random pairs.
        average_ms: f64,
        /// Over the whole disk.
        full_ms: f64,
    },
    /// Ruemmler and Wilkes 1994: `short_base + short_root*sqrt(x)` below `knee`, `long_base + long_slope*x` from there.
    Hpl {
        /// First distance of the linear part, in cylinders.
        knee: f64,
        /// Constant of the short part.
        short_base_ms: f64,
        /// Factor of the square root.
        short_root_ms: f64,
        /// Constant of the long part.
        long_base_ms: f64,
        /// Per cylinder, in the long part.
        long_slope_ms: f64,
        /// To the next cylinder; the formula's own value when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        single_ms: Option<f64>,
        /// Measured times for distances 1, 2, ...; the formula takes over behind them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        first_ms: Vec<f64>,
    },
    /// Measured points `[cylinders, ms]` in ascending distance; linear between them, the last slope beyond them.
    Table(Vec<(u32, f64)>),
    /// The same time for every distance.
    Constant {
        /// That time.
        ms: f64,
    },
}

impl Seek {
    /// What is wrong with the curve, if anything.
    pub(crate) fn problem(&self, cylinders: u32) -> Option<String> {
        let shape = self.shape_problem();
        if shape.is_some() {
            return shape;
        }
        // Curves are monotone enough that their ends bound them.
        let slowest_ns = self.time_ns(1, cylinders).max(self.time_ns(cylinders.max(2) - 1, cylinders));
        (slowest_ns as f64 > TIME_MS_MAX * 1e6).then(|| format!("seek: it takes up to {} ms", slowest_ns / 1_000_000))
    }

    fn shape_problem(&self) -> Option<String> {
        match self {
            Self::Lee { single_ms, average_ms, full_ms } => {
                let (root, slope) = lee_factors(*single_ms, *average_ms, *full_ms, 2);
                if !(*single_ms > 0.0 && root >= -1e-9 && slope >= -1e-9) {
                    return Some(format!(
                        "seek.lee: single {single_ms}, average {average_ms}, full {full_ms} ms do not give a rising curve; \
                         it needs 15*average >= 10*single + 5*full and 7*single + 8*full >= 15*average"
                    ));
                }
                None
            }
            Self::Hpl { .. } => None,
            Self::Constant { ms } => {
                (ms.is_nan() || *ms < 0.0).then(|| format!("seek.constant: {ms} ms is not a time"))
            }
            Self::Table(points) if points.is_empty() => Some("seek.table has no points".to_owned()),
            Self::Table(points) => points
                .windows(2)
                .find(|pair| pair[0].0 >= pair[1].0)
                .map(|pair| format!("seek.table: distance {} follows {}; distances must rise", pair[1].0, pair[0].0)),
        }
    }

    /// Time for `distance` cylinders on a disk of `cylinders`, in nanoseconds.
    pub fn time_ns(&self, distance: u32, cylinders: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        let x = f64::from(distance);
        let ms = match self {
            Self::Lee { single_ms, average_ms, full_ms } => {
                let (root, slope) = lee_factors(*single_ms, *average_ms, *full_ms, cylinders);
                root * (x - 1.0).sqrt() + slope * (x - 1.0) + single_ms
            }
            Self::Hpl { knee, short_base_ms, short_root_ms, long_base_ms, long_slope_ms, single_ms, first_ms } => {
                let listed = first_ms.get(distance as usize - 1).copied();
                let single = single_ms.filter(|_| distance == 1);
                listed.or(single).unwrap_or(if x < *knee {
                    short_base_ms + short_root_ms * x.sqrt()
                } else {
                    long_base_ms + long_slope_ms * x
                })
            }
            Self::Table(points) => interpolate(points, distance),
            Self::Constant { ms } => *ms,
        };
        (ms.max(0.0) * 1e6).round() as u64
    }
}

/// Lee's `a` (per root) and `b` (per cylinder) for a disk of `cylinders`.
///
/// Over uniformly random pairs of `N` cylinders the mean of `sqrt(x)` is `8/15 sqrt(N)` and of `x` is `N/3`; solving
/// mean = average and end = full gives these.
fn lee_factors(single_ms: f64, average_ms: f64, full_ms: f64, cylinders: u32) -> (f64, f64) {
    // The curve is in `x - 1`, and the longest seek crosses `N - 1` cylinders.
    let stroke = f64::from(cylinders.max(3) - 2);
    let root = (-10.0 * single_ms + 15.0 * average_ms - 5.0 * full_ms) / (3.0 * stroke.sqrt());
    let slope = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * stroke);
    (root, slope)
}

fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    let after = points.partition_point(|point| point.0 < distance);
    let (low, high) = match (points.get(after), points.len()) {
        (_, 0) => return 0.0,
        (_, 1) => return points[0].1,
        // Before the first point nothing was measured: a shorter seek is not slower than the first one.
        (Some(first), _) if after == 0 => return first.1,
        (Some(_), _) => (after - 1, after),
        (None, count) => (count - 2, count - 1),
    };
    let ((x0, y0), (x1, y1)) = (points[low], points[high]);
    y0 + (y1 - y0) * (f64::from(distance) - f64::from(x0)) / (f64::from(x1) - f64::from(x0))
}

/// A curve made ready for the hot path: one look-up or one square root a seek.
#[derive(Clone, Debug)]
pub(crate) struct SeekCurve {
    /// Times by distance while that table is small enough to stay in the processor's cache.
    by_distance_ns: Vec<u32>,
    seek: Seek,
    cylinders: u32,
    root_ns: f64,
    slope_ns: f64,
    single_ns: f64,
}

/// Distances up to this are tabled: 64 KiB of `u32`, and every drive measured before 2000 fits entirely.
const TABLED_CYLINDERS: u32 = 16_384;

impl SeekCurve {
    pub(crate) fn new(seek: &Seek, cylinders: u32) -> Self {
        let tabled = cylinders.min(TABLED_CYLINDERS);
        let by_distance_ns =
            (0..tabled).map(|d| u32::try_from(seek.time_ns(d, cylinders)).unwrap_or(u32::MAX)).collect();
        let (root, slope, single) = match seek {
            Seek::Lee { single_ms, average_ms, full_ms } => {
                let (root, slope) = lee_factors(*single_ms, *average_ms, *full_ms, cylinders);
                (root * 1e6, slope * 1e6, single_ms * 1e6)
            }
            _ => (0.0, 0.0, 0.0),
        };
        Self { by_distance_ns, seek: seek.clone(), cylinders, root_ns: root, slope_ns: slope, single_ns: single }
    }

    /// Time for `distance` cylinders in nanoseconds.
    pub(crate) fn time_ns(&self, distance: u32) -> u64 {
        if let Some(time_ns) = self.by_distance_ns.get(distance as usize) {
            return u64::from(*time_ns);
        }
        if let Seek::Lee { .. } = self.seek {
            let x = f64::from(distance - 1);
            return (self.root_ns * x.sqrt() + self.slope_ns * x + self.single_ns + 0.5) as u64;
        }
        self.seek.time_ns(distance, self.cylinders)
    }
}

#[cfg(test)]
mod tests {
    use super::{Seek, SeekCurve};
    use proptest::prelude::*;

    const LEE: Seek = Seek::Lee { single_ms: 0.8, average_ms: 8.9, full_ms: 18.0 };

    #[test]
    fn lee_reaches_its_average_and_its_full_stroke() {
        let cylinders: u32 = 90_000;
        let curve = SeekCurve::new(&LEE, cylinders);
        assert_eq!(curve.time_ns(0), 0);
        assert_eq!(curve.time_ns(1), 800_000);
        assert_eq!(curve.time_ns(cylinders - 1), 18_000_000);
        // A pair at distance x > 0 has weight 2 (N - x) / N^2.
        let n = f64::from(cylinders);
        let mean_ns: f64 = (1..cylinders).map(|x| 2.0 * (n - f64::from(x)) / (n * n) * curve.time_ns(x) as f64).sum();
        assert!((mean_ns / 8.9e6 - 1.0).abs() < 1e-3, "mean {mean_ns} ns");
    }

    #[test]
    fn hpl_gives_the_published_values() {
        let hp_97560 = Seek::Hpl {
            knee: 384.0,
            short_base_ms: 3.24,
            short_root_ms: 0.4,
            long_base_ms: 8.0,
            long_slope_ms: 0.008,
            single_ms: None,
            first_ms: Vec::new(),
        };
        assert_eq!(hp_97560.time_ns(100, 1962), 7_240_000);
        assert_eq!(hp_97560.time_ns(1000, 1962), 16_000_000);
        let Seek::Hpl { knee, short_base_ms, short_root_ms, long_base_ms, long_slope_ms, .. } = hp_97560 else {
            unreachable!()
        };
        let with_ten = Seek::Hpl {
            knee,
            short_base_ms,
            short_root_ms,
            long_base_ms,
            long_slope_ms,
            single_ms: Some(9.0),
            first_ms: vec![1.0, 2.0],
        };
        assert_eq!((with_ten.time_ns(1, 1962), with_ten.time_ns(2, 1962)), (1_000_000, 2_000_000));
        assert_eq!(with_ten.time_ns(4, 1962), 4_040_000);
    }

    #[test]
    fn a_table_is_linear_between_and_beyond_its_points() {
        let table = Seek::Table(vec![(1, 1.0), (3, 2.0), (10, 9.0)]);
        let times: Vec<u64> = [0, 1, 2, 3, 10, 12].iter().map(|d| table.time_ns(*d, 100)).collect();
        assert_eq!(times, [0, 1_000_000, 1_500_000, 2_000_000, 9_000_000, 11_000_000]);
        assert!(Seek::Table(vec![(3, 1.0), (3, 2.0)]).problem(9).is_some_and(|text| text.contains("must rise")));
    }

    proptest! {
        #[test]
        fn lee_never_falls(distance in 1u32..89_998) {
            let curve = SeekCurve::new(&LEE, 90_000);
            prop_assert!(curve.time_ns(distance) <= curve.time_ns(distance + 1));
        }

        #[test]
        fn the_fast_curve_is_the_plain_one(distance in 0u32..90_000) {
            let (fast, plain) = (SeekCurve::new(&LEE, 90_000).time_ns(distance), LEE.time_ns(distance, 90_000));
            prop_assert!(fast.abs_diff(plain) <= 1);
        }
    }
}
