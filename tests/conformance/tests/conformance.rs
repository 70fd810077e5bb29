//! The simulated arm in full, and a few short jobs of the real one: bytes and the order of shares, never wall time.

use minerva_blocksched::SchedulerName;
use minerva_conformance::draw::{COUNT, draw};
use minerva_conformance::host::Host;
use minerva_conformance::job::{Elevator, HDD, Job, TenantJob, jobs};
use minerva_conformance::real::{Run, check_machine};
use minerva_conformance::served::ServedRun;
use minerva_conformance::simulated::{self, Time};
use std::path::{Path, PathBuf};

/// Briefly.
const TIME: Time = Time { seconds: 3, windows: 2, seed: 3 };

/// A host like those this was measured on.
fn host() -> Host {
    Host {
        station_ns: 60e3,
        station_ns_per_byte: 0.25,
        delay_ns: vec![(0.5, 100e3), (0.99, 400e3), (1.0, 1e6)],
        ..Host::default()
    }
}

#[test]
fn every_job_runs_on_the_simulator_and_runs_the_same_again() {
    for job in jobs() {
        let outcome = simulated::run(&job, &host(), TIME).unwrap();
        assert_eq!(outcome, simulated::run(&job, &host(), TIME).unwrap(), "{job}");
        for tenant in &outcome.whole.tenants {
            assert!(tenant.bytes_per_second > 0.0 && tenant.p99_ms > 0.0, "{job}: {outcome:?}");
        }
    }
}

/// Schedulers of the server that know no contract have the disk for everybody, each in its order.
#[test]
fn every_job_runs_on_the_simulator_under_every_scheduler_of_the_catalogue() {
    let job: Job = "sata7200-80g bfq: seqread 256k x1 w800 | randwrite 16k x4 w100".parse().unwrap();
    for scheduler in SchedulerName::ALL {
        let outcome = simulated::run_served(&job, *scheduler, &host(), TIME).unwrap();
        assert_eq!(outcome, simulated::run_served(&job, *scheduler, &host(), TIME).unwrap(), "{scheduler}");
        for tenant in &outcome.whole.tenants {
            assert!(tenant.bytes_per_second > 0.0 && tenant.p99_ms > 0.0, "{scheduler}: {outcome:?}");
        }
    }
}

/// Guests' images lie apart, as what the kernel's groups use does here.
#[test]
fn equal_guests_that_read_anywhere_have_as_much_of_a_disk_that_seeks_as_the_kernels_groups() {
    let job: Job = "sata7200-80g bfq: randread 16k x1 w100 | randread 16k x1 w100".parse().unwrap();
    let time = Time { seconds: 20, ..TIME };
    let kernel = simulated::run(&job, &host(), time).unwrap().whole;
    let served = simulated::run_served(&job, SchedulerName::Bfq, &host(), time).unwrap().whole;
    let [had, kernels] = [&served, &kernel].map(minerva_conformance::Outcome::bytes_per_second);
    assert!(had > 0.85 * kernels, "{had} bytes a second at the server, {kernels} under the kernel's elevator");
    assert!((0.45..0.55).contains(&served.share(0)), "{served:?}");
}

/// On a disk that seeks, with the weights that they have unless somebody set others.
#[test]
fn a_guest_with_one_request_at_once_has_its_part_beside_an_equal_one_with_eight() {
    for job in ["randread 4k x1 w100 | randwrite 4k x8 w100", "randread 16k x1 w100 | randread 16k x8 w100"] {
        let job: Job = format!("sata7200-80g bfq: {job}").parse().unwrap();
        let time = Time { seconds: 20, ..TIME };
        let served = simulated::run_served(&job, SchedulerName::Bfq, &host(), time).unwrap().whole;
        assert!(served.share(0) > 0.15, "{job}: {served:?}");
    }
}

/// Fixed seeds, so that every run of the tests is alike; the figure draws a seed of its own.
#[test]
fn drawn_jobs_run_on_the_simulator() {
    for job in (0..3).flat_map(|seed| draw(seed, COUNT)) {
        let outcome = simulated::run(&job, &host(), TIME).unwrap();
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
        let simulated = simulated::run(&job, &host(), Time { seconds: 30, windows: 1, seed: 1 }).unwrap().whole;
        for (outcome, arm) in [(&real, "real"), (&simulated, "simulated")] {
            assert!(outcome.tenants.iter().all(|tenant| tenant.requests > 0), "{job}, {arm}: {outcome:?}");
            assert!(outcome.share(0) > outcome.share(1), "{job}, {arm}: {outcome:?}");
        }
    }
}

/// The server, beside the folder of tests, where a build of everything puts it.
fn server() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent().and_then(Path::parent).map(|folder| folder.join("minerva-blk"));
    program.filter(|program| program.is_file())
}

/// What was served is counted by the server too, else the arm fails: whoever goes past it is not taken for it.
#[test]
fn a_real_server_serves_a_short_job_in_the_simulators_order() {
    if let Err(error) = check_machine() {
        println!("skipped: {error:#}");
        return;
    }
    let Some(program) = server() else {
        println!("skipped: needs minerva-blk beside the folder of tests (cargo build --bin minerva-blk)");
        return;
    };
    minerva_lab::sweep::sweep("minerva-test-served").unwrap();
    // Writes are waited for as reads are: with one at a time, who writes has what its weight says.
    let tenants = [(800, true), (100, false)];
    let tenants =
        tenants.map(|(weight, write)| TenantJob { weight, random: true, write, block_bytes: 16 << 10, depth: 1 });
    let job = Job { profile: HDD, elevator: Elevator::Bfq, tenants: tenants.to_vec() };
    let run = ServedRun { prefix: format!("minerva-test-served-{}", std::process::id()), seconds: 3, program };
    let served = run.job(&job, SchedulerName::Bfq).unwrap();
    let simulated = simulated::run_served(&job, SchedulerName::Bfq, &host(), TIME).unwrap();
    for (outcome, arm) in [(&served.arm.whole, "served"), (&simulated.whole, "simulated")] {
        assert!(outcome.tenants.iter().all(|tenant| tenant.requests > 0), "{arm}: {outcome:?}");
        assert!(outcome.share(0) > outcome.share(1), "{arm}: {outcome:?}");
    }
    // No machine makes the emulated disk faster than its model; how much a slow one delays it is not judged.
    let (had, modelled) = (served.arm.whole.bytes_per_second(), simulated.whole.bytes_per_second());
    assert!(had < modelled * 1.5, "{had} bytes a second at the server, {modelled} on the simulator");
    let [writer, reader] = [&served.disks[0].io, &served.disks[1].io];
    assert!(reader.read_ops > 0 && reader.write_ops == 0 && writer.write_ops > 0 && writer.read_ops == 0);
    assert!(writer.write_ops >= served.arm.whole.tenants[0].requests, "{writer:?}");
}
