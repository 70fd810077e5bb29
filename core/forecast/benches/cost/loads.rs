//! What forecasts of days and weeks cost: as many disks as there is room for, each with its free space and a history of six weeks, over the
//! end of a bin, the end of a week, the fits that are due then, a sleep of days, and a restart.

use crate::reference::data::Measure;
use crate::resident_mib;
use minerva_forecast::load::{LOADS_MAX, LoadReading, LoadTime, Loads};
use minerva_forecast::seasonal::{BIN_SECONDS, BINS_PER_DAY, BINS_PER_WEEK, Totals};
use minerva_model::{DeviceId, LoadOf, Nanos};
use std::time::Instant;

/// A Monday's midnight.
const MONDAY: u64 = 4 * 86_400 + 2_000 * 7 * 86_400;
/// Ensembles of a disk (read, written, discarded, used up, freed), of each of which three models are fitted.
const FITS: u64 = LOADS_MAX as u64 * 5 * 3;
/// Models are fitted after so many weeks, and once more after the week that follows.
const WEEKS_BEFORE_FITS: u64 = 5;
const WEEKS: u64 = WEEKS_BEFORE_FITS + 1;
/// Slices of a second that are measured before the midnight and after it, until all models are fitted.
const SLICES_BEFORE: u64 = BIN_SECONDS;
const SLICES_AFTER: u64 = 3 * BIN_SECONDS;
const DAYS_ASLEEP: u64 = 6;

/// A host of disks.
pub(crate) struct Host {
    loads: Loads,
    /// Seconds since it began, on a Monday.
    second: u64,
}

impl Host {
    fn new() -> Self {
        Self { loads: Loads::default(), second: 0 }
    }

    /// So many seconds in one slice; how many milliseconds the forecasts took.
    fn slice(&mut self, seconds: u64) -> f64 {
        self.second += seconds;
        let slice: Vec<(LoadOf, LoadReading)> =
            (0..LOADS_MAX as u32).map(|number| reading(number, self.second, seconds)).collect();
        let time = LoadTime { now: Nanos::from_secs(self.second), wall_seconds: MONDAY + self.second };
        let started = Instant::now();
        self.loads.observe(time, &slice);
        std::hint::black_box(self.loads.forecasts());
        started.elapsed().as_secs_f64() * 1000.0
    }

    /// Whole bins, a slice each: in such slices forecasts are made and no models fitted.
    fn bins(&mut self, count: u64) {
        for _ in 0..count {
            self.slice(BIN_SECONDS);
        }
    }
}

/// An office's disk: by day on weekdays, a backup at night, one in four discards, and all are emptied at night.
fn reading(number: u32, second: u64, seconds: u64) -> (LoadOf, LoadReading) {
    let (bin, day, hour) = ((second - 1) / BIN_SECONDS, (second - 1) / 86_400, (second - 1) / 3_600 % 24);
    let about = noise(bin << 8 | u64::from(number)) * (1.0 + f64::from(number));
    let by_day = if day % 7 < 5 && (8..18).contains(&hour) { 20.0 } else { 1.0 };
    let by_night = if hour == 2 { 50.0 } else { 0.5 };
    let bytes = |level: f64| level * about * 1e6 * seconds as f64;
    let discards = if number.is_multiple_of(4) { by_night } else { 0.0 };
    let totals = Totals { read_bytes: bytes(by_day), write_bytes: bytes(by_night), discard_bytes: bytes(discards) };
    let free_bytes = Some(1e13 - (second % 86_400) as f64 * about * 1e6);
    (LoadOf::Device(DeviceId { major: 8, minor: number }), LoadReading { seconds: seconds as f64, totals, free_bytes })
}

/// A number from 0.5 to 1.5 that has nothing to do with the one before (SplitMix of Steele, Lea and Flood 2014).
fn noise(seed: u64) -> f64 {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    0.5 + ((mixed ^ (mixed >> 27)) >> 40) as f64 / 2.0_f64.powi(24)
}

/// Days and weeks of a full host; with it, as what it holds must not be given to what is measured next.
pub(crate) fn measured() -> (Host, Vec<Measure>) {
    let before = resident_mib();
    let mut host = Host::new();
    host.bins(WEEKS_BEFORE_FITS * BINS_PER_WEEK as u64);
    // So that all members speak at the midnight that is measured, which makes that one as dear as they come.
    for _ in 0..FITS + LOADS_MAX as u64 {
        host.slice(1);
    }
    let to_midnight = WEEKS * BINS_PER_WEEK as u64 * BIN_SECONDS - host.second;
    host.slice((to_midnight - SLICES_BEFORE) % BIN_SECONDS);
    host.bins((to_midnight - SLICES_BEFORE) / BIN_SECONDS);
    let mut measures = slices(&mut host);
    if let Some((before, after)) = before.zip(resident_mib()) {
        let name = what("resident memory more");
        measures.push(Measure::at_most(&name, after - before, "MiB", 150.0, "at most 150 MiB, with what is above"));
    }
    measures.push(late(&format!("the slice after {DAYS_ASLEEP} days asleep"), host.slice(DAYS_ASLEEP * 86_400)));
    (host, measures)
}

fn what(text: &str) -> String {
    format!("days and weeks of {LOADS_MAX} disks, six weeks known of each: {text}")
}

fn late(text: &str, took: f64) -> Measure {
    Measure::at_most(&what(text), took, "ms", 1000.0, "no slice late: below 1 s")
}

/// Slices of a second from before a week's end on.
fn slices(host: &mut Host) -> Vec<Measure> {
    let (mut sum, mut ends_week, mut ends_bin, mut others) = (0.0, 0.0_f64, 0.0_f64, 0.0_f64);
    for _ in 0..SLICES_BEFORE + SLICES_AFTER {
        let took = host.slice(1);
        sum += took;
        // A bin is over with the first slice after its last second.
        let of = match (host.second - 1) % (BINS_PER_DAY as u64 * BIN_SECONDS) {
            0 => &mut ends_week,
            since if since % BIN_SECONDS == 0 => &mut ends_bin,
            _ => &mut others,
        };
        *of = of.max(took);
    }
    let count = SLICES_BEFORE + SLICES_AFTER;
    let part = format!(
        "part of one core at slices of 1 s, {count} slices in which {FITS} models are fitted and the forecasts of all made four times"
    );
    vec![
        Measure::at_most(&what(&part), sum / count as f64 / 10.0, "%", 10.0, "at most 10 %, with what is above"),
        late("the slowest slice that makes a forecast or fits a model", others),
        late("the slowest slice that ends a bin", ends_bin),
        late("the slice that ends a week", ends_week),
    ]
}

/// Says how long taking over what an earlier run kept takes: at its start, before there are slices that could be late.
pub(crate) fn tell_recall(host: &Host) {
    let bytes = host.loads.encode().expect("a history");
    let started = Instant::now();
    Loads::default().recall(&bytes).expect("whole");
    println!("{}", what(&format!("taking them over at a start, {:.0} ms", started.elapsed().as_secs_f64() * 1000.0)));
}
