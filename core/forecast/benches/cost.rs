//! The figure `forecast-cost`: time and memory of all forecasts of a host, and of single fits beside those of Python's libraries.
//! `cargo bench -p minerva-forecast --bench cost` prints it as JSON lines.
//!
//! The peers need a Python with statsforecast and LightGBM: `MINERVA_FORECAST_PYTHON`, else `python3`. `cargo xtask figures
//! forecast-cost` makes one that has them. Without them their lines say so.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and is printed"
)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a figure stops at golden data that are damaged")]

#[path = "../tests/reference/mod.rs"]
#[expect(dead_code, reason = "other figures print the rest")]
mod reference;

#[path = "cost/loads.rs"]
mod loads;

use minerva_forecast::arima::{self, Budget, Workspace};
use minerva_forecast::boosting::{BLOCK, Block, Boosted, FEATURES_MAX, Loss, Training};
use minerva_forecast::tenant::{Reading, Usage};
use minerva_forecast::{Family, Forecaster, ForecasterSettings, Key, SliceTime};
use minerva_model::{DeviceId, TenantId};
use reference::boosting::{drawn, fit, fit_by_leaves, root_mean_square};
use reference::data::{Measure, median, print, shared};
use std::process::Command;
use std::time::Instant;

const TENANTS: u64 = 1_200;
const BUSY: u64 = 200;
const SLICES_BEFORE: u64 = 400;
const SLICES: u64 = 400;

fn main() {
    let (days, of_days) = loads::measured();
    let mut measures = host();
    measures.extend(of_days);
    loads::tell_recall(&days);
    measures.extend(blocks());
    measures.extend(fits());
    print("forecast-cost", measures.into_iter());
}

/// Tenants that burst, each with its period; which of them are busy moves slowly over all.
fn slice(at: u64, seed: &mut u64) -> Vec<(Key, Family, Reading)> {
    let mut draw = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 11) as f64 / 2.0_f64.powi(53)
    };
    let first = at / 4 % TENANTS;
    (0..BUSY)
        .map(|number| {
            let tenant = (first + number * TENANTS / BUSY) % TENANTS;
            let is_on = (at + tenant) % (10 + tenant % 30) < 6;
            let bytes = if is_on { 1e7 * draw() } else { 1e3 * draw() };
            let usage = Usage {
                cpus: draw(),
                memory_bytes: 1e9,
                network_bytes_per_second: 1e5 * draw(),
                open_files: 20.0,
                open_sockets: 3.0,
                open_file_bytes: 1e8 * draw(),
            };
            let reading = Reading {
                elapsed_seconds: 1.0,
                read_bytes: bytes,
                write_bytes: bytes / 3.0,
                usage: Some(usage),
                wall_seconds: Some(at as f64),
                declared_bytes: None,
                account: tenant % 50,
            };
            ((TenantId(tenant), DeviceId { major: 8, minor: 0 }), tenant % 50, reading)
        })
        .collect()
}

fn resident_mib() -> Option<f64> {
    let process = std::process::id().to_string();
    let output = Command::new("ps").args(["-o", "rss=", "-p", &process]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok().map(|kib| kib / 1024.0)
}

fn host() -> Vec<Measure> {
    let before = resident_mib();
    let (mut forecaster, mut seed) = (Forecaster::new(ForecasterSettings::default()), 1);
    let (mut took, mut predictions) = (Vec::new(), Vec::new());
    for at in 0..SLICES_BEFORE + SLICES {
        let slice = slice(at, &mut seed);
        let started = Instant::now();
        forecaster.observe(SliceTime::default(), &slice);
        let outlook = forecaster.to_model(minerva_model::Nanos(at), minerva_model::Nanos::SECOND);
        if at >= SLICES_BEFORE {
            took.push(started.elapsed().as_secs_f64() * 1000.0);
            predictions.push(predict(&mut forecaster));
        }
        std::hint::black_box(outlook);
    }
    let mean = took.iter().sum::<f64>() / took.len() as f64;
    let worst = took.iter().copied().fold(0.0, f64::max);
    let known = forecaster.tenants();
    let what = |text: &str| format!("{text}, {known} tenants of which {BUSY} are busy");
    let mut measures = vec![
        Measure::at_most(&what("part of one core at slices of 1 s"), mean / 10.0, "%", 10.0, "at most 10 %"),
        Measure::at_most(&what("slowest slice"), worst, "ms", 1000.0, "no slice late: below 1 s"),
        Measure::at_most(&what("the next slice of all, median"), median(&mut predictions), "ms", 1.0, "at most 1 ms"),
    ];
    match (before, resident_mib()) {
        (Some(before), Some(after)) => {
            measures.push(Measure::at_most(
                &what("resident memory more"),
                after - before,
                "MiB",
                150.0,
                "at most 150 MiB",
            ));
        }
        _ => println!("not measured: resident memory needs ps"),
    }
    measures
}

/// Asks for the next slice of every tenant once more; how many milliseconds it took.
fn predict(forecaster: &mut Forecaster) -> f64 {
    let started = Instant::now();
    forecaster.foresee_next_slices();
    for tenant in 0..TENANTS {
        std::hint::black_box(forecaster.next_slice((TenantId(tenant), DeviceId { major: 8, minor: 0 })));
    }
    started.elapsed().as_secs_f64() * 1000.0
}

/// What trees say of a row for each tenant, asked one by one and in blocks: the best of twenty each, in turns.
fn blocks() -> Vec<Measure> {
    const ROWS: usize = 20_000;
    let mut seed = 7_u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 16_777_216.0
    };
    let rows: Vec<f32> = (0..ROWS * FEATURES_MAX).map(|_| draw()).collect();
    let target = |row: &[f32]| row[0] * row[1] + (6.0 * row[2]).sin() + row[3] * row[4] + row[5..].iter().sum::<f32>();
    let targets: Vec<f32> = rows.chunks_exact(FEATURES_MAX).map(target).collect();
    let asked: Vec<&[f32]> = rows.chunks_exact(FEATURES_MAX).take(TENANTS as usize).collect();
    let mut measures = Vec::new();
    for leaves in [16, 31] {
        let training = Training::new(rows.clone(), FEATURES_MAX, &targets, 100, Loss::Squared).expect("rows");
        let model = training.by_leaves(leaves).finish();
        let (mut one_by_one, mut in_blocks) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..20 {
            let started = Instant::now();
            for row in &asked {
                std::hint::black_box(model.predict(row));
            }
            one_by_one = one_by_one.min(started.elapsed().as_secs_f64() * 1000.0);
            let started = Instant::now();
            for rows in asked.chunks(BLOCK) {
                let mut block = Block::default();
                for row in rows {
                    block.push(row);
                }
                std::hint::black_box(model.predict_block(&block));
            }
            in_blocks = in_blocks.min(started.elapsed().as_secs_f64() * 1000.0);
        }
        let what = format!(
            "1,200 rows, 100 trees of {leaves} leaves: in blocks {in_blocks:.3} ms, to one by one ({one_by_one:.3} ms)"
        );
        measures.push(Measure::at_most(&what, in_blocks / one_by_one, "", 1.0, "below 1"));
    }
    measures
}

fn fits() -> Vec<Measure> {
    let Some(path) = shared("golden/arima_series.csv") else { return Vec::new() };
    let text = std::fs::read_to_string(&path).unwrap();
    let mut workspace = Workspace::default();
    let mut took: Vec<f64> = text
        .lines()
        .map(|line| {
            let series: Vec<f64> = line.split(',').skip(1).map(|cell| cell.parse().unwrap()).take(300).collect();
            let started = Instant::now();
            std::hint::black_box(arima::fit(&series, &mut workspace, &mut Budget::default()));
            started.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    let mean = took.iter().sum::<f64>() / took.len() as f64;
    let middle = median(&mut took);
    let (rows, targets) = drawn();
    let best = |fit: fn(&[f32], &[f32]) -> (Boosted, u64)| {
        let took = (0..5).map(|_| {
            let started = Instant::now();
            std::hint::black_box(fit(&rows, &targets));
            started.elapsed().as_secs_f64() * 1000.0
        });
        took.fold(f64::INFINITY, f64::min)
    };
    let (boosting, by_leaves) = (best(fit), best(fit_by_leaves));
    let errors = [fit, fit_by_leaves].map(|fit| root_mean_square(&fit(&rows, &targets).0, &rows, &targets));
    let python = std::env::var("MINERVA_FORECAST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden-generate/cost.py");
    let peers = Command::new(&python).args(["-W", "ignore", script]).arg(&path).output();
    let answer = peers.ok().filter(|output| output.status.success());
    let Some(peers) = answer.and_then(|output| serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()) else {
        let why = "needs a Python with statsforecast and LightGBM in MINERVA_FORECAST_PYTHON";
        println!(
            "not measured: {why}; ours: ARIMA mean {mean:.2} ms, trees {boosting:.0} ms, by leaves {by_leaves:.0} ms"
        );
        return Vec::new();
    };
    let number = |key: &str| peers[key].as_f64().unwrap_or(f64::NAN);
    let error = |index: usize| errors[index] / number("boosting_rmse");
    let (times_mean, times_median) = (number("arima_mean_ms") / mean, number("arima_median_ms") / middle);
    let what = format!("ARIMA and Burg on 300 values: mean {mean:.2} ms, times faster than statsforecast");
    let what_median = format!("the same: median {middle:.2} ms");
    let what_boosting = format!("200 trees on 10,000 rows: {boosting:.0} ms, to LightGBM's 100 of 31 leaves");
    let what_leaves = format!("200 trees of 31 leaves: {by_leaves:.0} ms, to LightGBM's 100");
    vec![
        Measure::at_least(&what, times_mean, "", 50.0, "at least 50"),
        Measure::at_least(&what_median, times_median, "", 50.0, "at least 50"),
        Measure::at_most(&what_boosting, boosting / number("boosting_fit_ms"), "", 1.0, "at most 1"),
        Measure::at_most(&what_leaves, by_leaves / number("boosting_fit_ms"), "", 1.0, "at most 1"),
        Measure::at_most("their error, RMSE to LightGBM's of the same run", error(0), "", 1.03, "at most 1.03"),
        Measure::at_most("the same by leaves", error(1), "", 1.03, "at most 1.03"),
    ]
}
