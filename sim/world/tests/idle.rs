//! What a tenant at level `idle` costs others, in throughput and in the longest of their waits.

#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_blocksched::{Bfq, BfqOptions, FlowParameters, Noop, Scheduler};
use minerva_model::{EngineConfig, Level, Nanos};
use minerva_sim_device::profile;
use minerva_sim_workload::{Generator, Pattern, Plan};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, ReportedProcess, TenantSetup, World, WorldSetup};

/// Long enough for the first slices, in which the daemon has not seen who came, to be less than a hundredth of the requests.
const SPAN: Nanos = Nanos::from_secs(300);
/// Of them as many may pass before what is asked of level `idle` holds.
const FIRST_SLICES: f64 = 2.0;

/// A tenant with one at `idle` beside it, or without, on the 7200 rpm disk.
fn play(scheduler: &str, work: Plan, idle: Option<Plan>) -> Vec<ReportedProcess> {
    let device = profile("sata7200-80g").expect("a built-in profile").build(None, 1);
    let half = (device.capacity_bytes() / 2) >> 20 << 20;
    let idle = idle.map(|plan| Plan { offset_bytes: half, ..plan });
    let processes = std::iter::once(work).chain(idle).enumerate().map(|(tenant, plan)| ProcessSetup {
        name: format!("process {tenant}"),
        tenant,
        source: Box::new(Generator::new(Plan { ends_at: Some(SPAN), region_bytes: 4 << 30, ..plan }, tenant as u64)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let host: Box<dyn Scheduler> = match scheduler {
        "bfq" => Box::new(Bfq::new(BfqOptions::default())),
        _ => Box::new(Noop::new()),
    };
    let tenant = |index| TenantSetup { name: format!("tenant {index}"), weight: 100, guest: None };
    let config = EngineConfig::default();
    let mut world = World::new(WorldSetup {
        device,
        host,
        depth: 1,
        tenants: (0..2).map(tenant).collect(),
        processes: processes.collect(),
        engine: Some(EngineSetup { config, rotational: true, outlook: OutlookSource::default() }),
        bin: Nanos::SECOND,
    });
    world.set_level(1, Level::Idle);
    world.run(SPAN);
    world.report().processes
}

#[test]
fn one_at_idle_delays_a_request_in_four_seconds_and_no_others() {
    let scan = Plan { block_bytes: 256 << 10, ..Plan::default() };
    let random = Plan { pattern: Pattern::Random, block_bytes: 8192, ..Plan::default() };
    for scheduler in ["bfq", "noop"] {
        for (what, work, idle) in [
            ("a scan beside a scan", scan, scan),
            ("a scan beside random reads", scan, random),
            ("random reads beside a scan", random, scan),
            ("random reads beside random reads", random, random),
        ] {
            let (without, with) = (play(scheduler, work, None), play(scheduler, work, Some(idle)));
            let (alone, beside) = (&without[0], &with[0]);
            let seconds = SPAN.as_secs_f64();
            let lost = 1.0 - beside.requests as f64 / (alone.requests as f64 * (1.0 - FIRST_SLICES / seconds));
            let later = beside.latency_p99_ms / alone.latency_p99_ms - 1.0;
            let of_idle = with[1].requests as f64 / seconds;
            println!(
                "{scheduler}, {what}: {:.1} % lost, p99 {:+.1} %, {of_idle:.2} a second at idle",
                lost * 100.0,
                later * 100.0
            );
            assert!(lost < 0.03 && later < 0.1, "{scheduler}, {what}: {lost:.3} lost, p99 {later:+.3}");
        }
    }
}
