//! A worker that looks for requests before it sleeps: none is forgotten in between, and who is idle costs no processor.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod common;

use common::{Bench, disk, physical};
use minerva_blk::{PhysicalDisk, TransferKind};
use minerva_blocksched::{BuildOptions, SchedulerName};
use minerva_model::Nanos;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn serve(name: &str, poll_max: Nanos, transfer: TransferKind, disks: usize) -> Bench {
    let folder = Bench::folder();
    let build = BuildOptions::for_disk(false, 32);
    let physical = PhysicalDisk { poll_max, ..physical(name, SchedulerName::Noop, build, transfer) };
    let disks = (0..disks).map(|number| disk(&folder.path().join(format!("disk{number}")))).collect();
    Bench::start_on(folder, physical, disks)
}

/// A pause of 0 to 200 microseconds, drawn from what was drawn before.
fn pause(seed: &mut u64) {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let until = Instant::now() + Duration::from_nanos((*seed >> 33) % 200_000);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Requests that come when the worker is about to sleep, asleep or awake: a kick that the guest thought needless would leave one for ever.
#[test]
fn no_request_is_forgotten_between_looking_and_sleeping() {
    for (case, (poll_us, has_event_index, transfer)) in [
        (0, true, TransferKind::Null),
        (32, true, TransferKind::Null),
        (32, false, TransferKind::Null),
        (1000, true, TransferKind::Null),
        (1000, false, TransferKind::Threads),
        (32, true, TransferKind::Uring),
    ]
    .into_iter()
    .enumerate()
    {
        let bench = serve(&format!("poll{case}"), Nanos::from_micros(poll_us), transfer, 2);
        let options = ClientOptions { has_event_index, data_bytes: 4096, ..ClientOptions::default() };
        let mut clients: Vec<Client> = (0..2).map(|number| Client::connect(&bench.socket(number), options)).collect();
        let mut seed = 7 + case as u64;
        for number in 0..2000u64 {
            let ring = &mut clients[(seed >> 60) as usize % 2].rings[0];
            (0..=seed >> 40 & 3).for_each(|_| _ = ring.submit(&Request::new(kind::IN, number % 64 * 8, 4096)));
            ring.kick();
            while ring.under_way() > 0 {
                let answer =
                    ring.wait(PATIENCE).unwrap_or_else(|| panic!("case {case}: request {number} is forgotten"));
                assert_eq!(answer.status, 0);
            }
            pause(&mut seed);
        }
    }
}

/// What a thread of this process used of processors so far, in nanoseconds.
fn processor_ns(thread: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let named = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == thread)
    };
    let task = tasks.into_iter().find(named).expect("the worker's thread");
    let text = std::fs::read_to_string(task.join("schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn who_has_nothing_to_do_sleeps_and_uses_no_processor() {
    let bench = serve("pollidle", Nanos::from_millis(1), TransferKind::Uring, 1);
    let mut client = Client::connect(&bench.socket(0), ClientOptions::default());
    for _ in 0..200 {
        assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0);
    }
    let begun = Instant::now();
    loop {
        let before = processor_ns(&bench.worker);
        std::thread::sleep(Duration::from_millis(200));
        if processor_ns(&bench.worker) == before {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the worker does not sleep");
    }
    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, 0, 4096)).status, 0, "and wakes up");
}

/// Threads of the disk, which the kernel lists by their names, run where they are told, and nobody else is moved.
#[test]
fn threads_of_a_disk_run_on_its_processors() {
    let folder = Bench::folder();
    let build = BuildOptions::for_disk(false, 32);
    let cpus = vec![0];
    let physical = PhysicalDisk { cpus, ..physical("placed", SchedulerName::Noop, build, TransferKind::Threads) };
    let image = disk(&folder.path().join("disk"));
    let allowed = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
        line.unwrap().to_owned()
    };
    let own = || allowed(std::fs::read_to_string("/proc/thread-self/status").unwrap());
    let before = own();
    let _bench = Bench::start_on(folder, physical, vec![image]);
    assert_eq!(own(), before);
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let named =
        threads.filter(|path| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "blk-placed\n"));
    let where_they_run: Vec<String> =
        named.map(|path| allowed(std::fs::read_to_string(path.join("status")).unwrap())).collect();
    assert_eq!(where_they_run, ["0"]);
}
