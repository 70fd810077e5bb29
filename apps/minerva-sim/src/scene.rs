//! From a job file or a trace to a world.

use crate::cli::Scene;
use crate::experiment::client::is_rotational;
use crate::replay::{Cast, TraceCast};
use crate::scheduler::{Name, keeps};
use crate::text::read_text;
use anyhow::{Context as _, bail};
use minerva_blocksched::{BuildOptions, FlowParameters};
use minerva_model::{EngineConfig, Level, Nanos};
use minerva_sim_device::{Profile, profile_names};
use minerva_sim_workload::job::{Amount, BoundJob, BoundTenant, FILE_BYTES_MAX, JobFile, Problem, parse};
use minerva_sim_workload::trace::Replayed;
use minerva_sim_world::{
    EngineSetup, Faulty, GuestSetup, OutlookSource, ProcessSetup, Promise, TenantSetup, World, WorldSetup,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

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
    Jobs { tenants: Vec<BoundTenant>, jobs: Vec<BoundJob>, lone_priorities: Vec<Problem> },
    Trace(TraceCast),
}

/// A world, and the account of the trace that it replays.
pub(crate) struct Prepared {
    pub(crate) world: World,
    pub(crate) replayed: Option<Arc<Mutex<Replayed>>>,
}

/// Reads the disk's profile and the job file. What a job file says that a simulation ignores goes to standard error.
pub(crate) fn load(scene: &Scene) -> anyhow::Result<Loaded> {
    if let Some(until) = scene.until.filter(|until| !(*until > 0.0 && *until <= UNTIL_MAX_S)) {
        bail!("a run of {until} seconds is not possible: --until takes a number above 0, up to {UNTIL_MAX_S}");
    }
    if !(scene.speed > 0.0 && scene.speed.is_finite()) {
        bail!("a speed of {} is not possible: --speed takes a number above 0", scene.speed);
    }
    let profile = read_profile(&scene.profile)?;
    if !is_job_file(&scene.job) {
        let until = until(scene, UNTIL_MAX_S);
        let cast = TraceCast::find(scene, profile.capacity_bytes, until, is_read_once(&scene.job))?;
        return Ok(Loaded { profile, what: What::Trace(cast) });
    }
    let path = scene.job.display().to_string();
    let text = read_text(&scene.job, FILE_BYTES_MAX)?;
    let file: JobFile = parse(&text, &path)?;
    let levels = if scene.engine { Vec::new() } else { file.levels() };
    for ignored in file.ignored().iter().chain(&levels) {
        eprintln!("{ignored}");
    }
    file.judge_guest_schedulers(Name::ALL.iter().map(|name| name.as_str()))?;
    file.judge_guest_keys(|guest, key| guest.parse().is_ok_and(|guest| keeps(guest, key)))?;
    let jobs = file.bind(profile.capacity_bytes, scene.seed)?;
    Ok(Loaded { profile, what: What::Jobs { tenants: file.tenants(), jobs, lone_priorities: file.lone_priorities() } })
}

fn until(scene: &Scene, most_s: f64) -> Nanos {
    Nanos((scene.until.unwrap_or(most_s) * 1e9) as u64)
}

/// Whether it is a pipe.
fn is_read_once(path: &Path) -> bool {
    path == Path::new("-") || path.metadata().is_ok_and(|is| !is.is_file())
}

pub(crate) fn is_job_file(path: &Path) -> bool {
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

impl Loaded {
    /// The processes of a job file; none of a trace.
    pub(crate) fn jobs(&self) -> &[BoundJob] {
        match &self.what {
            What::Jobs { jobs, .. } => jobs,
            What::Trace(_) => &[],
        }
    }

    /// Priorities that change nothing where groups come first.
    pub(crate) fn lone_priorities(&self) -> &[Problem] {
        match &self.what {
            What::Jobs { lone_priorities, .. } => lone_priorities,
            What::Trace(_) => &[],
        }
    }

    /// The disk.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// When the run ends at the latest.
    pub(crate) fn until(&self, scene: &Scene) -> Nanos {
        until(scene, if self.is_trace() { UNTIL_MAX_S } else { JOBS_UNTIL_S })
    }

    /// Whether a trace is replayed.
    pub(crate) fn is_trace(&self) -> bool {
        matches!(self.what, What::Trace(_))
    }

    /// Whether what is simulated can be read but once: it is a pipe.
    pub(crate) fn is_read_once(&self, scene: &Scene) -> bool {
        self.is_trace() && is_read_once(&scene.job)
    }

    /// Requests at the disk at once under this scheduler.
    pub(crate) fn depth(&self, scene: &Scene, name: Name) -> u32 {
        let most = self.profile.queue_depth;
        match scene.depth {
            None => name.depth(scene.htbs.build_options(is_rotational(&self.profile), most)),
            Some(0) => most,
            Some(depth) => depth.min(most),
        }
    }

    /// How a run was set up, for scripts: the same setup gives the same report.
    pub(crate) fn setup_json(&self, scene: &Scene, name: Name) -> serde_json::Value {
        let faults = scene.fault.iter().map(|fault| {
            let (from_s, until_s) = (fault.from.as_secs_f64(), fault.until.as_secs_f64());
            serde_json::json!({ "from_s": from_s, "until_s": until_s, "slower": fault.slower })
        });
        let depth = self.depth(scene, name);
        serde_json::json!({
            "seed": scene.seed,
            "profile": self.profile.name,
            "capacity_bytes": self.profile.capacity_bytes,
            "scheduler": name.as_str(),
            "settings": name.options(scene.htbs.build_options(is_rotational(&self.profile), depth)),
            "depth": depth,
            "engine": scene.engine,
            "until_s": self.until(scene).as_secs_f64(),
            "faults": faults.collect::<Vec<_>>(),
        })
    }

    /// A fresh world under this scheduler.
    pub(crate) fn prepare(&self, scene: &Scene, name: Name) -> anyhow::Result<Prepared> {
        let device = self.profile.build(None, scene.seed);
        let device = match scene.fault.is_empty() {
            true => device,
            false => Box::new(Faulty::new(device, scene.fault.clone())),
        };
        let (tenants, processes, replayed) = match &self.what {
            What::Jobs { tenants, jobs, .. } => {
                let tenants: Result<Vec<_>, _> = tenants.iter().map(|tenant| self.tenant(tenant)).collect();
                (tenants?, jobs.iter().map(|job| process(job, name)).collect(), None)
            }
            What::Trace(cast) => {
                let Cast { tenants, processes, replayed } = cast.prepare(scene, self.profile.capacity_bytes)?;
                (tenants, processes, Some(replayed))
            }
        };
        let (rotational, depth) = (is_rotational(&self.profile), self.depth(scene, name));
        let mut world = World::new(WorldSetup {
            device,
            host: name.build(scene.htbs.build_options(rotational, depth)),
            depth,
            tenants,
            processes,
            engine: scene.engine.then(|| EngineSetup {
                config: EngineConfig::default(),
                rotational,
                outlook: OutlookSource::default(),
            }),
            bin: Nanos::SECOND,
        });
        if let What::Jobs { tenants, .. } = &self.what {
            let back = tenants.iter().enumerate().filter(|(_, tenant)| tenant.level != Level::Normal);
            back.for_each(|(index, tenant)| world.set_level(index, tenant.level));
        }
        Ok(Prepared { world, replayed })
    }

    fn tenant(&self, tenant: &BoundTenant) -> anyhow::Result<TenantSetup> {
        let guest = match &tenant.guest_scheduler {
            None => None,
            Some(text) => {
                let name: Name = text.parse().with_context(|| format!("tenant {}", tenant.name))?;
                Some(GuestSetup {
                    scheduler: name.build(BuildOptions::for_disk(is_rotational(&self.profile), 1)),
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
