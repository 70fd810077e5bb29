//! What forecasts are worth on real series: the next value's magnitude against every naive forecast.
//!
//! Split by time (the first 70 % of each series only teach) and, where there are several tenants, by tenant (every third one only
//! tests: no model ever learns from it). Settings are chosen on what is left: the first 70 % of those that teach, judged from 40 % on.

use crate::reference::data::{Measure, cloudphysics, median, shared, unpacked};
use crate::reference::sums;
use minerva_forecast::evaluate::{Accuracy, Edges};
use minerva_forecast::host::{Answer, Growth, Learner, LearnerSettings};
use minerva_forecast::online::{IntervalMeter, NAIVE, Naive, SkillMeter};
use minerva_forecast::tenant::{Cutter, FeatureState, Reading, Row, Usage};

const NAMES: [&str; NAIVE] = ["zero", "last", "mean of 16", "long mean", "median"];

/// What is judged.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// What settings are chosen on.
    Tuning,
    /// What nothing was chosen on.
    HeldOut,
}

impl Part {
    /// Whether the value of a series at this place is judged, and whether models see it at all.
    fn judges(self, at: usize, series: &Series) -> (bool, bool) {
        let permille = at * 1000 / series.readings.len();
        match self {
            Self::Tuning => ((400..700).contains(&permille), permille < 700 && !series.only_tests),
            Self::HeldOut => (permille >= 700, true),
        }
    }
}

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
    edges: Edges,
    row: Option<Row>,
    /// Squares of the logarithm's errors: of the mean, of the median, of the last value.
    log_errors: [f64; 3],
}

/// Errors over all tenants after the split.
#[derive(Default)]
struct Outcome {
    model: Accuracy,
    naive: [Accuracy; NAIVE],
    /// Values with an interval; those of them strictly within it, and as many as are within when what lies on an edge counts in part.
    with_interval: f64,
    strictly: f64,
    in_part: f64,
    /// Of each tenant: RMSE of log1p to that of the last value, by the mean's trees and by the median's.
    ratios: [Vec<f64>; 2],
}

/// Goes through all series in step, slice by slice; learns and forecasts.
fn prequential(series: &[Series], settings: LearnerSettings, refit_rows: usize, part: Part) -> Outcome {
    let mut learner = Learner::new(settings);
    let mut outcome = Outcome::default();
    let mut followed: Vec<Followed> = series
        .iter()
        .map(|_| Followed {
            features: FeatureState::bounded(),
            cutter: Cutter::default(),
            naive: Naive::default(),
            skill: SkillMeter::default(),
            interval: IntervalMeter::new(0.8),
            edges: Edges::default(),
            row: None,
            log_errors: [0.0; 3],
        })
        .collect();
    let length = series.iter().map(|series| series.readings.len()).max().unwrap_or(0);
    let mut rows = 0;
    for at in 0..length {
        for (series, tenant) in series.iter().zip(&mut followed) {
            let Some(reading) = series.readings.get(at) else { continue };
            let (is_judged, is_seen) = part.judges(at, series);
            if !is_seen {
                continue;
            }
            let came = (reading.read_bytes + reading.write_bytes) / reading.elapsed_seconds;
            if let Some(row) = &tenant.row {
                let answer = learner.predict(row, row[0]).unwrap_or(Answer { median: row[0], mean: row[0] });
                let [median, mean] = [answer.median, answer.mean].map(|log| tenant.features.within_reach(log));
                let answer = Answer { median, mean };
                let naive = tenant.naive.forecasts();
                // As in the product: a model that loses is switched off.
                let forecast = match tenant.skill.is_switched_off() {
                    true => naive[tenant.skill.best_naive()],
                    false => f64::from(answer.median).exp_m1(),
                };
                let interval = tenant.interval.interval(forecast);
                let held = interval.map(|interval| tenant.edges.observe(0.8, interval, came));
                if is_judged {
                    outcome.model.add(forecast, came);
                    for (accuracy, naive) in outcome.naive.iter_mut().zip(tenant.naive.forecasts()) {
                        accuracy.add(naive, came);
                    }
                    if let Some((interval, (strictly, in_part))) = interval.zip(held) {
                        outcome.model.add_interval(interval.low, interval.high, came);
                        outcome.with_interval += 1.0;
                        outcome.strictly += strictly;
                        outcome.in_part += in_part;
                    }
                    let last = tenant.naive.forecasts()[1];
                    let told = [f64::from(answer.mean), f64::from(answer.median), last.ln_1p()];
                    tenant
                        .log_errors
                        .iter_mut()
                        .zip(told)
                        .for_each(|(sum, told)| *sum += (told - came.ln_1p()).powi(2));
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
    let of = |index: usize| -> Vec<f64> {
        let known = followed.iter().map(|tenant| tenant.log_errors).filter(|[_, _, last]| *last > 0.0);
        known.map(|errors| (errors[index] / errors[2]).sqrt()).collect()
    };
    outcome.ratios = [of(0), of(1)];
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

/// Error against the best naive forecast, and the coverage of intervals.
fn judge(what: &str, outcome: &Outcome) -> Vec<Measure> {
    let of = |index: usize| outcome.naive[index].mae();
    let best = (0..NAIVE).min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap();
    let ratio = outcome.model.mae() / of(best);
    let coverage = outcome.model.coverage_percent();
    let detail: Vec<String> = (0..NAIVE).map(|index| format!("{} {:.0}", NAMES[index], of(index))).collect();
    println!("{what}: model {:.0}; {}", outcome.model.mae(), detail.join(", "));
    let percent = |count: f64| 100.0 * count / outcome.with_interval.max(1.0);
    let name = format!(
        "{what}, cover of 80 % intervals, what lies on an edge counted in part (all of it {coverage:.1} %, none {:.1} %)",
        percent(outcome.strictly)
    );
    let mut cover = Measure::at_least(&name, percent(outcome.in_part), "%", 75.0, "75 to 85 %");
    cover.met &= cover.value <= 85.0;
    let name = format!("{what}, MAE of the next value to the best naive forecast's ({})", NAMES[best]);
    vec![Measure::at_most(&name, ratio, "", 1.0, "below 1"), cover]
}

/// Rows from refit to refit: of Bitbrains some nine days of twenty tenants, else ten minutes of slices.
const BITBRAINS_REFIT: usize = 50_000;
const REFIT: usize = 600;

const RATIO: &str = "Bitbrains, median ratio to persistence of the RMSE of logarithms";

pub(crate) fn measured() -> Vec<Measure> {
    let mut measures = measured_with(LearnerSettings::default(), BITBRAINS_REFIT, Part::HeldOut);
    measures.extend(sums::measured());
    measures
}

fn measured_with(settings: LearnerSettings, bitbrains_refit: usize, part: Part) -> Vec<Measure> {
    let mut measures = Vec::new();
    if let Some(series) = bitbrains() {
        let mut outcome = prequential(&series, settings, bitbrains_refit, part);
        measures.extend(judge("Bitbrains", &outcome));
        let [mean, by_median] = &mut outcome.ratios;
        println!("the same of the median's trees: {:.3}", median(by_median));
        measures.push(Measure::at_most(RATIO, median(mean), "", 0.78, "at most 0.78"));
    }
    if let Some(series) = cloudphysics_series() {
        measures.extend(judge("CloudPhysics", &prequential(&series, settings, REFIT, part)));
    }
    if let Some(series) = nab() {
        measures.extend(judge("NAB", &prequential(&series, settings, REFIT, part)));
    }
    measures
}

/// What the settings of the trees were chosen from, on the tuning part alone.
pub(crate) fn tuned() {
    let by_leaves = |median, mean, mean_trees| Growth::ByLeaves { median, mean, mean_trees };
    for (growth, refit) in [
        (Growth::ByLevels, BITBRAINS_REFIT),
        (by_leaves(16, 31, 100), BITBRAINS_REFIT),
        (by_leaves(16, 31, 200), BITBRAINS_REFIT),
        (by_leaves(31, 31, 200), BITBRAINS_REFIT),
    ] {
        let settings = LearnerSettings { growth, ..LearnerSettings::default() };
        println!("{growth:?}, refit every {refit} rows of Bitbrains");
        for measure in measured_with(settings, refit, Part::Tuning) {
            println!("    {:.4} {}", measure.value, measure.what);
        }
    }
}
