//! The figure `disk-model`: measured drives replayed on the disk model.

use crate::output::Line;
use anyhow::{Context as _, bail};
use minerva_sim_device::disksim::{self, Sources};
use minerva_sim_device::validate::{self, Agreement};
use std::fs;
use std::path::Path;

/// A line for each drive in `folder`, which holds `NAME.trace`, `NAME.diskspecs` and what that names, and `NAME.parv`.
pub(crate) fn figure(folder: &Path) -> anyhow::Result<Vec<Line>> {
    if !folder.is_dir() {
        bail!("there are no measured drives in {}; name their folder with --disks", folder.display());
    }
    names(folder)?.iter().map(|name| line(folder, name)).collect()
}

fn line(folder: &Path, name: &str) -> anyhow::Result<Line> {
    let agreement = compare(folder, name)?;
    let ratio = agreement.ratio(name);
    let disksim =
        ratio.map_or_else(|| "DiskSim's is not known".to_owned(), |ratio| format!("{ratio:.2} times DiskSim's"));
    Ok(Line {
        id: "disk-model",
        value: 100.0 * agreement.demerit(),
        unit: "% demerit",
        goal: "at most 10 %, RMS at most 1.5 times DiskSim's".to_owned(),
        met: agreement.is_met(name),
        detail: format!(
            "{name}: RMS {:.3} ms, {disksim}; mean {:.3} ms, measured {:.3} ms, {} requests",
            agreement.rms_ms, agreement.mean_modelled_ms, agreement.mean_measured_ms, agreement.requests
        ),
    })
}

/// Names of the drives with a trace, sorted.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
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

fn compare(folder: &Path, name: &str) -> anyhow::Result<Agreement> {
    let read = |file: &str| {
        let path = folder.join(file);
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
    };
    let diskspecs = read(&format!("{name}.diskspecs"))?;
    let model = match disksim::model_file(&diskspecs) {
        Some(file) => read(&file)?,
        None => String::new(),
    };
    let seek = disksim::seek_file(&model).map(|file| read(&file)).transpose()?;
    let parv = read(&format!("{name}.parv")).ok();
    let sources = Sources { diskspecs: &diskspecs, model: &model, seek: seek.as_deref(), parv: parv.as_deref() };
    let profile = disksim::import(name, &sources).with_context(|| format!("failed to import {name}"))?;
    let trace = validate::parse_trace(&read(&format!("{name}.trace"))?).with_context(|| format!("drive {name}"))?;
    Ok(Agreement::measure(profile.build(None, 1).as_mut(), &trace))
}
