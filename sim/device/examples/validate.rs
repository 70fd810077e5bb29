//! Compares the disk model with measured drives: `validate DIR [--json]`.
//!
//! `DIR` holds `NAME.trace`, `NAME.diskspecs` and what that names, and `NAME.parv`. Prints a table, or one JSON object a
//! line. Exits with 1 when a drive misses the goal: RMS at most 1.5 times DiskSim's, which has to be known, and a demerit of
//! at most 10 %.

use anyhow::{Context, Result, bail};
use minerva_sim_device::disksim::{self, Sources};
use minerva_sim_device::validate::{self, Agreement};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let mut json = false;
    let mut folder = None;
    for argument in std::env::args_os().skip(1) {
        if argument == "--json" {
            json = true;
        } else if folder.replace(PathBuf::from(&argument)).is_some() {
            bail!("usage: validate DIR [--json]");
        }
    }
    let folder = folder.context("usage: validate DIR [--json]")?;
    let mut out = std::io::stdout().lock();
    if !json {
        writeln!(out, "drive                requests  measured  modelled   rms ms  DiskSim  ratio  demerit  goal")?;
    }
    let mut missed = 0;
    for name in drives(&folder)? {
        let agreement = compare(&folder, &name)?;
        let (known, ratio) = (validate::disksim_rms_ms(&name), agreement.ratio(&name));
        let met = agreement.is_met(&name);
        missed += usize::from(!met);
        if json {
            let line = serde_json::json!({
                "drive": name, "requests": agreement.requests, "mean_measured_ms": agreement.mean_measured_ms,
                "mean_modelled_ms": agreement.mean_modelled_ms, "rms_ms": agreement.rms_ms, "disksim_rms_ms": known,
                "ratio": ratio, "demerit": agreement.demerit(), "met": met,
            });
            writeln!(out, "{line}")?;
            continue;
        }
        let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
        writeln!(
            out,
            "{name:20} {:8} {:9.3} {:9.3} {:8.3} {:>8} {:>6} {:7.1}%  {}",
            agreement.requests,
            agreement.mean_measured_ms,
            agreement.mean_modelled_ms,
            agreement.rms_ms,
            number(known, 3),
            number(ratio, 2),
            agreement.demerit() * 100.0,
            if met { "met" } else { "missed" },
        )?;
    }
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Names of the drives with a trace, sorted.
fn drives(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("failed to list {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "trace")
            && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(stem.to_owned());
        }
    }
    names.sort();
    if names.is_empty() {
        bail!("there is no NAME.trace in {}", folder.display());
    }
    Ok(names)
}

fn compare(folder: &Path, name: &str) -> Result<Agreement> {
    let read = |file: &str| {
        let path = folder.join(file);
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    };
    let diskspecs = read(&format!("{name}.diskspecs"))?;
    let model = match disksim::model_file(&diskspecs) {
        Some(file) => read(&file)?,
        None => String::new(),
    };
    let seek = match disksim::seek_file(&model) {
        Some(file) => Some(read(&file)?),
        None => None,
    };
    let parv = read(&format!("{name}.parv")).ok();
    let sources = Sources { diskspecs: &diskspecs, model: &model, seek: seek.as_deref(), parv: parv.as_deref() };
    let profile = disksim::import(name, &sources).with_context(|| format!("failed to import {name}"))?;
    let trace = validate::parse_trace(&read(&format!("{name}.trace"))?).with_context(|| format!("drive {name}"))?;
    Ok(Agreement::measure(profile.build(None, 1).as_mut(), &trace))
}
