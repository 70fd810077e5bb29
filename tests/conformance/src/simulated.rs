//! A job on the simulator.

use crate::host::{Host, HostedDisk};
use crate::job::{Elevator, Job, TenantJob, region};
use crate::{Outcome, TenantOutcome};
use anyhow::Context as _;
use minerva_blocksched::{Bfq, BfqOptions, Deadline, DeadlineOptions, FlowParameters, Noop, Scheduler};
use minerva_model::Nanos;
use minerva_sim_device::{Media, profile};
use minerva_sim_workload::{Generator, Loop, Pattern, Plan};
use minerva_sim_world::{ProcessSetup, TenantSetup, World, WorldSetup};

/// BFQ and the disk's cache settle in this many seconds, which are not counted.
const WARM_UP_S: usize = 2;

/// Runs `job` for `seconds` of virtual time, after a warm-up.
pub fn run(job: &Job, host: &Host, seconds: u64, seed: u64) -> anyhow::Result<Outcome> {
    let profile = profile(job.profile).with_context(|| format!("there is no disk profile `{}`", job.profile))?;
    let rotational = matches!(profile.media, Media::Hdd(_));
    let disk = HostedDisk::new(profile.build(None, seed), host.clone(), seed);
    let tenants = job.tenants.iter().enumerate();
    let mut world = World::new(WorldSetup {
        device: Box::new(disk),
        host: scheduler(job.elevator, rotational),
        depth: u32::MAX,
        tenants: tenants
            .clone()
            .map(|(index, tenant)| TenantSetup { name: index.to_string(), weight: tenant.weight, guest: None })
            .collect(),
        processes: tenants
            .map(|(index, tenant)| ProcessSetup {
                name: index.to_string(),
                tenant: index,
                source: Box::new(Generator::new(
                    plan(tenant, region(job, index, profile.capacity_bytes)),
                    seed << 8 | index as u64,
                )),
                starts_at: Nanos::ZERO,
                parameters: FlowParameters::default(),
                promise: None,
            })
            .collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    let until = seconds + WARM_UP_S as u64;
    world.run(Nanos::from_secs(until));
    let report = world.report();
    let outcome = |process: &minerva_sim_world::ReportedProcess| {
        let bins = process.bins_bytes.iter().skip(WARM_UP_S).take(seconds as usize);
        TenantOutcome {
            bytes_per_second: bins.sum::<u64>() as f64 / seconds as f64,
            p99_ms: process.latency_p99_ms,
            mean_ms: process.latency_mean_ms,
            requests: process.requests,
        }
    };
    Ok(Outcome { tenants: report.processes.iter().map(outcome).collect() })
}

fn plan(tenant: &TenantJob, (offset_bytes, region_bytes): (u64, u64)) -> Plan {
    Plan {
        pattern: if tenant.random { Pattern::Random } else { Pattern::Sequential },
        when: Loop::Closed { depth: tenant.depth },
        read_percent: if tenant.write { 0 } else { 100 },
        // The kernel takes direct writes for synchronous ones.
        sync_writes: true,
        block_bytes: tenant.block_bytes,
        offset_bytes,
        region_bytes,
        ..Plan::default()
    }
}

fn scheduler(elevator: Elevator, rotational: bool) -> Box<dyn Scheduler> {
    match elevator {
        Elevator::None => Box::new(Noop::new()),
        Elevator::Deadline => Box::new(Deadline::new(DeadlineOptions::default())),
        // The kernel's BFQ takes a disk for one that queues until 32 samples say otherwise, and takes a sample only with
        // more than three requests about.
        Elevator::Bfq => {
            Box::new(Bfq::new(BfqOptions { rotational, queues_internally: true, ..BfqOptions::default() }))
        }
    }
}
