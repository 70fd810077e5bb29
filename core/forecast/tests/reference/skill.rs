//! What forecasts are worth on real series: the next value's magnitude against every naive forecast.
//!
//! Split by time (the first 70 % of each series only teach) and, where there are several tenants, by tenant (every third one only
//! tests: no model ever learns from it).

use crate::reference::data::{Measure, cloudphysics, median, shared, unpacked};
use minerva_forecast::evaluate::Accuracy;
use minerva_forecast::host::{Answer, Learner, LearnerSettings};
use minerva_forecast::load::{LoadReading, LoadTime, Loads};
use minerva_forecast::online::{IntervalMeter, NAIVE, Naive, SkillMeter};
use minerva_forecast::seasonal::Totals;
use minerva_forecast::tenant::{Cutter, FeatureState, Reading, Row, Usage};
use minerva_model::{Expectation, LoadOf, Nanos};

const NAMES: [&str; NAIVE] = ["zero", "last", "mean of 16", "long mean", "median"];

/// One tenant's readings, oldest first.
struct Series {
    readings: Vec<Reading>,
    only_tests: bool,
}

/// What is followed of one tenant.
struct Followed {
    features: FeatureState,
    cutter: Cutter,
    naive: Naive,
    skill: SkillMeter,
    interval: IntervalMeter,
    row: Option<Row>,
    own: Accuracy,
    log_errors: (f64, f64),
}

/// Errors over all tenants after the split.
#[derive(Default)]
struct Outcome {
    model: Accuracy,
    naive: [Accuracy; NAIVE],
    /// Values with an interval, and those of them that lay on its edge.
    with_interval: u32,
    on_edge: u32,
    /// Of each tenant: RMSE of log1p to that of the last value.
    ratios: Vec<f64>,
}

/// Goes through all series in step, slice by slice; learns and forecasts.
fn prequential(series: &[Series], settings: LearnerSettings, refit_rows: usize) -> Outcome {
    let mut learner = Learner::new(settings);
    let mut outcome = Outcome::default();
    let mut followed: Vec<Followed> = series
        .iter()
        .map(|_| Followed {
            features: FeatureState::default(),
            cutter: Cutter::default(),
            naive: Naive::default(),
            skill: SkillMeter::default(),
            interval: IntervalMeter::new(0.8),
            row: None,
            own: Accuracy::default(),
            log_errors: (0.0, 0.0),
        })
        .collect();
    let length = series.iter().map(|series| series.readings.len()).max().unwrap_or(0);
    let mut rows = 0;
    for at in 0..length {
        for (series, tenant) in series.iter().zip(&mut followed) {
            let Some(reading) = series.readings.get(at) else { continue };
            let came = (reading.read_bytes + reading.write_bytes) / reading.elapsed_seconds;
            if let Some(row) = &tenant.row {
                let answer = learner.predict(row, row[0]).unwrap_or(Answer { median: row[0], mean: row[0] });
                let naive = tenant.naive.forecasts();
                // As in the product: a model that loses is switched off.
                let forecast = match tenant.skill.is_switched_off() {
                    true => naive[tenant.skill.best_naive()],
                    false => f64::from(answer.median).exp_m1(),
                };
                if at * 10 >= series.readings.len() * 7 {
                    outcome.model.add(forecast, came);
                    tenant.own.add(forecast, came);
                    for (accuracy, naive) in outcome.naive.iter_mut().zip(tenant.naive.forecasts()) {
                        accuracy.add(naive, came);
                    }
                    if let Some(interval) = tenant.interval.interval(forecast) {
                        outcome.model.add_interval(interval.low, interval.high, came);
                        let is_on_edge = [interval.low, interval.high].contains(&came);
                        outcome.with_interval += 1;
                        outcome.on_edge += u32::from(is_on_edge);
                    }
                    let last = tenant.naive.forecasts()[1];
                    tenant.log_errors.0 += (f64::from(answer.mean) - came.ln_1p()).powi(2);
                    tenant.log_errors.1 += (last.ln_1p() - came.ln_1p()).powi(2);
                }
                tenant.skill.observe(f64::from(answer.median).exp_m1(), &naive, came);
                tenant.interval.observe(forecast, came);
                if !series.only_tests {
                    learner.observe(row, row[0], came.ln_1p() as f32);
                    rows += 1;
                    if rows % refit_rows == 0 && learner.begin_refit() {
                        while learner.advance() {}
                    }
                }
            }
            tenant.naive.observe(came);
            tenant.cutter.observe(reading);
            tenant.row = Some(tenant.features.observe(reading, tenant.cutter.progress(), 0.0));
        }
    }
    let ratio = |tenant: &Followed| (tenant.log_errors.0 / tenant.log_errors.1).sqrt();
    outcome.ratios = followed.iter().filter(|tenant| tenant.log_errors.1 > 0.0).map(ratio).collect();
    outcome
}

const BITBRAINS_SECONDS: f64 = 300.0;

/// Thirty real VMs at five minutes.
fn bitbrains() -> Option<Vec<Series>> {
    let text = unpacked(&shared("metrics/bitbrains_rnd_30vm_5min.csv.gz")?);
    let mut series: Vec<(u32, Series)> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap_or(0.0)).collect();
        let vm = cells[0] as u32;
        if series.last().is_none_or(|(last, _)| *last != vm) {
            series.push((vm, Series { readings: Vec::new(), only_tests: series.len() % 3 == 2 }));
        }
        let usage = Usage {
            cpus: cells[2] * cells[3] / 100.0,
            memory_bytes: cells[4] * 1e6,
            network_bytes_per_second: (cells[8] + cells[9]) * 1e3,
            ..Usage::default()
        };
        let (read_bytes, write_bytes) = (cells[6] * 1e3 * BITBRAINS_SECONDS, cells[7] * 1e3 * BITBRAINS_SECONDS);
        let reading = Reading {
            elapsed_seconds: BITBRAINS_SECONDS,
            read_bytes,
            write_bytes,
            usage: Some(usage),
            wall_seconds: Some(cells[1] + 7200.0),
            declared_bytes: None,
        };
        series.last_mut().unwrap().1.readings.push(reading);
    }
    Some(series.into_iter().map(|(_, series)| series).collect())
}

/// One VM's requests as rates of a second.
fn cloudphysics_series() -> Option<Vec<Series>> {
    let [read, write] = cloudphysics()?;
    let reading = |(read, write): (f64, f64)| Reading {
        elapsed_seconds: 1.0,
        read_bytes: read * 1e3,
        write_bytes: write * 1e3,
        ..Reading::default()
    };
    Some(vec![Series { readings: read.into_iter().zip(write).map(reading).collect(), only_tests: false }])
}

/// Counts of bytes of cloud machines at five minutes.
fn nab() -> Option<Vec<Series>> {
    let names =
        ["ec2_disk_write_bytes_1ef3de.csv", "ec2_network_in_257a54.csv", "iio_us-east-1_i-a2eb1cd9_NetworkIn.csv"];
    names
        .iter()
        .map(|name| {
            let text = std::fs::read_to_string(shared(&format!("nab/{name}"))?).unwrap();
            let value = |line: &str| line.split(',').nth(1).and_then(|cell| cell.parse().ok()).unwrap_or(0.0);
            let reading = |line: &str| Reading { elapsed_seconds: 1.0, write_bytes: value(line), ..Reading::default() };
            Some(Series { readings: text.lines().skip(1).map(reading).collect(), only_tests: false })
        })
        .collect()
}

/// Rates of real VMs in bins of ten minutes: reads and writes of each, KB a second; NaN where nothing is known.
fn bitbrains_bins() -> Option<Vec<[Vec<f64>; 2]>> {
    let table = |name: &str| -> Option<Vec<Vec<f64>>> {
        let text = unpacked(&shared(name)?);
        let rows =
            text.lines().skip(1).map(|line| line.split(',').skip(1).map(|cell| cell.parse().unwrap_or(f64::NAN)));
        Some(rows.map(Iterator::collect).collect())
    };
    let (reads, writes) =
        (table("metrics/bitbrains_rnd_10min_read_kbs.csv.gz")?, table("metrics/bitbrains_rnd_10min_write_kbs.csv.gz")?);
    let column = |rows: &[Vec<f64>], vm: usize| rows.iter().map(|row| row[vm]).collect();
    Some((0..reads[0].len()).step_by(SUMS_EVERY).map(|vm| [column(&reads, vm), column(&writes, vm)]).collect())
}

/// One VM in so many, to be done within a minute.
const SUMS_EVERY: usize = 13;
/// Days that only teach.
const SUMS_FROM: usize = 30;
const BIN_SECONDS: u64 = 600;
/// A Monday's midnight, in seconds since 1970.
const MONDAY: u64 = 4 * 86_400;
const BINS_PER_DAY: usize = 144;

/// Of the bytes that a day brought, from each midnight: the part that lay within what was told at its beginning, and how much was told too
/// much or too little in the median.
fn sums_of_days() -> Vec<Measure> {
    let Some(vms) = bitbrains_bins() else { return Vec::new() };
    let (mut within, mut days, mut apart) = (0_u32, 0_u32, Vec::new());
    for [reads, writes] in &vms {
        let (mut loads, of) = (Loads::default(), LoadOf::Group("vm".to_owned()));
        let mut told: Option<[Expectation; 2]> = None;
        let mut came = ([0.0; 2], 0);
        for (at, rates) in reads.iter().zip(writes).enumerate() {
            let end = (at as u64 + 1) * BIN_SECONDS;
            if at % BINS_PER_DAY == 0 {
                if let Some(told) = told.take().filter(|_| came.1 == BINS_PER_DAY && at / BINS_PER_DAY > SUMS_FROM) {
                    for (told, came) in told.iter().zip(came.0).filter(|(_, came)| *came > 0.0) {
                        within += u32::from((f64::from(told.lower)..=f64::from(told.upper)).contains(&came));
                        days += 1;
                        apart.push((f64::from(told.value).ln_1p() - came.ln_1p()).abs().exp_m1() * 100.0);
                    }
                }
                came = ([0.0; 2], 0);
                told = loads.forecasts().first().map(|forecast| [forecast.day.read, forecast.day.written]);
            }
            let bytes = [*rates.0, *rates.1].map(|rate| rate * 1e3 * BIN_SECONDS as f64);
            // In two slices: of the second the forecast's turn is over, so that models are fitted.
            for half in [1, 2] {
                let second = end - BIN_SECONDS + half * BIN_SECONDS / 2;
                let time = LoadTime { now: Nanos::from_secs(second), wall_seconds: MONDAY + second };
                let totals = Totals { read_bytes: bytes[0] / 2.0, write_bytes: bytes[1] / 2.0, discard_bytes: 0.0 };
                let reading = LoadReading { seconds: BIN_SECONDS as f64 / 2.0, totals, free_bytes: None };
                if bytes.iter().all(|bytes| bytes.is_finite()) {
                    loads.observe(time, &[(of.clone(), reading)]);
                }
            }
            if bytes.iter().all(|bytes| bytes.is_finite()) {
                came.0.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
                came.1 += 1;
            }
        }
    }
    let covered = 100.0 * f64::from(within) / f64::from(days.max(1));
    println!("Bitbrains, bytes of {days} days of {} VMs: off by {:.0} % in the median", vms.len(), median(&mut apart));
    let mut measure =
        Measure::at_least("Bitbrains, cover of 80 % intervals of the bytes of a day", covered, "%", 75.0, "75 to 85 %");
    measure.met &= covered <= 85.0;
    vec![measure]
}

/// Error against the best naive forecast, and the coverage of intervals.
fn judge(what: &str, outcome: &Outcome) -> Vec<Measure> {
    let of = |index: usize| outcome.naive[index].mae();
    let best = (0..NAIVE).min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap();
    let ratio = outcome.model.mae() / of(best);
    let coverage = outcome.model.coverage_percent();
    let detail: Vec<String> = (0..NAIVE).map(|index| format!("{} {:.0}", NAMES[index], of(index))).collect();
    println!("{what}: model {:.0}; {}", outcome.model.mae(), detail.join(", "));
    // Values that repeat lie on the edge: a quantile has at most so much strictly beyond it, and at least so much with its edge.
    let on_edge = 100.0 * f64::from(outcome.on_edge) / f64::from(outcome.with_interval.max(1));
    let name = format!("{what}, cover of 80 % intervals, of which on the edge {on_edge:.1} %");
    let mut cover = Measure::at_least(&name, coverage, "%", 75.0, "75 to 85 %, or less than 85 % strictly within");
    cover.met &= coverage - on_edge <= 85.0;
    let name = format!("{what}, MAE of the next value to the best naive forecast's ({})", NAMES[best]);
    vec![Measure::at_most(&name, ratio, "", 1.0, "below 1"), cover]
}

pub(crate) fn measured() -> Vec<Measure> {
    let mut measures = Vec::new();
    if let Some(series) = bitbrains() {
        let mut outcome = prequential(&series, LearnerSettings::default(), 50_000);
        measures.extend(judge("Bitbrains", &outcome));
        let ratio = median(&mut outcome.ratios);
        let name = "Bitbrains, median ratio to persistence of the RMSE of logarithms";
        measures.push(Measure::at_most(name, ratio, "", 0.78, "at most 0.78"));
    }
    if let Some(series) = cloudphysics_series() {
        measures.extend(judge("CloudPhysics", &prequential(&series, LearnerSettings::default(), 600)));
    }
    if let Some(series) = nab() {
        measures.extend(judge("NAB", &prequential(&series, LearnerSettings::default(), 600)));
    }
    measures.extend(sums_of_days());
    measures
}
