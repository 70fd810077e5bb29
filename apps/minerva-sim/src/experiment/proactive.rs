//! Malensek et al. 2016, Fig. 3-a against 3-b: four VMs that start together, after an hour in which sessions like theirs came one by
//! one. What may be known beforehand of a session is in the hour, or shown by the process when it begins.

use crate::experiment::client::is_rotational;
use minerva_blocksched::{Bfq, BfqOptions, FlowParameters};
use minerva_model::{EngineConfig, ForecastMode, Nanos};
use minerva_sim_device::Profile;
use minerva_sim_workload::{PAPER_JOBS, PaperJob, Pause, Plan, SIZE_PARTS, Session, Sessions, Start};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, Report, TenantSetup, World, WorldSetup};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const BLOCK_BYTES: u32 = 128 * 1024;
/// From one round of four jobs to the next: what they read takes about three minutes.
const ROUND: Nanos = Nanos::from_secs(230);
/// Of these the last is the one in which all start together; the ones before make up the hour.
pub(crate) const ROUNDS: u32 = 17;
/// In the hour a job starts so long after its round at most.
const LATE_MAX_MS: u64 = 20_000;

/// Names of the jobs, the shortest first.
pub(crate) fn job_names() -> [&'static str; PAPER_JOBS.len()] {
    PAPER_JOBS.each_ref().map(|job| job.name)
}

/// Who runs what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roles {
    /// Each VM always the same job: its name, and its last session, say what comes.
    Fixed,
    /// Jobs are dealt anew in each round: only what a process shows when it begins says what comes.
    Drawn,
    /// Each session is a tenant of its own that was not there before, named after its job, as batch jobs in containers are.
    Newcomers,
}

impl Roles {
    pub(crate) const ALL: [Self; 3] = [Self::Drawn, Self::Fixed, Self::Newcomers];
}

/// What is the same in all arms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) roles: Roles,
    pub(crate) rounds: u32,
    /// The engine's.
    pub(crate) slice: Nanos,
    /// Of bytes, and of the time between rounds.
    pub(crate) scale: f64,
}

impl Conditions {
    fn scaled(&self, time: Nanos) -> Nanos {
        Nanos((time.0 as f64 * self.scale) as u64)
    }
}

/// What steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// Nobody: weights stay equal.
    Equal,
    /// Minerva without forecasts: history alone (Fennel).
    History,
    /// Minerva with the last session's size in place of the forecast.
    LastValue,
    /// Minerva as it is.
    Forecasts,
    /// Minerva, when what is left of each session is known.
    Oracle,
}

impl Arm {
    pub(crate) const ALL: [Self; 5] = [Self::Equal, Self::History, Self::LastValue, Self::Forecasts, Self::Oracle];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal weights",
            Self::History => "Fennel",
            Self::LastValue => "last value",
            Self::Forecasts => "forecasts",
            Self::Oracle => "oracle",
        }
    }

    /// The engine of this arm.
    pub(crate) fn engine(self, rotational: bool) -> Option<EngineSetup> {
        let mut config = EngineConfig::default();
        config.forecast.mode = if self == Self::Forecasts { ForecastMode::On } else { ForecastMode::Off };
        let outlook = match self {
            Self::Equal => return None,
            Self::History | Self::Forecasts => OutlookSource::Engine,
            Self::LastValue => OutlookSource::LastValue,
            Self::Oracle => OutlookSource::Oracle,
        };
        Some(EngineSetup { config, rotational, outlook })
    }
}

/// What came of one run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    /// When all started together.
    pub(crate) from_s: f64,
    /// Seconds that each job of that round took, in the order of [`job_names`].
    pub(crate) seconds: [f64; PAPER_JOBS.len()],
}

/// The hour and the round in which all start together; what is drawn depends on the seed, not on the arm.
pub(crate) fn run(profile: &Profile, arm: Arm, conditions: Conditions, seed: u64) -> Outcome {
    let Drawn { tenants, last } = drawn(profile, conditions, seed);
    let Conditions { rounds, slice, .. } = conditions;
    let names: Vec<String> = tenants.iter().map(|(name, _)| name.clone()).collect();
    let processes = tenants.into_iter().enumerate().map(|(tenant, (name, sessions))| ProcessSetup {
        name,
        tenant,
        source: Box::new(Sessions::new(sessions, seed << 8 | tenant as u64)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions::default())),
        depth: 1,
        tenants: names.into_iter().map(|name| TenantSetup { name, weight: 100, guest: None }).collect(),
        processes: processes.collect(),
        engine: arm.engine(is_rotational(profile)).map(|mut engine| {
            engine.config.observe.slice = slice;
            engine
        }),
        bin: Nanos::SECOND,
    });
    let from_s = conditions.scaled(Nanos(ROUND.0 * u64::from(rounds - 1))).as_secs_f64();
    world.run(conditions.scaled(Nanos(ROUND.0 * u64::from(rounds + 2))));
    let mut report = world.report();
    let seconds = last.map(|tenant| report.processes[tenant].finished_s.map_or(f64::INFINITY, |end| end - from_s));
    for (job, tenant) in PAPER_JOBS.iter().zip(last) {
        report.processes[tenant].name = format!("{}: {}", report.processes[tenant].name, job.name);
    }
    // Of newcomers only the last four were there together.
    report.processes.drain(..report.processes.len() - PAPER_JOBS.len());
    Outcome { report, from_s, seconds }
}

/// Sessions of all tenants.
struct Drawn {
    tenants: Vec<(String, Vec<Session>)>,
    /// Who runs each job of the last round.
    last: [usize; PAPER_JOBS.len()],
}

fn drawn(profile: &Profile, conditions: Conditions, seed: u64) -> Drawn {
    let Conditions { roles, rounds, scale, .. } = conditions;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut last: [usize; PAPER_JOBS.len()] = std::array::from_fn(|job| job);
    last.shuffle(&mut random);
    let mut tenants: Vec<(String, Vec<Session>)> = match roles {
        Roles::Newcomers => Vec::new(),
        Roles::Drawn | Roles::Fixed => (1..=PAPER_JOBS.len()).map(|vm| (format!("VM {vm}"), Vec::new())).collect(),
    };
    let quarter = profile.capacity_bytes / 4 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    for round in 0..rounds {
        if roles == Roles::Drawn {
            last.shuffle(&mut random);
        }
        for (index, job) in PAPER_JOBS.iter().enumerate() {
            let late = Nanos::from_millis(random.random_range(0..LATE_MAX_MS));
            let late = if round + 1 == rounds { Nanos::ZERO } else { late };
            let at = conditions.scaled(Nanos(ROUND.0 * u64::from(round)) + late);
            let start = (at, quarter * (last[index] % PAPER_JOBS.len()) as u64, quarter);
            let session = session(job, scale, start, &mut random);
            if roles == Roles::Newcomers {
                last[index] = tenants.len();
                tenants.push((format!("{}-{}", job.word, 1_000 + round), Vec::new()));
            }
            tenants[last[index]].1.push(session);
        }
    }
    Drawn { tenants, last }
}

/// A session that starts at a time and reads in a region of the disk.
fn session(
    job: &PaperJob,
    scale: f64,
    (at, offset_bytes, region_bytes): (Nanos, u64, u64),
    random: &mut Pcg64Mcg,
) -> Session {
    let bytes = job.bytes * scale * random.random_range(SIZE_PARTS.0..SIZE_PARTS.1);
    let mut about = |value: f64| value * random.random_range(0.9..1.1);
    let plan = Plan {
        block_bytes: BLOCK_BYTES,
        offset_bytes,
        region_bytes,
        total_bytes: Some(bytes as u64),
        pause: Some(Pause { time: Nanos::from_micros(job.think_us), every: 1 }),
        ..Plan::default()
    };
    Session {
        start: Start::At(at),
        plan,
        file_bytes: if job.file_bytes == u64::MAX { u64::MAX } else { (job.file_bytes as f64 * scale) as u64 },
        cpus: about(job.cpus),
        memory_bytes: about(job.memory_bytes * scale) as u64,
        sockets: job.sockets,
    }
}
