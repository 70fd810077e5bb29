//! Malensek et al. 2016, Fig. 3-a: four VMs whose weights follow their history, with the engine in the loop.

use crate::experiment::client::is_rotational;
use minerva_blocksched::{Bfq, BfqOptions, FlowParameters};
use minerva_model::{EngineConfig, Nanos};
use minerva_sim_device::Profile;
use minerva_sim_workload::{Generator, Pause, Plan};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, Report, TenantSetup, World, WorldSetup};

/// The paper's four jobs (section 3.3): what they do and how much they read. The computing jobs pause: a word count is
/// bound by the processor more than a grep is.
const JOBS: [(&str, u64, u64); 4] = [
    ("VM 1: checksum, 200 MB", 200_000_000, 0),
    ("VM 2: data set, 500 MB", 500_000_000, 0),
    ("VM 3: grep, 3 GB", 3_000_000_000, 200),
    ("VM 4: word count, 12 GB", 12_000_000_000, 300),
];
const BLOCK_BYTES: u32 = 128 * 1024;

/// Runs them, all started at once, with equal weights or under the engine.
pub(crate) fn run(profile: &Profile, engine: Option<EngineConfig>, seed: u64) -> Report {
    let quarter = profile.capacity_bytes / 4 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    let processes = JOBS.iter().enumerate().map(|(index, (name, total_bytes, think_us))| {
        let plan = Plan {
            block_bytes: BLOCK_BYTES,
            offset_bytes: quarter * index as u64,
            region_bytes: quarter,
            total_bytes: Some(*total_bytes),
            pause: Some(Pause { time: Nanos::from_micros(50 + think_us), every: 1 }),
            ..Plan::default()
        };
        ProcessSetup {
            name: (*name).to_owned(),
            tenant: index,
            source: Box::new(Generator::new(plan, seed << 8 | index as u64)),
            starts_at: Nanos::ZERO,
            parameters: FlowParameters::default(),
            promise: None,
        }
    });
    let tenants =
        (0..JOBS.len()).map(|index| TenantSetup { name: format!("VM {}", index + 1), weight: 100, guest: None });
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions::default())),
        depth: 1,
        tenants: tenants.collect(),
        processes: processes.collect(),
        engine: engine.map(|config| EngineSetup {
            config,
            rotational: is_rotational(profile),
            outlook: OutlookSource::default(),
        }),
        bin: Nanos::SECOND,
    });
    world.run(Nanos::from_secs(3600));
    world.report()
}
