//! Caps on a disk without an elevator: what who comes to it gains, and what the whole disk loses.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_blocksched::{FlowParameters, Noop};
use minerva_model::{BackEnd, DeviceSettings, EngineConfig, Nanos};
use minerva_sim_device::profile;
use minerva_sim_workload::{Generator, Loop, Pattern, Plan};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, TenantSetup, World, WorldSetup};

/// When those come that are to be done soon.
const ARRIVAL: Nanos = Nanos::from_secs(5);
const SEEDS: std::ops::Range<u64> = 1..6;

/// When each scanner ended and how long each of the others took, in seconds.
#[derive(Debug)]
struct Ends {
    scanners: Vec<f64>,
    others: Vec<f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn scan(megabytes: u64, depth: u32) -> Plan {
    let total_bytes = Some(megabytes * 1_000_000);
    Plan { block_bytes: 256 << 10, when: Loop::Closed { depth }, total_bytes, ..Plan::default() }
}

/// Two scanners, and the others beside them.
fn play(steered: bool, scanners: [Plan; 2], others: &[Plan], seed: u64) -> Ends {
    let plans: Vec<Plan> = scanners.iter().chain(others).copied().collect();
    let processes = plans.iter().enumerate().map(|(index, plan)| {
        let region = Plan { offset_bytes: (index as u64) << 32, region_bytes: 4 << 30, ..*plan };
        ProcessSetup {
            name: format!("process {index}"),
            tenant: index,
            source: Box::new(Generator::new(region, seed << 8 | index as u64)),
            // Now at the beginning of a slice, now at its end.
            starts_at: if index < 2 { Nanos::ZERO } else { ARRIVAL + Nanos::from_millis(190 * seed) },
            parameters: FlowParameters::default(),
            promise: None,
        }
    });
    let mut config = EngineConfig::default();
    let settings = DeviceSettings { back_end: Some(BackEnd::Max), ..DeviceSettings::default() };
    config.devices.insert("sim".to_owned(), settings);
    let engine = steered.then(|| EngineSetup { config, rotational: false, outlook: OutlookSource::default() });
    let tenant = |index| TenantSetup { name: format!("tenant {index}"), weight: 100, guest: None };
    let mut world = World::new(WorldSetup {
        device: profile("slow-ssd").expect("a built-in profile").build(None, seed),
        host: Box::new(Noop::new()),
        depth: 32,
        tenants: (0..plans.len()).map(tenant).collect(),
        processes: processes.collect(),
        engine,
        bin: Nanos::SECOND,
    });
    assert!(world.run(Nanos::from_secs(600)), "all end");
    let took = world.report().processes;
    let took: Vec<f64> = took.iter().map(|process| process.finished_s.expect("it ended") - process.started_s).collect();
    Ends { scanners: took[..2].to_vec(), others: took[2..].to_vec() }
}

/// Over some seeds: how long the others take, and the scanners, as a part of what they take when nobody steers. Of bytes nothing is lost, so a
/// disk that delivers less is one on which all end later: the third is that, for the last to end.
fn steered_to_unsteered(scanners: [Plan; 2], others: &[Plan]) -> [f64; 3] {
    let ratios: Vec<[f64; 3]> = SEEDS
        .map(|seed| {
            let (without, with) = (play(false, scanners, others, seed), play(true, scanners, others, seed));
            let last = |ends: &Ends| ends.scanners.iter().copied().fold(0.0, f64::max);
            println!("seed {seed}: {without:.2?} unsteered, {with:.2?} under caps");
            let ratio = |of: fn(&Ends) -> f64| of(&with) / of(&without);
            [ratio(|ends| mean(&ends.others)), ratio(|ends| mean(&ends.scanners)), last(&with) / last(&without)]
        })
        .collect();
    [0, 1, 2].map(|index| mean(&ratios.iter().map(|ratio| ratio[index]).collect::<Vec<_>>()))
}

fn random_job() -> Plan {
    Plan { pattern: Pattern::Random, block_bytes: 8192, total_bytes: Some(150 * 8192), ..Plan::default() }
}

#[test]
fn two_short_jobs_are_done_sooner_and_the_disk_delivers_nearly_as_much() {
    let [others, scanners, last] = steered_to_unsteered([scan(200, 4); 2], &[random_job(), random_job()]);
    println!("{others:.3} {scanners:.3} {last:.3}");
    assert!(others < 0.6 && scanners < 1.05 && last < 1.05, "{others:.3} {scanners:.3} {last:.3}");
}

#[test]
fn who_wants_little_costs_the_others_little() {
    let sparing = Plan { rate_bytes_per_second: Some(20_000), total_bytes: Some(60 * 8192), ..random_job() };
    let [_, scanners, last] = steered_to_unsteered([scan(200, 4); 2], &[sparing]);
    assert!(scanners < 1.03 && last < 1.03, "{scanners:.3} {last:.3}");
}

#[test]
fn scanners_alone_lose_nothing() {
    let [_, scanners, last] = steered_to_unsteered([scan(200, 4); 2], &[]);
    assert!(scanners < 1.02 && last < 1.02, "{scanners:.3} {last:.3}");
}

/// With one request at a time each, so that nobody can use the whole disk, and ends that are far apart.
#[test]
fn scanners_of_one_request_at_a_time_lose_little() {
    let [others, scanners, last] = steered_to_unsteered([scan(190, 1), scan(750, 1)], &[scan(12, 1), scan(31, 1)]);
    println!("{others:.3} {scanners:.3} {last:.3}");
    assert!(others < 1.0 && scanners < 1.05 && last < 1.05, "{others:.3} {scanners:.3} {last:.3}");
}
