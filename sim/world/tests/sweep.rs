//! Sweeps over threads.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_blocksched::{FlowParameters, Htbs, HtbsOptions};
use minerva_model::Nanos;
use minerva_sim_device::profile;
use minerva_sim_workload::{Generator, Pattern, Plan};
use minerva_sim_world::{ProcessSetup, Report, TenantSetup, World, WorldSetup, sweep};

fn run(seed: &u64) -> Report {
    let processes = (0..3).map(|index| ProcessSetup {
        name: format!("process {index}"),
        tenant: 0,
        source: Box::new(Generator::new(
            Plan { pattern: Pattern::Random, total_bytes: Some(4096 * 100), ..Plan::default() },
            seed + index,
        )),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let mut world = World::new(WorldSetup {
        device: profile("sas10k-300g").expect("built in").build(None, *seed),
        host: Box::new(Htbs::new(HtbsOptions::default())),
        depth: 1,
        tenants: vec![TenantSetup { name: "all".to_owned(), weight: 100, guest: None }],
        processes: processes.collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    world.run(Nanos::from_secs(100));
    world.report()
}

#[test]
fn reports_do_not_depend_on_threads() {
    let seeds: Vec<u64> = (0..12).collect();
    let alone = sweep(1, &seeds, run);
    for threads in [2, 5, 64] {
        assert_eq!(sweep(threads, &seeds, run), alone);
    }
}
