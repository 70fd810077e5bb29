//! Whole worlds, run to their end.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_blocksched::{Bfq, BfqOptions, FlowParameters, Noop, Scheduler};
use minerva_model::{EngineConfig, Nanos};
use minerva_sim_device::profile;
use minerva_sim_workload::{Generator, Pattern, Plan};
use minerva_sim_world::{EngineSetup, GuestSetup, OutlookSource, ProcessSetup, Report, TenantSetup, World, WorldSetup};

const MEGABYTE: u64 = 1_000_000;

/// Two tenants with a sequential 64 KiB reader each, at opposite ends of the disk.
fn two_readers(host: Box<dyn Scheduler>, weights: [u32; 2], engine: Option<EngineConfig>, totals: [u64; 2]) -> Report {
    let device = profile("sata7200-80g").expect("a built-in profile").build(None, 1);
    let half = device.capacity_bytes() / 2 / 65_536 * 65_536;
    let processes = (0..2)
        .map(|index| {
            let plan = Plan {
                block_bytes: 65_536,
                offset_bytes: half * index as u64,
                region_bytes: 4 << 30,
                total_bytes: Some(totals[index]),
                ..Plan::default()
            };
            ProcessSetup {
                name: format!("reader {index}"),
                tenant: index,
                source: Box::new(Generator::new(plan, index as u64)),
                starts_at: Nanos::from_secs(10 * index as u64),
                parameters: FlowParameters::default(),
                promise: None,
            }
        })
        .collect();
    let tenants = (0..2)
        .map(|index| TenantSetup { name: format!("tenant {index}"), weight: weights[index], guest: None })
        .collect();
    let engine = engine.map(|config| EngineSetup { config, rotational: true, outlook: OutlookSource::default() });
    let setup = WorldSetup { device, host, depth: 1, tenants, processes, engine, bin: Nanos::SECOND };
    let mut world = World::new(setup);
    assert!(world.run(Nanos::from_secs(3600)), "both readers end");
    world.report()
}

#[test]
fn every_byte_asked_for_is_served() {
    let report = two_readers(Box::new(Noop::new()), [100, 100], None, [20 * MEGABYTE, 10 * MEGABYTE]);
    let bytes: Vec<u64> = report.processes.iter().map(|process| process.bytes).collect();
    assert_eq!(bytes, [20 * MEGABYTE, 10 * MEGABYTE].map(|bytes: u64| bytes.div_ceil(65_536) * 65_536));
    assert_eq!(report.requests, report.device.reads);
}

#[test]
fn equal_setups_give_equal_reports() {
    let run = || two_readers(Box::new(Bfq::new(BfqOptions::default())), [800, 100], None, [50 * MEGABYTE; 2]);
    assert_eq!(run(), run());
}

#[test]
fn the_engine_lets_a_newcomer_pass_a_heavy_reader() {
    let run = |engine| {
        two_readers(Box::new(Bfq::new(BfqOptions::default())), [100, 100], engine, [1500 * MEGABYTE, 100 * MEGABYTE])
    };
    let (equal, steered) = (run(None), run(Some(EngineConfig::default())));
    let time = |report: &Report| report.processes[1].finished_s.expect("it ended") - report.processes[1].started_s;
    assert!(!steered.weights.is_empty(), "the engine changed weights");
    assert!(time(&steered) < 0.7 * time(&equal), "newcomer: {} s against {} s", time(&steered), time(&equal));
    assert!(steered.seconds < 1.03 * equal.seconds, "the disk as a whole is as fast");
}

#[test]
fn a_guest_scheduler_stands_between_its_processes_and_the_host() {
    let device = profile("sata7200-80g").expect("a built-in profile").build(None, 1);
    let processes = (0..4)
        .map(|index| ProcessSetup {
            name: format!("process {index}"),
            tenant: index / 2,
            source: Box::new(Generator::new(
                Plan { pattern: Pattern::Random, total_bytes: Some(4096 * 200), ..Plan::default() },
                index as u64,
            )),
            starts_at: Nanos::ZERO,
            parameters: FlowParameters::default(),
            promise: None,
        })
        .collect();
    let guest = || GuestSetup {
        scheduler: Box::new(Noop::new()),
        depth: 1,
        parameters: FlowParameters::default(),
        passes_streams: false,
    };
    let tenants =
        (0..2).map(|index| TenantSetup { name: format!("vm {index}"), weight: 100, guest: Some(guest()) }).collect();
    let host = Box::new(Noop::new());
    let setup = WorldSetup { device, host, depth: 1, tenants, processes, engine: None, bin: Nanos::SECOND };
    let mut world = World::new(setup);
    assert!(world.run(Nanos::from_secs(600)));
    let report = world.report();
    assert_eq!(report.requests, 800);
    assert_eq!(report.tenants[0].bytes, report.tenants[1].bytes);
}
