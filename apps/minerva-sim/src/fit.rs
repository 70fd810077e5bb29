//! `minerva-sim fit`: an SSD's parameters from a fio run.

use crate::cli::FitArguments;
use crate::scene::read_profile;
use crate::text::read_text;
use anyhow::Context as _;
use minerva_sim_device::Kind;
use minerva_sim_device::fit::{FitPoint, SsdFit, ssd_fit};

/// More than fio prints of thousands of jobs.
const FIO_BYTES_MAX: usize = 64 << 20;

/// Fits and prints.
pub(crate) fn run(arguments: &FitArguments) -> anyhow::Result<()> {
    let path = &arguments.fio_json;
    let text = read_text(path, FIO_BYTES_MAX)?;
    let fit = ssd_fit(&read_profile(&arguments.base)?, &text).with_context(|| format!("fit to {}", path.display()))?;
    if arguments.json {
        return print_json(&fit);
    }
    eprintln!("{:<24} {:>10} {:>6} {:>11} {:>11} {:>7}", "job", "bytes", "depth", "fio/s", "model/s", "error");
    for point in &fit.points {
        eprintln!(
            "{:<24} {:>10} {:>6} {:>11.0} {:>11.0} {:>+6.1}%",
            point.job,
            point.block_bytes,
            point.depth,
            point.measured_iops,
            point.modelled_iops,
            error(point) * 100.0
        );
    }
    let worst = fit.points.iter().map(|point| error(point).abs()).fold(0.0, f64::max);
    eprintln!("{} jobs, the worst {:.1} % off", fit.points.len(), worst * 100.0);
    print!("{}", fit.profile.to_text());
    Ok(())
}

/// The model's requests a second above fio's, as a part of fio's.
fn error(point: &FitPoint) -> f64 {
    point.modelled_iops / point.measured_iops - 1.0
}

fn print_json(fit: &SsdFit) -> anyhow::Result<()> {
    for point in &fit.points {
        let kind = if point.kind == Kind::Write { "write" } else { "read" };
        let line = serde_json::json!({
            "job": point.job, "kind": kind, "random": point.random, "block_bytes": point.block_bytes,
            "depth": point.depth, "measured_iops": point.measured_iops, "modelled_iops": point.modelled_iops,
            "error": error(point),
        });
        println!("{line}");
    }
    println!("{}", serde_json::json!({ "profile": serde_json::to_value(&fit.profile)? }));
    Ok(())
}
