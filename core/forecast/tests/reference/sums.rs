//! The bytes of days and weeks, foreseen at midnight, on real VMs.

use super::dates::{Dates, Pending as PendingDates};
use crate::reference::data::{Measure, median, shared, unpacked};
use minerva_forecast::load::{LoadReading, LoadTime, Loads};
use minerva_forecast::seasonal::Totals;
use minerva_model::{Expectation, LoadOf, LoadPart, Nanos};

/// Rates of real VMs in bins of ten minutes: reads and writes of each, KB a second; NaN where nothing is known.
fn bitbrains_bins(first: usize) -> Option<Vec<[Vec<f64>; 2]>> {
    let table = |name: &str| -> Option<Vec<Vec<f64>>> {
        let text = unpacked(&shared(name)?);
        let rows =
            text.lines().skip(1).map(|line| line.split(',').skip(1).map(|cell| cell.parse().unwrap_or(f64::NAN)));
        Some(rows.map(Iterator::collect).collect())
    };
    let (reads, writes) =
        (table("metrics/bitbrains_rnd_10min_read_kbs.csv.gz")?, table("metrics/bitbrains_rnd_10min_write_kbs.csv.gz")?);
    let column = |rows: &[Vec<f64>], vm: usize| rows.iter().map(|row| row[vm]).collect();
    Some((first..reads[0].len()).step_by(SUMS_EVERY).map(|vm| [column(&reads, vm), column(&writes, vm)]).collect())
}

/// One VM in so many, to be done within a minute.
const SUMS_EVERY: usize = 13;
/// The first VM that the figure judges, and that by which the model of errors was chosen.
const HELD_OUT: usize = 0;
pub(crate) const TUNING: usize = 6;
/// Days that only teach.
const SUMS_FROM: usize = 30;
const BIN_SECONDS: u64 = 600;
/// A Monday's midnight, in seconds since 1970.
const MONDAY: u64 = 4 * 86_400;
const BINS_PER_DAY: usize = 144;

/// Days over which sums are judged: what is measured by the forecaster itself, what lies between, and what lies beyond.
const SUMS_DAYS: [(usize, &str); 5] =
    [(1, "a day"), (3, "three days"), (7, "a week"), (14, "two weeks"), (21, "three weeks")];

/// A sum that was told at a midnight, and what came of it so far.
struct Told {
    horizon: usize,
    bins_left: usize,
    /// Reads and writes.
    expected: [Expectation; 2],
    came: [f64; 2],
    is_whole: bool,
}

/// Of one horizon: sums that lay within what was told, sums, and by how many percent each was told too much or too little.
#[derive(Default)]
struct Sums {
    within: u32,
    count: u32,
    apart: Vec<f64>,
}

impl Sums {
    fn judge(&mut self, told: &Told) {
        for (expected, came) in told.expected.iter().zip(told.came).filter(|(_, came)| told.is_whole && *came > 0.0) {
            self.within += u32::from((f64::from(expected.lower)..=f64::from(expected.upper)).contains(&came));
            self.count += 1;
            self.apart.push((f64::from(expected.value).ln_1p() - came.ln_1p()).abs().exp_m1() * 100.0);
        }
    }
}

/// Takes a bin's rates of reads and writes, in KB a second.
fn observe_bin(loads: &mut Loads, of: &LoadOf, at: usize, bytes: [f64; 2]) {
    // In two slices: of the second the forecast's turn is over, so that models are fitted.
    for half in [1, 2] {
        let second = at as u64 * BIN_SECONDS + half * BIN_SECONDS / 2;
        let time = LoadTime { now: Nanos::from_secs(second), wall_seconds: MONDAY + second };
        let totals = Totals { read_bytes: bytes[0] / 2.0, write_bytes: bytes[1] / 2.0, discard_bytes: 0.0 };
        let reading = LoadReading { seconds: BIN_SECONDS as f64 / 2.0, totals, free_bytes: None };
        loads.observe(time, &[(of.clone(), reading)]);
    }
}

/// What each midnight's forecast told of the bytes of the days after it, one VM.
fn sums_of([reads, writes]: &[Vec<f64>; 2], sums: &mut [Sums; SUMS_DAYS.len()], dates: &mut Dates) {
    let (mut loads, of) = (Loads::default(), LoadOf::Group("vm".to_owned()));
    let mut pending: Vec<Told> = Vec::new();
    let mut pending_dates = PendingDates::default();
    for (at, rates) in reads.iter().zip(writes).enumerate() {
        if at % BINS_PER_DAY == 0 && at / BINS_PER_DAY >= SUMS_FROM {
            for forecast in loads.forecasts() {
                pending_dates.tell(&forecast, writes.len() - at);
                pending.extend(SUMS_DAYS.iter().enumerate().map(|(horizon, (days, _))| {
                    let bins_left = days * BINS_PER_DAY;
                    let expected = [LoadPart::Read, LoadPart::Written].map(|part| forecast.sum(part, bins_left));
                    Told { horizon, bins_left, expected, came: [0.0; 2], is_whole: true }
                }));
            }
        }
        let bytes = [*rates.0, *rates.1].map(|rate| rate * 1e3 * BIN_SECONDS as f64);
        pending_dates.bin(bytes[1], dates);
        let is_known = bytes.iter().all(|bytes| bytes.is_finite());
        if is_known {
            observe_bin(&mut loads, &of, at, bytes);
        }
        for told in &mut pending {
            told.bins_left -= 1;
            told.is_whole &= is_known;
            told.came.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        pending.extract_if(.., |told| told.bins_left == 0).for_each(|told| sums[told.horizon].judge(&told));
    }
}

/// Of the bytes that days brought, from each midnight: the part that lay within what was told at its beginning, and how much was told too
/// much or too little in the median.
pub(crate) fn measured() -> Vec<Measure> {
    measured_from(HELD_OUT)
}

/// Of the VMs from this one on, one in [`SUMS_EVERY`].
pub(crate) fn measured_from(first: usize) -> Vec<Measure> {
    let Some(vms) = bitbrains_bins(first) else { return Vec::new() };
    let mut sums: [Sums; SUMS_DAYS.len()] = Default::default();
    let mut dates = Dates::default();
    vms.iter().for_each(|vm| sums_of(vm, &mut sums, &mut dates));
    let measures = SUMS_DAYS.iter().zip(&mut sums).map(|((_, what), Sums { within, count, apart })| {
        let covered = 100.0 * f64::from(*within) / f64::from((*count).max(1));
        println!("Bitbrains, {count} sums of {what}, {} VMs: off by {:.0} % in the median", vms.len(), median(apart));
        let name = format!("Bitbrains, cover of 80 % intervals of the bytes of {what}");
        let mut measure = Measure::at_least(&name, covered, "%", 75.0, "75 to 85 %");
        measure.met &= covered <= 85.0;
        measure
    });
    measures.chain(dates.measured()).collect()
}
