//! Whole worlds, run to their end.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_blocksched::{Bfq, BfqOptions, FlowParameters, Noop, Scheduler};
use minerva_model::{EngineConfig, Level, Nanos};
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

/// A reader at random and one that scans, at this level; what each has in the first minute, in megabytes a second.
fn beside(scheduler: &str, level: Level, plays: [bool; 2]) -> [f64; 2] {
    let device = profile("sata7200-80g").expect("a built-in profile").build(None, 1);
    let half = device.capacity_bytes() / 2 / 65_536 * 65_536;
    let plans = [
        Plan { pattern: Pattern::Random, block_bytes: 8192, region_bytes: 4 << 30, ..Plan::default() },
        Plan { block_bytes: 65_536, offset_bytes: half, region_bytes: 4 << 30, ..Plan::default() },
    ];
    let until = Nanos::from_secs(60);
    let processes = plans.into_iter().enumerate().filter(|(index, _)| plays[*index]);
    let processes = processes.map(|(tenant, plan)| ProcessSetup {
        name: format!("process {tenant}"),
        tenant,
        source: Box::new(Generator::new(Plan { ends_at: Some(until), ..plan }, tenant as u64)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let host: Box<dyn Scheduler> =
        if scheduler == "bfq" { Box::new(Bfq::new(BfqOptions::default())) } else { Box::new(Noop::new()) };
    let tenants =
        (0..2).map(|index| TenantSetup { name: format!("tenant {index}"), weight: 100, guest: None }).collect();
    let config = EngineConfig::default();
    let engine = Some(EngineSetup { config, rotational: true, outlook: OutlookSource::default() });
    let setup =
        WorldSetup { device, host, depth: 1, tenants, processes: processes.collect(), engine, bin: Nanos::SECOND };
    let mut world = World::new(setup);
    if level != Level::Normal {
        world.set_level(1, level);
    }
    world.run(until);
    let report = world.report();
    [0, 1].map(|tenant| report.tenants[tenant].bytes as f64 / 60.0 / 1e6)
}

#[test]
fn a_tenant_at_idle_waits_for_others_and_has_the_disk_when_there_are_none() {
    for scheduler in ["bfq", "noop"] {
        let [undisturbed, _] = beside(scheduler, Level::Normal, [true, false]);
        let [with_normal, _] = beside(scheduler, Level::Normal, [true, true]);
        let [with_idle, idle] = beside(scheduler, Level::Idle, [true, true]);
        println!(
            "{scheduler}: random reads {undisturbed:.3} MB/s alone, {with_normal:.3} beside a scan, {with_idle:.3} beside one at idle"
        );
        // The scan has a part of the first slice, in which nobody is known yet.
        assert!(
            with_idle > 0.96 * undisturbed && with_idle > with_normal,
            "{scheduler}: {with_idle} for {undisturbed}"
        );
        assert!(idle < 1.0, "{scheduler}: {idle}");
        let [_, at_normal] = beside(scheduler, Level::Normal, [false, true]);
        let [_, at_idle] = beside(scheduler, Level::Idle, [false, true]);
        assert!(at_idle > 0.9 * at_normal, "{scheduler}: alone {at_idle} at idle for {at_normal}");
    }
}
