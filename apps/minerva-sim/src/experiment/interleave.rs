//! Malensek et al. 2016, Fig. 3-d against 3-e: a VM that reads files and computes their checksums, and one that stores what it
//! receives, processes it, and writes it in blocks. Both alternate between the disk and other work.

use crate::experiment::arm::Arm;
use crate::experiment::client::is_rotational;
use minerva_blocksched::{Bfq, BfqOptions, FlowParameters};
use minerva_model::Nanos;
use minerva_sim_device::{Media, Profile, WriteBack};
use minerva_sim_workload::{Plan, Session, Sessions, Start};
use minerva_sim_world::{EngineSetup, ProcessSetup, Report, TenantSetup, World, WorldSetup};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const BLOCK_BYTES: u32 = 128 * 1024;
/// Bytes from which it is measured how fast each is alone.
const ALONE_BYTES: u64 = 200_000_000;

/// How two alternate: seconds that a burst takes alone, and seconds of other work after it; each burst and pause differs from that
/// by up to `jitter`, as a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    pub(crate) burst_s: f64,
    pub(crate) pause_s: f64,
    pub(crate) jitter: f64,
}

/// Draws a cycle.
pub(crate) fn draw(seed: u64) -> Cycle {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x1e7);
    let burst_s = random.random_range(3.0..7.0);
    Cycle { burst_s, pause_s: burst_s * random.random_range(0.8..1.4), jitter: random.random_range(0.0..0.1) }
}

/// Runs both for so many seconds.
pub(crate) fn run(profile: &Profile, arm: Arm, cycle: Cycle, seconds: u64, seed: u64) -> Report {
    let profile = &with_write_cache(profile);
    let (count, alone) = (count(cycle, seconds), alone_bytes_per_second(profile, seed));
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut both = |tenant: usize| (tenant, drawn(profile, cycle, tenant, count, alone[tenant], &mut random));
    let both = vec![both(0), both(1)];
    run_sessions(profile, arm.engine(is_rotational(profile)), both, seconds, seed)
}

/// Runs each with the disk to itself: nobody who shares it gets more done.
pub(crate) fn run_alone(profile: &Profile, cycle: Cycle, seconds: u64, seed: u64) -> [Report; 2] {
    let profile = &with_write_cache(profile);
    let (count, alone) = (count(cycle, seconds), alone_bytes_per_second(profile, seed));
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    [0, 1].map(|tenant| {
        let sessions = drawn(profile, cycle, tenant, count, alone[tenant], &mut random);
        run_sessions(profile, None, vec![(tenant, sessions)], seconds, seed)
    })
}

fn count(cycle: Cycle, seconds: u64) -> usize {
    (2.0 * seconds as f64 / (cycle.burst_s + cycle.pause_s)) as usize
}

/// How fast each is alone.
fn alone_bytes_per_second(profile: &Profile, seed: u64) -> [f64; 2] {
    [0, 1].map(|tenant| {
        let session = session(profile, tenant, 0.0, ALONE_BYTES as f64);
        run_sessions(profile, None, vec![(tenant, vec![session])], 60, seed).processes[0].bytes_per_second
    })
}

/// Pauses and bursts of one.
fn drawn(
    profile: &Profile,
    cycle: Cycle,
    tenant: usize,
    count: usize,
    bytes_per_second: f64,
    random: &mut Pcg64Mcg,
) -> Vec<Session> {
    let mut about = |value: f64| value * (1.0 + cycle.jitter * random.random_range(-1.0..=1.0));
    let mut one = |_| session(profile, tenant, about(cycle.pause_s), about(cycle.burst_s) * bytes_per_second);
    (0..count).map(&mut one).collect()
}

/// The disk with its write cache on, so that one that writes gets as much of it in a second as one that reads.
fn with_write_cache(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    if let Media::Hdd(disk) = &mut profile.media {
        disk.cache.write_back = WriteBack::On;
    }
    profile
}

/// A pause, then a burst.
fn session(profile: &Profile, tenant: usize, pause_s: f64, bytes: f64) -> Session {
    let block_bytes = BLOCK_BYTES;
    let half = profile.capacity_bytes / 2 / u64::from(block_bytes) * u64::from(block_bytes);
    Session {
        start: Start::After(Nanos((pause_s * 1e9) as u64)),
        plan: Plan {
            block_bytes,
            offset_bytes: half * tenant as u64,
            region_bytes: half,
            read_percent: if tenant == 0 { 100 } else { 0 },
            total_bytes: Some(bytes as u64),
            ..Plan::default()
        },
        file_bytes: u64::MAX,
        cpus: 0.2,
        memory_bytes: 100_000_000,
        sockets: tenant as u64,
    }
}

fn run_sessions(
    profile: &Profile,
    engine: Option<EngineSetup>,
    sessions: Vec<(usize, Vec<Session>)>,
    seconds: u64,
    seed: u64,
) -> Report {
    let process = |(index, (tenant, sessions)): (usize, (usize, Vec<Session>))| ProcessSetup {
        name: ["VM 1: checksums", "VM 2: storage node"][tenant].to_owned(),
        tenant: index,
        source: Box::new(Sessions::new(sessions, seed << 8 | tenant as u64)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    };
    let processes: Vec<ProcessSetup> = sessions.into_iter().enumerate().map(process).collect();
    let tenant = |index: usize| TenantSetup { name: format!("VM {}", index + 1), weight: 100, guest: None };
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions::default())),
        depth: 1,
        tenants: (0..processes.len()).map(tenant).collect(),
        processes,
        engine,
        bin: Nanos::SECOND,
    });
    world.run(Nanos::from_secs(seconds));
    world.report()
}
