//! ARIMA against statsforecast 2.1.1 on 36 series of which 300 values are fitted and 15 held out.

use crate::reference::data::{Measure, cloudphysics, golden, json, median, shared};
use minerva_forecast::arima::{self, Budget, Workspace};

const FITTED: usize = 300;
const AHEAD: usize = 15;
/// Standard deviation of the noise of the series with cycles.
const CYCLE_NOISE: f64 = 6.0;

/// Exact AICc by order: p-major, then q, then without and with constant.
fn exact_criteria() -> Vec<Vec<Option<f64>>> {
    let text = golden("arima_aicc.csv");
    text.lines().map(|line| line.split(',').skip(2).map(|cell| cell.parse().ok()).collect()).collect()
}

fn root_mean_square(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = errors.fold((0.0, 0), |(sum, count), error| (sum + error * error, count + 1));
    (sum / f64::from(count)).sqrt()
}

/// Every bar on ARIMA; nothing if the golden data are not there.
pub(crate) fn measured() -> Vec<Measure> {
    let (Some(series), Some(reference)) =
        (shared("golden/arima_series.csv"), shared("golden/autoarima_statsforecast_2.1.1.json"))
    else {
        return Vec::new();
    };
    let text = std::fs::read_to_string(series).unwrap();
    let reference = json(&reference);
    let criteria = exact_criteria();
    let mut workspace = Workspace::default();
    let (mut kpss_error, mut same_d, mut close_orders, mut worst_regret) = (0.0_f64, 0.0, 0.0, 0.0_f64);
    let (mut ratios, mut scaled, mut cycles_by_burg, mut worst_cycle) = (Vec::new(), Vec::new(), 0.0, 0.0_f64);
    let (mut models_most, mut steps_most, mut covered, mut count) = (0, 0, 0.0, 0.0);
    for ((line, reference), criteria) in text.lines().zip(reference.as_array().unwrap()).zip(&criteria) {
        let mut cells = line.split(',');
        let name = cells.next().unwrap();
        let values: Vec<f64> = cells.map(|cell| cell.parse().unwrap()).collect();
        let (past, future) = values.split_at(FITTED);
        let statistic = reference["kpss_level_lag3"].as_f64().unwrap();
        kpss_error = kpss_error.max((arima::kpss_level_statistic(past, 3) - statistic).abs());
        let mut budget = Budget::default();
        let short = arima::fit_stepwise(past, &mut workspace, &mut budget).expect("a model");
        models_most = models_most.max(Budget::default().models - budget.models);
        steps_most = steps_most.max(Budget::default().steps - budget.steps);
        let exact = &reference["exact"];
        same_d += f64::from(u8::from(exact["d"].as_u64() == Some(short.d as u64)));
        // An order that the reference could not fit is as bad as any.
        let ours = criteria[(short.p * 6 + short.q) * 2 + usize::from(short.constant)].unwrap_or(f64::INFINITY);
        let regret = ours - exact["aicc"].as_f64().unwrap();
        close_orders += f64::from(u8::from(regret <= 2.0));
        worst_regret = worst_regret.max(regret);
        let error = |model: &arima::Arima| {
            let path = model.forecast(AHEAD);
            root_mean_square(path.mean.iter().zip(future).map(|(forecast, came)| forecast - came))
        };
        ratios.push(error(&short) / exact["rmse15"].as_f64().unwrap());
        let best = arima::fit(past, &mut workspace, &mut Budget::default()).expect("a model");
        let naive = root_mean_square(past.windows(2).map(|pair| pair[1] - pair[0]));
        scaled.push(error(&best) / naive);
        let path = best.forecast(AHEAD);
        for (step, came) in future.iter().enumerate() {
            covered += f64::from(u8::from((came - path.mean[step]).abs() <= 1.281_55 * path.deviation[step]));
            count += 1.0;
        }
        if name.starts_with("cycle") {
            cycles_by_burg += f64::from(u8::from(best.p > 5));
            worst_cycle = worst_cycle.max(error(&best) / CYCLE_NOISE);
        }
        if regret > 2.0 || std::env::var_os("MINERVA_FORECAST_DETAIL").is_some() {
            println!(
                "{name}: ({}, {}, {}) {} regret {regret:.2}, {:.2}",
                short.p,
                short.d,
                short.q,
                short.constant,
                error(&short)
            );
        }
    }
    // Twelve windows of a real VM's writes, evenly spaced, beside the synthetic series.
    for window in cloudphysics()
        .into_iter()
        .flat_map(|[_, writes]| (0..12).map(move |k| writes[k * 600..][..FITTED + AHEAD].to_vec()))
    {
        let (past, future) = window.split_at(FITTED);
        let Some(best) = arima::fit(past, &mut workspace, &mut Budget::default()) else { continue };
        let path = best.forecast(AHEAD);
        let error = root_mean_square(path.mean.iter().zip(future).map(|(forecast, came)| forecast - came));
        scaled.push(error / root_mean_square(past.windows(2).map(|pair| pair[1] - pair[0])));
    }
    let coverage = 100.0 * covered / count;
    let mut within = Measure::at_least("cover of ARIMA's 80 % intervals", coverage, "%", 75.0, "75 to 85 %");
    within.met &= coverage <= 85.0;
    vec![
        Measure::at_most("KPSS statistic, largest difference", kpss_error, "", 1e-6, "at most 1e-6"),
        Measure::at_least("d equal", same_d, "of 36", 36.0, "36"),
        Measure::at_least("exact AICc of the chosen order within 2", close_orders, "of 36", 33.0, "at least 33"),
        Measure::at_most("exact AICc of the chosen order, worst regret", worst_regret, "", 6.0, "at most 6"),
        Measure::at_most("15-s RMSE, median ratio to statsforecast", median(&mut ratios), "", 1.02, "at most 1.02"),
        Measure::at_least("cycles told by the long autoregression", cycles_by_burg, "of 4", 4.0, "4"),
        Measure::at_most("cycles, worst RMSE to the noise", worst_cycle, "", 1.7, "at most 1.7"),
        Measure::at_most("15-s RMSE to one-step naive, median of 48", median(&mut scaled), "", 1.25, "at most 1.25"),
        Measure::at_most("models tried for a series, most", f64::from(models_most), "", 94.0, "at most 94"),
        Measure::at_most(
            "steps of the search for a model, most",
            f64::from(steps_most),
            "",
            94.0 * 40.0,
            "at most 40 each",
        ),
        within,
    ]
}
