//! What forecasts are worth on real series: the next value's magnitude against every naive forecast.
//!
//! Split by time (the first 70 % of each series only teach) and, where there are several tenants, by tenant (every third one only
//! tests: no model ever learns from it). Settings are chosen on what is left: the first 70 % of those that teach, judged from 40 % on.

use crate::reference::data::{Measure, cloudphysics, median, shared, unpacked};
use crate::reference::drawn;
use crate::reference::laboratory;
use crate::reference::series::Series;
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
        let permille = at * 1000 / series.length;
        match self {
            Self::Tuning => ((400..700).contains(&permille), permille < 700 && !series.only_tests),
            Self::HeldOut => (permille >= 700, true),
        }
    }
}

/// What is followed of one tenant.
struct Followed {
    features: FeatureState,
    cutter: Cutter,
    naive: Naive,
    row: Option<Row>,
    /// As in the product: what is beyond reach is learnt as what is just within, and what follows it not at all.
    was_beyond_reach: bool,
    /// Of each way to make one forecast of the trees' two answers.
    told: Vec<Told>,
}

/// What is followed of one way.
struct Told {
    skill: SkillMeter,
    interval: IntervalMeter,
    edges: Edges,
    /// Squares of the logarithm's errors, of the forecast and of the last value: in bytes a second, and in kilobytes.
    log_errors: [[f64; 2]; 2],
}

impl Told {
    fn new() -> Self {
        Self {
            skill: SkillMeter::default(),
            interval: IntervalMeter::around_any(0.8),
            edges: Edges::default(),
            log_errors: [[0.0; 2]; 2],
        }
    }

    /// Takes what was said of the value that came.
    fn judge(&mut self, by_trees: f64, naive: &[f64; NAIVE], came: f64, outcome: Option<&mut Outcome>) {
        // As in the product: a model that loses is switched off.
        let forecast = if self.skill.is_switched_off() { naive[self.skill.best_naive()] } else { by_trees };
        let interval = self.interval.interval(forecast);
        let held = interval.map(|interval| self.edges.observe(0.8, interval, came));
        if let Some(outcome) = outcome {
            outcome.model.add(forecast, came);
            for (accuracy, naive) in outcome.naive.iter_mut().zip(naive) {
                accuracy.add(*naive, came);
            }
            if let Some((interval, (strictly, in_part))) = interval.zip(held) {
                outcome.model.add_interval(interval.low, interval.high, came);
                outcome.with_interval += 1.0;
                outcome.strictly += strictly;
                outcome.in_part += in_part;
            }
            for (errors, unit) in self.log_errors.iter_mut().zip([1.0, 1e3]) {
                for (sum, told) in errors.iter_mut().zip([by_trees, naive[1]]) {
                    *sum += ((told / unit).ln_1p() - (came / unit).ln_1p()).powi(2);
                }
            }
        }
        self.skill.observe(by_trees, naive, came);
        self.interval.observe(forecast, came);
    }
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
    /// Of each tenant: RMSE of log1p to that of the last value, in bytes a second and in kilobytes.
    ratios: [Vec<f64>; 2],
}

/// Goes through all series in step, slice by slice; learns and forecasts. `weights` of the mean's trees beside the median's.
fn prequential(
    series: &[Series],
    settings: LearnerSettings,
    refit_rows: usize,
    part: Part,
    weights: &[u8],
) -> Vec<Outcome> {
    let mut learner = Learner::new(settings);
    let mut outcomes: Vec<Outcome> = weights.iter().map(|_| Outcome::default()).collect();
    let mut followed: Vec<Followed> = series
        .iter()
        .map(|_| Followed {
            features: FeatureState::bounded(),
            cutter: Cutter::default(),
            naive: Naive::default(),
            row: None,
            was_beyond_reach: false,
            told: weights.iter().map(|_| Told::new()).collect(),
        })
        .collect();
    let length = series.iter().map(|series| series.begins + series.readings.len()).max().unwrap_or(0);
    let mut rows = 0;
    for at in 0..length {
        for (series, tenant) in series.iter().zip(&mut followed) {
            let Some(reading) = at.checked_sub(series.begins).and_then(|at| series.readings.get(at)) else { continue };
            let (is_judged, is_seen) = part.judges(at, series);
            if !is_seen {
                continue;
            }
            let came = (reading.read_bytes + reading.write_bytes) / reading.elapsed_seconds;
            if let Some(row) = &tenant.row {
                let answer = learner.predict(row, row[0]).unwrap_or(Answer { median: row[0], mean: row[0] });
                let naive = tenant.naive.forecasts();
                for ((told, weight), outcome) in tenant.told.iter_mut().zip(weights).zip(&mut outcomes) {
                    let log = tenant.features.within_reach(answer.told(*weight));
                    told.judge(f64::from(log).exp_m1(), &naive, came, is_judged.then_some(outcome));
                }
                if !series.only_tests {
                    let (came_log, before) = (came.ln_1p() as f32, tenant.was_beyond_reach);
                    let within = tenant.features.within_reach(came_log);
                    tenant.was_beyond_reach = came_log > within;
                    if !before {
                        learner.observe(row, row[0], within);
                    }
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
    for (index, outcome) in outcomes.iter_mut().enumerate() {
        outcome.ratios = [0, 1].map(|unit| {
            let errors = followed.iter().map(|tenant| tenant.told[index].log_errors[unit]);
            errors.filter(|[_, last]| *last > 0.0).map(|[ours, last]| (ours / last).sqrt()).collect()
        });
    }
    outcomes
}

const BITBRAINS_SECONDS: f64 = 300.0;

/// Thirty real VMs at five minutes.
fn bitbrains() -> Option<Vec<Series>> {
    let text = unpacked(&shared("metrics/bitbrains_rnd_30vm_5min.csv.gz")?);
    let mut vms: Vec<(u32, Vec<Reading>)> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap_or(0.0)).collect();
        let vm = cells[0] as u32;
        if vms.last().is_none_or(|(last, _)| *last != vm) {
            vms.push((vm, Vec::new()));
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
            account: 0,
        };
        vms.last_mut().unwrap().1.push(reading);
    }
    let series = |(number, (_, readings)): (usize, (u32, Vec<Reading>))| Series::alone(readings, number % 3 == 2);
    Some(vms.into_iter().enumerate().map(series).collect())
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
    Some(vec![Series::alone(read.into_iter().zip(write).map(reading).collect(), false)])
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
            Some(Series::alone(text.lines().skip(1).map(reading).collect(), false))
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

/// Rows from refit to refit: of Bitbrains some nine days of twenty tenants, of the laboratory a minute of some ten, else ten minutes of
/// slices.
const BITBRAINS_REFIT: usize = 50_000;
const REFIT: usize = 600;

pub(crate) fn measured() -> Vec<Measure> {
    let mut measures =
        measured_with(LearnerSettings::default(), BITBRAINS_REFIT, Part::HeldOut, &[LearnerSettings::MEAN_PERCENT])
            .remove(0);
    measures.extend(sums::measured());
    measures.extend(of_drawn_tenants());
    measures
}

/// What no shared data tell: the class of a session, for which open files have to be known, and what is decided by forecasts of noise.
fn of_drawn_tenants() -> [Measure; 2] {
    let told = drawn::classes_told(CLASSES_SEED, 3_000);
    let sessions: f64 = told.iter().map(|(_, count)| count).sum();
    let class = format!("class of {sessions} drawn sessions told in their first slice, mean over classes");
    let (all, skilled) = drawn::noise_with_skill(NOISE_SEED, 900, ACTED_ON);
    let noise =
        format!("white noise: of {all} forecasts those with a skill of {ACTED_ON}, by which something is decided");
    [
        Measure::at_least(&class, 100.0 * drawn::balanced(&told), "%", 80.0, "at least 80 %"),
        Measure::at_most(&noise, skilled as f64, "forecasts", 0.0, "none"),
    ]
}

/// Others than those of tests.
const CLASSES_SEED: u64 = 2_011;
const NOISE_SEED: u64 = 2_003;
/// Below this skill nothing is decided by a forecast.
const ACTED_ON: f64 = 0.1;

fn measured_with(settings: LearnerSettings, bitbrains_refit: usize, part: Part, weights: &[u8]) -> Vec<Vec<Measure>> {
    let mut measures: Vec<Vec<Measure>> = weights.iter().map(|_| Vec::new()).collect();
    if let Some(series) = bitbrains() {
        let outcomes = prequential(&series, settings, bitbrains_refit, part, weights);
        for (mut outcome, measures) in outcomes.into_iter().zip(&mut measures) {
            measures.extend(judge("Bitbrains", &outcome));
            let [bytes, kilobytes] = &mut outcome.ratios;
            for (unit, ratios) in [("bytes", bytes), ("kilobytes", kilobytes)] {
                let name = format!("Bitbrains, median ratio to persistence of the RMSE of logarithms of {unit}");
                measures.push(Measure::at_most(&name, median(ratios), "", 0.78, "at most 0.78"));
            }
        }
    }
    // Nothing is chosen on them.
    let laboratory = (part == Part::HeldOut).then(laboratory::series);
    for (what, series) in [("CloudPhysics", cloudphysics_series()), ("NAB", nab()), ("laboratory", laboratory)] {
        let Some(series) = series else { continue };
        let outcomes = prequential(&series, settings, REFIT, part, weights);
        for (outcome, measures) in outcomes.iter().zip(&mut measures) {
            measures.extend(judge(what, outcome));
        }
    }
    measures
}

/// What the settings of the trees were chosen from, on the tuning part alone.
pub(crate) fn tuned() {
    let by_leaves = |median, mean, mean_trees| Growth::ByLeaves { median, mean, mean_trees };
    let weights = [0, 25, 50, 75, 100];
    for (growth, refit) in [(by_leaves(16, 31, 100), BITBRAINS_REFIT)] {
        let settings = LearnerSettings { growth, ..LearnerSettings::default() };
        println!("{growth:?}, refit every {refit} rows of Bitbrains");
        for (weight, measures) in weights.iter().zip(measured_with(settings, refit, Part::Tuning, &weights)) {
            println!("    {weight} % of the way from the median to the mean");
            for measure in measures {
                println!("        {:.4} {}", measure.value, measure.what);
            }
        }
    }
}

/// What the model of the errors of sums was chosen from: other VMs than the figure's.
pub(crate) fn sums_tuned() {
    for measure in sums::measured_from(sums::TUNING) {
        println!("    {:.4} {}", measure.value, measure.what);
    }
}
