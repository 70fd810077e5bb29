//! The simulated arm in full, and a few short jobs of the real one: bytes and the order of shares, never wall time.

use minerva_conformance::draw::{COUNT, draw};
use minerva_conformance::host::Host;
use minerva_conformance::job::{Elevator, HDD, Job, TenantJob, jobs};
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::simulated;

/// A host like those this was measured on.
fn host() -> Host {
    Host { station_ns: 60e3, station_ns_per_byte: 0.25, delay_ns: vec![(0.5, 100e3), (0.99, 400e3), (1.0, 1e6)] }
}

#[test]
fn every_job_runs_on_the_simulator_and_runs_the_same_again() {
    for job in jobs() {
        let outcome = simulated::run(&job, &host(), 3, 2, 3).unwrap();
        assert_eq!(outcome, simulated::run(&job, &host(), 3, 2, 3).unwrap(), "{job}");
        for tenant in &outcome.whole.tenants {
            assert!(tenant.bytes_per_second > 0.0 && tenant.p99_ms > 0.0, "{job}: {outcome:?}");
        }
    }
}

/// Fixed seeds, so that every run of the tests is alike; the figure draws a seed of its own.
#[test]
fn drawn_jobs_run_on_the_simulator() {
    for job in (0..3).flat_map(|seed| draw(seed, COUNT)) {
        let outcome = simulated::run(&job, &host(), 3, 2, 1).unwrap();
        for tenant in &outcome.whole.tenants {
            assert!(tenant.bytes_per_second > 0.0 && tenant.p99_ms > 0.0, "{job}: {outcome:?}");
        }
    }
}

#[test]
fn the_kernel_serves_short_jobs_in_the_simulators_order() {
    if let Err(error) = check_machine() {
        println!("skipped: {error:#}");
        return;
    }
    minerva_lab::sweep::sweep("minerva-test-agree").unwrap();
    let reader = |weight, random, depth| TenantJob { weight, random, write: false, block_bytes: 64 << 10, depth };
    let short = [
        (Elevator::Bfq, vec![reader(800, false, 1), reader(100, false, 1)]),
        (Elevator::None, vec![reader(100, true, 4), reader(100, true, 1)]),
        (Elevator::Deadline, vec![reader(100, true, 8), reader(100, true, 1)]),
    ];
    for (index, (elevator, tenants)) in short.into_iter().enumerate() {
        let run = Run { prefix: format!("minerva-test-agree-{index}-{}", std::process::id()), seconds: 2 };
        let job = Job { profile: HDD, elevator, tenants };
        let real = run.job(&job).unwrap().whole;
        let simulated = simulated::run(&job, &host(), 30, 1, 1).unwrap().whole;
        for (outcome, arm) in [(&real, "real"), (&simulated, "simulated")] {
            assert!(outcome.tenants.iter().all(|tenant| tenant.requests > 0), "{job}, {arm}: {outcome:?}");
            assert!(outcome.share(0) > outcome.share(1), "{job}, {arm}: {outcome:?}");
        }
    }
}
