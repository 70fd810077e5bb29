//! From a job file or a trace to a world.

use crate::cli::Scene;
use crate::experiment::client::is_rotational;
use crate::scheduler::Name;
use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use minerva_blocksched::FlowParameters;
use minerva_model::{EngineConfig, Nanos};
use minerva_sim_device::{Profile, profile_names};
use minerva_sim_workload::Source;
use minerva_sim_workload::job::{Amount, BoundJob, BoundTenant, JobFile, parse};
use minerva_sim_workload::trace::{Addresses, Pace, ReadOptions, ReplayOptions, Replayed, TraceReader, TraceSource};
use minerva_sim_world::{Fault, Faulty, GuestSetup, ProcessSetup, Promise, TenantSetup, World, WorldSetup};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that a guest's virtual disk holds.
const GUEST_DEPTH: u32 = 64;

/// What is simulated, read once; worlds are made of it.
pub(crate) struct Loaded {
    profile: Profile,
    what: What,
}

enum What {
    Jobs { tenants: Vec<BoundTenant>, jobs: Vec<BoundJob> },
    Trace(PathBuf),
}

/// A world, and the account of the trace that it replays.
pub(crate) struct Prepared {
    pub(crate) world: World,
    pub(crate) replayed: Option<Arc<Mutex<Replayed>>>,
}

/// Reads the disk's profile and the job file. What a job file says that a simulation ignores goes to standard error.
pub(crate) fn load(scene: &Scene) -> anyhow::Result<Loaded> {
    if !scene.until.is_finite() || scene.until <= 0.0 {
        bail!("a run of {} seconds is no good: --until wants a number above 0", scene.until);
    }
    let profile = read_profile(&scene.profile)?;
    if !is_job_file(&scene.job) {
        return Ok(Loaded { profile, what: What::Trace(scene.job.clone()) });
    }
    let path = scene.job.display().to_string();
    let text = std::fs::read_to_string(&scene.job).with_context(|| format!("failed to read {path}"))?;
    let file: JobFile = parse(&text, &path)?;
    for ignored in file.ignored() {
        eprintln!("{ignored}");
    }
    let jobs = file.bind(profile.capacity_bytes, scene.seed)?;
    Ok(Loaded { profile, what: What::Jobs { tenants: file.tenants(), jobs } })
}

fn is_job_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("fio" | "ini" | "job"))
}

fn read_profile(name: &str) -> anyhow::Result<Profile> {
    if let Some(profile) = minerva_sim_device::profile(name) {
        return Ok(profile);
    }
    if !name.ends_with(".toml") {
        bail!(
            "there is no disk profile `{name}`; there are {}, and files that end in .toml",
            profile_names().join(", ")
        );
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("failed to read {name}"))?;
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
    /// The disk.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
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
            What::Trace(path) => {
                let (process, replayed) = replay(path, self.profile.capacity_bytes)?;
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

fn replay(path: &Path, capacity_bytes: u64) -> anyhow::Result<(ProcessSetup, Arc<Mutex<Replayed>>)> {
    let trace = TraceReader::open(path, ReadOptions::default())?;
    let options = ReplayOptions {
        pace: Pace::Open { speed: 1.0 },
        volume: None,
        capacity_bytes,
        addresses: Addresses::Fold,
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

/// An error that ended a trace early, if one did; folded addresses and malformed records go to standard error.
pub(crate) fn judge_replay(replayed: &Mutex<Replayed>) -> anyhow::Result<()> {
    let mut replayed = replayed.lock().unwrap_or_else(PoisonError::into_inner);
    if replayed.folded > 0 {
        eprintln!(
            "{} of {} requests lay past the end of the disk and were folded onto it",
            replayed.folded, replayed.records
        );
    }
    match replayed.error.take() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
