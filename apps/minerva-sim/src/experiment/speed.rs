//! How many requests a second the simulator does.

use minerva_blocksched::{Contract, FlowParameters, Htbs, HtbsOptions, Noop, Scheduler};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::{Generator, Pattern, Plan};
use minerva_sim_world::{ProcessSetup, TenantSetup, World, WorldSetup};

/// A world of synchronous readers on `profile`.
fn world(profile: &Profile, host: Box<dyn Scheduler>, flows: usize, pattern: Pattern, requests: u64) -> World {
    let each = profile.capacity_bytes / flows as u64 / 4096 * 4096;
    let processes = (0..flows).map(|index| {
        let plan = Plan {
            pattern,
            offset_bytes: each * index as u64,
            region_bytes: each,
            total_bytes: Some(requests / flows as u64 * 4096),
            ..Plan::default()
        };
        let rate_per_second = 1.0 + (index % 10) as f64;
        let contract = Contract { rate_per_second, burst: 1.0, delay: Nanos::from_secs(10) };
        ProcessSetup {
            name: format!("flow {index}"),
            tenant: 0,
            source: Box::new(Generator::new(plan, index as u64)),
            starts_at: Nanos::ZERO,
            parameters: FlowParameters { contract: Some(contract), ..FlowParameters::default() },
            promise: None,
        }
    });
    World::new(WorldSetup {
        device: profile.build(None, 1),
        host,
        depth: 1,
        tenants: vec![TenantSetup { name: "all".to_owned(), weight: 100, guest: None }],
        processes: processes.collect(),
        engine: None,
        bin: Nanos::from_secs(60),
    })
}

/// One sequential reader, first come, first served.
pub(crate) fn fifo(profile: &Profile, requests: u64) -> World {
    world(profile, Box::new(Noop::new()), 1, Pattern::Sequential, requests)
}

/// The same at random places.
pub(crate) fn fifo_random(profile: &Profile, requests: u64) -> World {
    world(profile, Box::new(Noop::new()), 1, Pattern::Random, requests)
}

/// Sequential readers under HTBS, all with contracts.
pub(crate) fn htbs(profile: &Profile, flows: usize, requests: u64) -> World {
    world(profile, Box::new(Htbs::new(HtbsOptions::default())), flows, Pattern::Sequential, requests)
}
