//! Forecasts of a day in bins of ten minutes: Holt-Winters against statsmodels, the day clusters on synthetic desktops and real VMs.

use crate::reference::data::{Measure, golden, json, shared, unpacked};
use minerva_forecast::evaluate::{Accuracy, autocorrelation};
use minerva_forecast::seasonal::{
    ArrivalStates, BINS_PER_DAY, BINS_PER_WEEK, DayClusters, Ensemble, HoltWinters, LongArma, Seasonal, SeasonalNaive,
    Smoothing,
};

/// Days that are forecast, one at a time, at the end of each series.
const ORIGINS: usize = 14;

/// Columns of a wide table of numbers; blank is NaN.
fn columns(text: &str, skip: usize) -> Vec<Vec<f64>> {
    let mut lines = text.lines();
    let mut columns = vec![Vec::new(); lines.next().map_or(0, |line| line.split(',').count()) - skip];
    for line in lines {
        for (column, cell) in columns.iter_mut().zip(line.split(',').skip(skip)) {
            column.push(cell.parse().unwrap_or(f64::NAN));
        }
    }
    columns
}

/// The columns of a table whose first one is the time, with rows of NaN where times are missing.
fn without_holes(text: &str) -> Vec<Vec<f64>> {
    let [times, values @ ..] = &columns(text, 0)[..] else { panic!("a table") };
    let bin = |row: usize| ((times[row] - times[0]) / 600.0).round() as usize;
    let whole = |column: &Vec<f64>| {
        let mut filled = vec![f64::NAN; bin(times.len() - 1) + 1];
        column.iter().enumerate().for_each(|(row, value)| filled[bin(row)] = *value);
        filled
    };
    values.iter().map(whole).collect()
}

/// Forecasts each of the last days from its midnight, with `model` fed with all before it. `first` is the bin of the week of the
/// first value.
fn days_ahead(model: &mut dyn Seasonal, series: &[f64], first: usize, accuracy: &mut Accuracy) {
    let start = series.len() - ORIGINS * BINS_PER_DAY;
    for (at, value) in series.iter().enumerate() {
        if at >= start && (at - start).is_multiple_of(BINS_PER_DAY) {
            let mut ahead = [0.0; BINS_PER_DAY];
            if model.forecast((first + at) % BINS_PER_WEEK, &mut ahead) {
                ahead.iter().zip(&series[at..]).for_each(|(forecast, came)| accuracy.add(*forecast, *came));
            }
        }
        model.observe((first + at) % BINS_PER_WEEK, *value);
    }
}

/// Largest relative difference from statsmodels with the same fixed parameters.
fn holt_winters_difference() -> Option<f64> {
    let reference = json(&shared("golden/holtwinters_damped_statsmodels_0.15.json")?);
    let text = std::fs::read_to_string(shared("golden/vdi_synthetic_10min.csv")?).unwrap();
    let series = columns(&text, 0);
    let mut worst = 0.0_f64;
    for case in reference.as_array().unwrap() {
        let number = |key: &str| case[key].as_f64().unwrap();
        let name = case["series"].as_str().unwrap();
        let values = &series[name.trim_start_matches("vdi").parse::<usize>().unwrap()];
        let smoothing =
            Smoothing { alpha: number("alpha"), beta: number("beta"), gamma: number("gamma_sm"), phi: number("phi") };
        let level = number("initial_level");
        let season = std::array::from_fn(|slot| values[slot] - level);
        let mut model = HoltWinters::from_start(smoothing, level, season);
        let n = case["n"].as_u64().unwrap() as usize;
        for (bin, value) in values[..n].iter().enumerate() {
            model.observe(bin, *value);
        }
        let mut ahead = [0.0; BINS_PER_DAY];
        model.forecast_unbounded(n, &mut ahead);
        worst = worst.max((model.squared_errors() / number("sse") - 1.0).abs());
        // The last step of the day is left out: there statsmodels 0.15.0 forgets that the last value has updated its own bin of the
        // day (its forecast is that of the bin a day before), which the formula does not.
        for (ours, theirs) in ahead.iter().zip(case["forecast144"].as_array().unwrap()).take(BINS_PER_DAY - 1) {
            let theirs = theirs.as_f64().unwrap();
            worst = worst.max((ours - theirs).abs() / theirs.abs().max(1.0));
        }
    }
    Some(worst)
}

/// Largest relative difference of rates and of transition probabilities from hmmlearn's after as many rounds from the same start.
fn states_difference() -> f64 {
    let reference: serde_json::Value = serde_json::from_str(&golden("states.json")).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let row = |value: &serde_json::Value| -> [f64; 3] { numbers(value).try_into().unwrap() };
    let matrix = |value: &serde_json::Value| -> [[f64; 3]; 3] { std::array::from_fn(|index| row(&value[index])) };
    let rounds = reference["rounds"].as_u64().unwrap() as usize;
    let (rates, moves) = (row(&reference["start_rates"]), matrix(&reference["start_transitions"]));
    let model = ArrivalStates::fit_from(&numbers(&reference["series"]), 1.0, rates, moves, rounds);
    let ours = model.rates().into_iter().chain(model.transitions().into_iter().flatten());
    let theirs = row(&reference["rates"]).into_iter().chain(matrix(&reference["transitions"]).into_iter().flatten());
    ours.zip(theirs).map(|(ours, theirs)| (ours - theirs).abs() / theirs.abs().max(1e-3)).fold(0.0, f64::max)
}

/// Tuesdays to Fridays one after the other, as Kachmar and Kaeli 2020 evaluate.
fn within_a_cluster(series: &[f64]) -> Vec<f64> {
    let days = series.chunks_exact(BINS_PER_DAY).enumerate().filter(|(day, _)| (1..5).contains(&(day % 7)));
    days.flat_map(|(_, day)| day.to_vec()).collect()
}

/// The twenty VMs of the real set with the strongest daily cycle in the part before the forecast days, from Monday 2013-07-01.
pub(crate) fn real_machines() -> Option<Vec<Vec<f64>>> {
    let read = without_holes(&unpacked(&shared("metrics/bitbrains_rnd_10min_read_kbs.csv.gz")?));
    let write = without_holes(&unpacked(&shared("metrics/bitbrains_rnd_10min_write_kbs.csv.gz")?));
    let mut machines: Vec<(f64, Vec<f64>)> = read
        .iter()
        .zip(&write)
        .map(|(read, write)| {
            let total: Vec<f64> = read.iter().zip(write).map(|(r, w)| r + w).collect();
            let past = &total[..total.len() - ORIGINS * BINS_PER_DAY];
            let log: Vec<f64> = past.iter().filter(|value| value.is_finite()).map(|value| value.ln_1p()).collect();
            (autocorrelation(&log, BINS_PER_DAY)[BINS_PER_DAY], total)
        })
        .collect();
    machines.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(machines.into_iter().take(20).map(|(_, total)| total).collect())
}

pub(crate) fn measured() -> Vec<Measure> {
    let (Some(difference), Some(path)) = (holt_winters_difference(), shared("golden/vdi_synthetic_10min.csv")) else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(path).unwrap();
    let [mut all, mut clusters, mut smoothed, mut long, mut together] = [Accuracy::default(); 5];
    for series in columns(&text, 0) {
        days_ahead(&mut DayClusters::new(2, 0.3, 0.15), &series, 0, &mut all);
        days_ahead(&mut Refitted(Ensemble::default()), &series, 0, &mut together);
        let days = within_a_cluster(&series);
        let past = &days[..days.len() - ORIGINS * BINS_PER_DAY];
        // One cluster: the days follow each other as if they were all of one kind.
        days_ahead(&mut DayClusters::new(1, 0.15, 0.15), &days, 0, &mut clusters);
        days_ahead(&mut HoltWinters::new(HoltWinters::fit(past).smoothing()), &days, 0, &mut smoothed);
        days_ahead(&mut LongArma::fit(past).expect("enough days"), &days, 0, &mut long);
    }
    let mut measures = vec![
        Measure::at_most(
            "Holt-Winters, largest relative difference from statsmodels",
            difference,
            "",
            1e-6,
            "at most 1e-6",
        ),
        Measure::at_most(
            "arrival states, largest relative difference from hmmlearn",
            states_difference(),
            "",
            1e-6,
            "at most 1e-6",
        ),
        Measure::at_most("day clusters on synthetic desktops, SMAPE", all.smape_percent(), "%", 16.0, "at most 16"),
        Measure::at_most("ensemble on synthetic desktops, SMAPE", together.smape_percent(), "%", 16.0, "at most 16"),
        Measure::at_most("moving averages within a cluster, SMAPE", clusters.smape_percent(), "%", 15.0, "at most 15"),
        Measure::at_least(
            "Holt-Winters within a cluster, SMAPE",
            smoothed.smape_percent(),
            "%",
            clusters.smape_percent(),
            "above the moving averages'",
        ),
        Measure::at_least(
            "ARIMA(144, 0, 2) within a cluster, SMAPE",
            long.smape_percent(),
            "%",
            clusters.smape_percent(),
            "above the moving averages'",
        ),
    ];
    if let Some(machines) = real_machines() {
        let [mut clusters, mut together, mut naive] = [Accuracy::default(); 3];
        for series in machines {
            days_ahead(&mut SeasonalNaive::day(), &series, 0, &mut naive);
            days_ahead(&mut DayClusters::new(2, 0.3, 0.15), &series, 0, &mut clusters);
            days_ahead(&mut Refitted(Ensemble::default()), &series, 0, &mut together);
        }
        measures.push(Measure::at_most(
            "day clusters on real VMs, SMAPE",
            clusters.smape_percent(),
            "%",
            44.0,
            "at most 44",
        ));
        measures.push(Measure::at_most(
            "ensemble on real VMs, SMAPE",
            together.smape_percent(),
            "%",
            44.0,
            "at most 44",
        ));
        let ratio = together.smape_percent() / naive.smape_percent();
        measures.push(Measure::at_most(
            "ensemble on real VMs, SMAPE to seasonal naive's",
            ratio,
            "",
            1.05,
            "at most 1.05",
        ));
    }
    measures
}

/// An ensemble that is refitted whenever it is due.
struct Refitted(Ensemble);

impl Seasonal for Refitted {
    fn observe(&mut self, bin: usize, value: f64) {
        self.0.observe(bin, value);
        while self.0.refit() {}
    }

    fn forecast(&self, bin: usize, ahead: &mut [f64]) -> bool {
        self.0.forecast(bin, ahead)
    }
}
