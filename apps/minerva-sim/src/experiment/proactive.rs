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
pub(crate) fn run(profile: &Profile, arm: Arm, roles: Roles, rounds: u32, seed: u64) -> Outcome {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut sessions: [Vec<Session>; PAPER_JOBS.len()] = [const { Vec::new() }; PAPER_JOBS.len()];
    let mut vms: [usize; PAPER_JOBS.len()] = std::array::from_fn(|job| job);
    vms.shuffle(&mut random);
    let quarter = profile.capacity_bytes / 4 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    for round in 0..rounds {
        if roles == Roles::Drawn {
            vms.shuffle(&mut random);
        }
        for (job, vm) in PAPER_JOBS.iter().zip(vms) {
            let late = Nanos::from_millis(random.random_range(0..LATE_MAX_MS));
            let late = if round + 1 == rounds { Nanos::ZERO } else { late };
            let at = Nanos(ROUND.0 * u64::from(round)) + late;
            sessions[vm].push(session(job, at, quarter, vm as u64, &mut random));
        }
    }
    let processes = sessions.into_iter().enumerate().map(|(vm, sessions)| ProcessSetup {
        name: format!("VM {}", vm + 1),
        tenant: vm,
        source: Box::new(Sessions::new(sessions, seed << 8 | vm as u64)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let tenants = (1..=PAPER_JOBS.len()).map(|vm| TenantSetup { name: format!("VM {vm}"), weight: 100, guest: None });
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions::default())),
        depth: 1,
        tenants: tenants.collect(),
        processes: processes.collect(),
        engine: arm.engine(is_rotational(profile)),
        bin: Nanos::SECOND,
    });
    let from_s = Nanos(ROUND.0 * u64::from(rounds - 1)).as_secs_f64();
    world.run(Nanos(ROUND.0 * u64::from(rounds + 2)));
    let mut report = world.report();
    let seconds = vms.map(|vm| report.processes[vm].finished_s.map_or(f64::INFINITY, |end| end - from_s));
    for (job, vm) in PAPER_JOBS.iter().zip(vms) {
        report.processes[vm].name = format!("VM {}: {}", vm + 1, job.name);
    }
    Outcome { report, from_s, seconds }
}

fn session(job: &PaperJob, at: Nanos, quarter: u64, vm: u64, random: &mut Pcg64Mcg) -> Session {
    let bytes = job.bytes * random.random_range(SIZE_PARTS.0..SIZE_PARTS.1);
    let mut about = |value: f64| value * random.random_range(0.9..1.1);
    let plan = Plan {
        block_bytes: BLOCK_BYTES,
        offset_bytes: quarter * vm,
        region_bytes: quarter,
        total_bytes: Some(bytes as u64),
        pause: Some(Pause { time: Nanos::from_micros(job.think_us), every: 1 }),
        ..Plan::default()
    };
    Session {
        start: Start::At(at),
        plan,
        file_bytes: job.file_bytes,
        cpus: about(job.cpus),
        memory_bytes: about(job.memory_bytes) as u64,
        sockets: job.sockets,
    }
}
