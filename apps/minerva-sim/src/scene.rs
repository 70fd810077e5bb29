//! From a job file or a trace to a world.

use crate::cli::Scene;
use crate::experiment::client::is_rotational;
use crate::scheduler::Name;
use crate::text::read_text;
use crate::trace;
use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use minerva_blocksched::FlowParameters;
use minerva_model::{EngineConfig, Nanos};
use minerva_sim_device::{Profile, profile_names};
use minerva_sim_workload::Source;
use minerva_sim_workload::job::{Amount, BoundJob, BoundTenant, FILE_BYTES_MAX, JobFile, parse};
use minerva_sim_workload::trace::{Addresses, Pace, ReplayOptions, Replayed, TraceError, TraceSource};
use minerva_sim_world::{Fault, Faulty, GuestSetup, ProcessSetup, Promise, TenantSetup, World, WorldSetup};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that a guest's virtual disk holds.
const GUEST_DEPTH: u32 = 64;
/// Jobs that do not end by themselves are stopped here.
const JOBS_UNTIL_S: f64 = 3600.0;
/// Thirty years, more than any trace lasts.
const UNTIL_MAX_S: f64 = 1e9;
/// A longer profile is none.
const PROFILE_BYTES_MAX: usize = 1 << 20;

/// What is simulated, read once; worlds are made of it.
pub(crate) struct Loaded {
    profile: Profile,
    what: What,
}

enum What {
    Jobs { tenants: Vec<BoundTenant>, jobs: Vec<BoundJob> },
    Trace,
}

/// A world, and the account of the trace that it replays.
pub(crate) struct Prepared {
    pub(crate) world: World,
    pub(crate) replayed: Option<Arc<Mutex<Replayed>>>,
}

/// Reads the disk's profile and the job file. What a job file says that a simulation ignores goes to standard error.
pub(crate) fn load(scene: &Scene) -> anyhow::Result<Loaded> {
    if let Some(until) = scene.until.filter(|until| !(*until > 0.0 && *until <= UNTIL_MAX_S)) {
        bail!("a run of {until} seconds is no good: --until wants a number above 0, up to {UNTIL_MAX_S}");
    }
    if !(scene.speed > 0.0 && scene.speed.is_finite()) {
        bail!("a speed of {} is no good: --speed wants a number above 0", scene.speed);
    }
    let profile = read_profile(&scene.profile)?;
    if !is_job_file(&scene.job) {
        return Ok(Loaded { profile, what: What::Trace });
    }
    let path = scene.job.display().to_string();
    let text = read_text(&scene.job, FILE_BYTES_MAX)?;
    let file: JobFile = parse(&text, &path)?;
    for ignored in file.ignored() {
        eprintln!("{ignored}");
    }
    file.judge_guest_schedulers(Name::value_variants().iter().map(|name| name.as_str()))?;
    let jobs = file.bind(profile.capacity_bytes, scene.seed)?;
    Ok(Loaded { profile, what: What::Jobs { tenants: file.tenants(), jobs } })
}

fn is_job_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("fio" | "ini" | "job"))
}

/// The built-in disk of this name, or the one in a file.
pub(crate) fn read_profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = minerva_sim_device::profile(name) {
        return Ok(profile);
    }
    if !name.ends_with(".toml") {
        bail!(
            "there is no disk profile `{name}`; there are {}, and files that end in .toml",
            profile_names().join(", ")
        );
    }
    let text = read_text(Path::new(name), PROFILE_BYTES_MAX)?;
    Profile::parse(&text).with_context(|| format!("failed to understand {name}"))
}

/// `FROM-UNTILxSLOWER`, for the command line.
pub(crate) fn parse_fault(text: &str) -> Result<Fault, String> {
    let shape = || format!("`{text}` is not FROM-UNTILxSLOWER, such as 10-20x4");
    let (times, slower) = text.split_once('x').ok_or_else(shape)?;
    let (from, until) = times.split_once('-').ok_or_else(shape)?;
    let second = |text: &str| {
        let second = text.parse::<f64>().ok().filter(|second| (0.0..1e9).contains(second));
        second.map(|second| Nanos((second * 1e9) as u64)).ok_or_else(shape)
    };
    let (from, until) = (second(from)?, second(until)?);
    if until <= from {
        return Err(format!("`{text}` ends before it starts"));
    }
    let slower: u32 = slower.parse().map_err(|_| shape())?;
    Ok(Fault { from, until, slower: (slower > 0).then_some(slower) })
}

impl Loaded {
    /// The processes of a job file; none of a trace.
    pub(crate) fn jobs(&self) -> &[BoundJob] {
        match &self.what {
            What::Jobs { jobs, .. } => jobs,
            What::Trace => &[],
        }
    }

    /// The disk.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// When the run ends at the latest.
    pub(crate) fn until(&self, scene: &Scene) -> Nanos {
        let seconds = scene.until.unwrap_or(match &self.what {
            What::Jobs { .. } => JOBS_UNTIL_S,
            What::Trace => UNTIL_MAX_S,
        });
        Nanos((seconds * 1e9) as u64)
    }

    /// Whether a trace is replayed.
    pub(crate) fn is_trace(&self) -> bool {
        matches!(self.what, What::Trace)
    }

    /// Whether what is simulated can be read but once: it is a pipe.
    pub(crate) fn is_read_once(&self, scene: &Scene) -> bool {
        self.is_trace() && (scene.job == Path::new("-") || scene.job.metadata().is_ok_and(|is| !is.is_file()))
    }

    /// A fresh world under this scheduler.
    pub(crate) fn prepare(&self, scene: &Scene, name: Name) -> anyhow::Result<Prepared> {
        let device = self.profile.build(None, scene.seed);
        let device = match scene.fault.is_empty() {
            true => device,
            false => Box::new(Faulty::new(device, scene.fault.clone())),
        };
        let (tenants, processes, replayed) = match &self.what {
            What::Jobs { tenants, jobs } => {
                let tenants: Result<Vec<_>, _> = tenants.iter().map(|tenant| self.tenant(tenant)).collect();
                (tenants?, jobs.iter().map(|job| process(job, name)).collect(), None)
            }
            What::Trace => {
                let (process, replayed) = replay(scene, self.profile.capacity_bytes)?;
                let tenant = TenantSetup { name: "trace".to_owned(), weight: 100, guest: None };
                (vec![tenant], vec![process], Some(replayed))
            }
        };
        let depth = if scene.depth == 0 { device.queue_depth() } else { scene.depth };
        let world = World::new(WorldSetup {
            device,
            host: name.build(is_rotational(&self.profile)),
            depth,
            tenants,
            processes,
            engine: scene.engine.then(EngineConfig::default),
            bin: Nanos::SECOND,
        });
        Ok(Prepared { world, replayed })
    }

    fn tenant(&self, tenant: &BoundTenant) -> anyhow::Result<TenantSetup> {
        let guest = match &tenant.guest_scheduler {
            None => None,
            Some(text) => {
                let name = Name::from_str(text, true)
                    .map_err(|_| anyhow::anyhow!("tenant {}: there is no scheduler `{text}`", tenant.name))?;
                Some(GuestSetup {
                    scheduler: name.build(is_rotational(&self.profile)),
                    depth: GUEST_DEPTH,
                    parameters: FlowParameters::default(),
                    // With noop the guest leaves the order to the host, as the Tag Scheduler wants it.
                    passes_streams: name == Name::Noop,
                })
            }
        };
        Ok(TenantSetup { name: tenant.name.clone(), weight: tenant.weight, guest })
    }
}

fn process(job: &BoundJob, name: Name) -> ProcessSetup {
    let bytes = |amount: Amount| match amount {
        Amount::Bytes(bytes) => bytes as f64,
        Amount::Requests(requests) => requests * f64::from(job.plan.block_bytes),
    };
    let promise = job.terms.contract.map(|(rate, burst, delay)| Promise {
        bytes_per_second: bytes(rate),
        burst_bytes: bytes(burst),
        delay,
    });
    ProcessSetup {
        name: job.name.clone(),
        tenant: job.tenant,
        source: job.source(),
        starts_at: job.starts_at,
        parameters: job.parameters(name.cost()),
        promise,
    }
}

fn replay(scene: &Scene, capacity_bytes: u64) -> anyhow::Result<(ProcessSetup, Arc<Mutex<Replayed>>)> {
    let path = &scene.job;
    let trace = trace::open(path, scene.reading.options()?)?;
    let options = ReplayOptions {
        pace: Pace::Open { speed: scene.speed },
        volume: None,
        capacity_bytes,
        addresses: if scene.fold { Addresses::Fold } else { Addresses::Refuse },
        sync_writes: true,
    };
    let source = TraceSource::new(trace, options);
    let replayed = source.replayed();
    let source: Box<dyn Source> = Box::new(source);
    let process = ProcessSetup {
        name: path.file_name().map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned()),
        tenant: 0,
        source,
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    };
    Ok((process, replayed))
}

/// An error that ended a trace early, if one did; what was wrong with it otherwise goes to standard error.
pub(crate) fn judge_replay(replayed: &Mutex<Replayed>) -> anyhow::Result<()> {
    let mut replayed = replayed.lock().unwrap_or_else(PoisonError::into_inner);
    trace::print_faults(&replayed.faults);
    if replayed.folded > 0 {
        eprintln!("folded onto the disk: {} of {} requests, which lay past its end", replayed.folded, replayed.records);
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
