//! The series of a recording: what each tenant read and wrote on each disk, slice by slice, as the engine saw it.

use super::series::{Problems, Row, Series, series};
use crate::progress::Progress;
use anyhow::Context as _;
use minerva_engine::Engine;
use minerva_forecast::tenant::Usage;
use minerva_model::{DeviceId, Event, TenantId};
use minerva_store::{Entry, Recording, RecordingErrorKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes a second read and written in one slice.
type Rates = [f64; 2];

/// Reads a recording to its end, or to where it is cut.
pub(super) fn read(
    path: &Path,
    step: Option<f64>,
    problems: &mut Problems,
    progress: &mut Progress,
) -> anyhow::Result<Vec<Series>> {
    let mut recording = Recording::open(path).with_context(|| no_recording(path))?;
    let unread = || format!("failed to read {}", path.display());
    let mut engine = crate::replay::engine(&mut recording).with_context(unread)?;
    // What the engine knew when the recording began wants to be said first.
    while engine.poll_effect().is_some() {}
    // A recording that begins with a snapshot names nobody again who was there before.
    let mut tenants: BTreeMap<_, _> = engine.tenant_names().map(|(id, name)| (id, name.to_owned())).collect();
    let mut devices: BTreeMap<_, _> = engine.device_names().map(|(id, name)| (id, name.to_owned())).collect();
    let mut slices: Vec<(u64, f64)> = Vec::new();
    let mut rates: BTreeMap<(TenantId, DeviceId), BTreeMap<usize, Rates>> = BTreeMap::new();
    let (mut usage, mut wall) = (BTreeMap::new(), None);
    // The header is the first line.
    for (line, entry) in (2..).zip(recording) {
        progress.tell(|| format!("{line} lines of the recording are read"));
        let (at, event) = match entry {
            Ok(Entry::Event { at, what }) => (at, what),
            Ok(Entry::Effect { .. }) => continue,
            Err(error) if error.kind == RecordingErrorKind::Truncated => {
                problems.note(line, "the recording ends here without its end");
                break;
            }
            Err(error) => return Err(error).with_context(unread),
        };
        match &event {
            Event::TenantSeen { tenant, .. } => drop(tenants.insert(tenant.id, tenant.name.clone())),
            Event::DeviceSeen(device) => drop(devices.insert(device.id, device.name.clone())),
            Event::Sampled(sample) => wall = wall.or(sample.wall_seconds.map(|seconds| (slices.len(), seconds as f64))),
            _ => {}
        }
        let is_slice = matches!(event, Event::Sampled(_));
        engine.handle(at, event);
        while engine.poll_effect().is_some() {}
        if is_slice {
            for (pair, both) in rates_of(&engine) {
                rates.entry(pair).or_default().insert(slices.len(), both);
            }
            let used = engine.signals().usage.iter();
            usage.extend(used.map(|row| ((row.tenant, slices.len()), Usage::from(row))));
            slices.push((line, at.as_secs_f64()));
        }
    }
    let read = Read { tenants, devices, slices, rates, usage, wall };
    read.series(step, problems).with_context(|| format!("failed to use {}", path.display()))
}

/// What each tenant read and wrote on each disk in the last slice.
fn rates_of(engine: &Engine) -> impl Iterator<Item = ((TenantId, DeviceId), Rates)> {
    engine.signals().io.iter().filter(|row| row.elapsed.0 > 0).map(|row| {
        let of = |bytes: u64| bytes as f64 / row.elapsed.as_secs_f64();
        ((row.tenant, row.device), [of(row.transferred.read_bytes), of(row.transferred.write_bytes)])
    })
}

fn no_recording(path: &Path) -> String {
    format!(
        "failed to open {}: it is no recording, and its name does not end in .csv, .tsv or .parquet",
        path.display()
    )
}

/// What was read.
struct Read {
    tenants: BTreeMap<TenantId, String>,
    devices: BTreeMap<DeviceId, String>,
    /// The line and the second of each slice.
    slices: Vec<(u64, f64)>,
    /// By pair, then by slice.
    rates: BTreeMap<(TenantId, DeviceId), BTreeMap<usize, Rates>>,
    /// By tenant and slice: of those whose processes were looked at.
    usage: BTreeMap<(TenantId, usize), Usage>,
    /// A slice whose time on the host's wall clock is known: in seconds since 1970 in the host's time zone.
    wall: Option<(usize, f64)>,
}

impl Read {
    fn series(self, step: Option<f64>, problems: &mut Problems) -> anyhow::Result<Vec<Series>> {
        let Self { tenants, devices, slices, rates, usage, wall } = self;
        let mut found = Vec::new();
        for ((id, device), by_slice) in &rates {
            let tenant = tenants.get(id).cloned().unwrap_or_else(|| id.to_string());
            let device = devices.get(device).cloned().unwrap_or_else(|| device.to_string());
            for (direction, what) in ["reads", "writes"].into_iter().enumerate() {
                // Of a tenant that is not named in a slice nothing happened.
                let rows: Vec<Row> = slices
                    .iter()
                    .enumerate()
                    .map(|(slice, (line, at))| Row {
                        line: *line,
                        seconds: Some(*at),
                        value: by_slice.get(&slice).map_or(0.0, |rates| rates[direction]),
                    })
                    .collect();
                if rows.iter().any(|row| row.value > 0.0) {
                    let series = series(format!("{tenant} {what} on {device}"), &rows, step, problems)?;
                    // A recording's clock begins with the boot: the time of day is what its samples say.
                    let first = slices[0].1;
                    let start_seconds = wall.map(|(slice, seconds)| seconds - (slices[slice].1 - first));
                    let mut used = vec![None; series.values.len()];
                    for ((_, slice), usage) in usage.range((*id, 0)..=(*id, usize::MAX)) {
                        let step = ((slices[*slice].1 - first) / series.step_seconds).round() as usize;
                        used.get_mut(step).into_iter().for_each(|step| *step = Some(*usage));
                    }
                    found.push(Series { start_seconds, is_local: true, usage: used, ..series });
                }
            }
        }
        Ok(found)
    }
}
