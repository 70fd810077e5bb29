//! A trace as tenants: each volume with a part of the disk of its own, or all of it as one process.

use crate::cli::Scene;
use crate::trace;
use crate::trace_cli::TraceTenants;
use anyhow::{Context as _, bail, ensure};
use minerva_blocksched::FlowParameters;
use minerva_model::Nanos;
use minerva_sim_workload::Source;
use minerva_sim_workload::trace::{
    Addresses, Lane, Pace, ReplayOptions, Replayed, SummaryBuilder, TraceError, TraceSource,
};
use minerva_sim_world::{ProcessSetup, TenantSetup};
use std::sync::{Arc, Mutex, PoisonError};

/// More volumes than this are one tenant unless asked for, and more than the next are refused: each costs memory.
const VOLUMES_UNASKED_MAX: usize = 64;
const VOLUMES_MAX: usize = 1024;
/// Parts of the disk begin and end here.
const MEBIBYTE: u64 = 1 << 20;

/// One tenant of a trace.
#[derive(Clone, Debug)]
struct TraceTenant {
    name: String,
    lane: Lane,
    weight: u32,
    tag: Option<u8>,
}

/// Who makes a trace's requests.
#[derive(Clone, Debug)]
pub(crate) struct TraceCast {
    tenants: Vec<TraceTenant>,
}

/// A trace's processes and tenants, and where the account of the replay appears.
pub(crate) struct Cast {
    pub(crate) tenants: Vec<TenantSetup>,
    pub(crate) processes: Vec<ProcessSetup>,
    pub(crate) replayed: Arc<Mutex<Replayed>>,
}

impl TraceCast {
    /// Finds a trace's volumes by reading it once, as far as it is replayed.
    pub(crate) fn find(scene: &Scene, capacity_bytes: u64, until: Nanos, is_read_once: bool) -> anyhow::Result<Self> {
        let replaying = &scene.replaying;
        let asked = replaying.trace_tenants;
        let named = replaying.trace_weight.iter().chain(&replaying.trace_tag).next();
        if asked == Some(TraceTenants::One) || is_read_once {
            ensure!(
                asked != Some(TraceTenants::Volume) && named.is_none(),
                "the volumes of {} cannot be tenants: {}",
                scene.job.display(),
                if is_read_once {
                    "the trace must be read twice for that; give a file"
                } else {
                    "--trace-tenants is one"
                }
            );
            return Ok(Self::one(scene, capacity_bytes));
        }
        // An error is the replay's to say: it comes to the same place.
        let Ok(mut volumes) = volumes(scene, until) else { return Ok(Self::one(scene, capacity_bytes)) };
        let wanted = asked.is_some() || named.is_some();
        if !wanted && volumes.len() > VOLUMES_UNASKED_MAX {
            let count = volumes.len();
            eprintln!("{count} volumes are treated as one tenant; --trace-tenants volume makes each volume a tenant");
            return Ok(Self::one(scene, capacity_bytes));
        }
        ensure!(
            volumes.len() <= VOLUMES_MAX,
            "{} has {} volumes, and at most {VOLUMES_MAX} can be tenants; slice it by volume, or --trace-tenants one",
            scene.job.display(),
            volumes.len()
        );
        if volumes.len() <= 1 && !wanted {
            return Ok(Self::one(scene, capacity_bytes));
        }
        lay_out(&mut volumes, capacity_bytes, scene)?;
        assign(&mut volumes, scene)?;
        Ok(Self { tenants: volumes })
    }

    /// All of it is one process, at the trace's own addresses.
    fn one(scene: &Scene, capacity_bytes: u64) -> Self {
        let name = scene.job.file_name().map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned());
        let lane = Lane { volume: None, base_bytes: 0, region_bytes: capacity_bytes };
        Self { tenants: vec![TraceTenant { name, lane, weight: 100, tag: None }] }
    }

    /// The trace at its beginning.
    pub(crate) fn prepare(&self, scene: &Scene, capacity_bytes: u64) -> anyhow::Result<Cast> {
        let trace = trace::open(&scene.job, scene.reading.options()?)?;
        let options = ReplayOptions {
            pace: match scene.replaying.trace_depth {
                Some(depth) => Pace::Closed { depth },
                None => Pace::Open { speed: scene.speed },
            },
            volume: None,
            capacity_bytes,
            addresses: if scene.fold { Addresses::Fold } else { Addresses::Refuse },
            sync_writes: true,
        };
        let lanes: Vec<Lane> = self.tenants.iter().map(|tenant| tenant.lane).collect();
        let sources = TraceSource::split(trace, options, &lanes);
        let replayed = sources.first().map(TraceSource::replayed).context("a trace without a tenant")?;
        let process = |(index, (tenant, source)): (usize, (&TraceTenant, TraceSource))| {
            let source: Box<dyn Source> = Box::new(source);
            let mut parameters = FlowParameters { weight: tenant.weight, ..FlowParameters::default() };
            parameters.tag_default = tenant.tag.unwrap_or(parameters.tag_default);
            let (name, starts_at) = (tenant.name.clone(), Nanos::ZERO);
            ProcessSetup { name, tenant: index, source, starts_at, parameters, promise: None }
        };
        let tenant = |tenant: &TraceTenant| {
            let name = if tenant.lane.volume.is_none() { "trace".to_owned() } else { tenant.name.clone() };
            TenantSetup { name, weight: tenant.weight, guest: None }
        };
        Ok(Cast {
            tenants: self.tenants.iter().map(tenant).collect(),
            processes: self.tenants.iter().zip(sources).enumerate().map(process).collect(),
            replayed,
        })
    }
}

/// A trace's volumes with the sizes of their parts of the disk, in the order of their numbers.
fn volumes(scene: &Scene, until: Nanos) -> anyhow::Result<Vec<TraceTenant>> {
    let mut trace = trace::open(&scene.job, scene.reading.options()?)?;
    let end = if scene.replaying.trace_depth.is_some() { f64::INFINITY } else { until.0 as f64 * scene.speed };
    let mut summary = SummaryBuilder::default();
    let bar = trace::bar(&scene.job);
    let mut read = 0_u64;
    while let Some(record) = trace.next() {
        let record = record?;
        if record.at.0 as f64 > end {
            break;
        }
        summary.note(&record);
        read += 1;
        if read.is_multiple_of(trace::STEP) {
            bar.set_position(trace.taken_bytes());
        }
    }
    bar.finish_and_clear();
    let names = trace.volume_names();
    let tenant = |(number, volume): (u32, minerva_sim_workload::trace::VolumeSummary)| {
        let name = names.get(number as usize).cloned().unwrap_or_else(|| format!("volume {number}"));
        let region_bytes = volume.end_bytes.max(1).div_ceil(MEBIBYTE).saturating_mul(MEBIBYTE);
        let lane = Lane { volume: Some(number), base_bytes: 0, region_bytes };
        TraceTenant { name, lane, weight: 100, tag: None }
    };
    Ok(summary.finish().volumes.into_iter().map(tenant).collect())
}

/// One after the other; where they do not fit and may be folded, each on its share of the disk.
fn lay_out(tenants: &mut [TraceTenant], capacity_bytes: u64, scene: &Scene) -> anyhow::Result<()> {
    let needed: u128 = tenants.iter().map(|tenant| u128::from(tenant.lane.region_bytes)).sum();
    let fits = needed <= u128::from(capacity_bytes);
    if !fits && tenants.len() == 1 {
        // As with one process: the first request past the end says so, or is folded.
        tenants[0].lane.region_bytes = capacity_bytes;
    } else if !fits && !scene.fold {
        bail!(
            "the trace does not fit the disk: its {} volumes, one after the other, need {needed} bytes of {capacity_bytes}; \
             --fold folds each onto its share, --trace-tenants one overlaps them, --profile names another disk",
            tenants.len()
        );
    } else if !fits {
        for tenant in &mut *tenants {
            let share = u128::from(capacity_bytes) * u128::from(tenant.lane.region_bytes) / needed.max(1);
            let mebibytes = u64::try_from(share).unwrap_or(u64::MAX) / MEBIBYTE;
            tenant.lane.region_bytes = mebibytes * MEBIBYTE;
        }
    }
    let mut base_bytes = 0;
    for tenant in tenants {
        tenant.lane.base_bytes = base_bytes;
        base_bytes += tenant.lane.region_bytes;
    }
    Ok(())
}

/// Gives the volumes that the command line names their weights and tags.
fn assign(tenants: &mut [TraceTenant], scene: &Scene) -> anyhow::Result<()> {
    let known = || tenants_shown(tenants);
    let index_of = |name: &str| {
        let is = |tenant: &TraceTenant| {
            tenant.name == name || tenant.lane.volume.is_some_and(|number| number.to_string() == name)
        };
        let found = tenants.iter().position(is);
        found.with_context(|| format!("{} has no volume `{name}`; there are {}", scene.job.display(), known()))
    };
    let mut changes = Vec::new();
    for (name, weight) in &scene.replaying.trace_weight {
        ensure!((1..=10_000).contains(weight), "--trace-weight {name}={weight}: a weight is from 1 to 10000");
        changes.push((index_of(name)?, Some(*weight), None));
    }
    for (name, tag) in &scene.replaying.trace_tag {
        let tag = u8::try_from(*tag).ok().filter(|tag| (1..=254).contains(tag));
        let tag = tag.with_context(|| format!("--trace-tag {name}: a tag is from 1 to 254"))?;
        changes.push((index_of(name)?, None, Some(tag)));
    }
    for (index, weight, tag) in changes {
        let tenant = &mut tenants[index];
        tenant.weight = weight.unwrap_or(tenant.weight);
        tenant.tag = tag.or(tenant.tag);
    }
    Ok(())
}

fn tenants_shown(tenants: &[TraceTenant]) -> String {
    const SHOWN_MAX: usize = 10;
    let names: Vec<&str> = tenants.iter().take(SHOWN_MAX).map(|tenant| tenant.name.as_str()).collect();
    let more = tenants.len().saturating_sub(SHOWN_MAX);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// An error that ended a trace early, if one did; what was wrong with it otherwise goes to standard error.
pub(crate) fn judge(replayed: &Mutex<Replayed>) -> anyhow::Result<()> {
    let mut replayed = replayed.lock().unwrap_or_else(PoisonError::into_inner);
    trace::print_faults(&replayed.faults);
    if replayed.folded > 0 {
        let places: Vec<String> = replayed.folded_at.iter().map(ToString::to_string).collect();
        eprintln!(
            "folded onto the disk: {} of {} requests, which lay past its end; the first: {}",
            replayed.folded,
            replayed.records,
            places.join(", ")
        );
    }
    match replayed.error.take() {
        Some(error) => {
            let past_the_end = matches!(*error, TraceError::PastTheEnd { .. });
            Err(error).context(if past_the_end {
                "the trace does not fit the disk (--fold folds its addresses, --profile names another disk)"
            } else {
                "the trace could not be replayed"
            })
        }
        None => Ok(()),
    }
}

/// What became of a trace, for scripts.
pub(crate) fn json(replayed: &Mutex<Replayed>) -> serde_json::Value {
    let replayed = replayed.lock().unwrap_or_else(PoisonError::into_inner);
    serde_json::json!({
        "requests": replayed.records,
        "bytes": replayed.bytes,
        "completed": replayed.completed,
        "folded": replayed.folded,
        "folded_at": replayed.folded_at.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "faults": trace::faults_json(&replayed.faults),
    })
}
