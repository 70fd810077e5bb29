//! The emulated disk on the real kernel, driven as a user drives it. Skips with a printed reason without root, FUSE or
//! loop devices.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, a failed step is a failed test; the lint exempts only the test functions themselves"
)]

use minerva_lab::disk::{BlockQueue, Disk, DiskSpec, check_machine, status};
use minerva_lab::sweep::sweep;
use minerva_lab::workload::{
    Access, Appearance, Cancel, CgroupParent, Compute, Worker, WorkerProgram, WorkloadSpec, blkio_version, perform,
};
use minerva_model::{CgroupVersion, Nanos};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const LAB: &str = env!("CARGO_BIN_EXE_minerva-lab");
const SSD: &str = "sata-ssd";

/// Whether the disk cannot be had here; says why. What killed tests left is swept first.
fn skipped() -> bool {
    if let Err(error) = check_machine() {
        println!("skipped: {error}");
        return true;
    }
    sweep("minerva-test-").unwrap();
    false
}

fn name(label: &str) -> String {
    format!("minerva-test-{label}-{}", std::process::id())
}

fn small(label: &str, profile: &str) -> DiskSpec {
    DiskSpec { size_bytes: Some(64 << 20), ..DiskSpec::new(name(label), profile) }
}

fn job(device: &Path, access: Access, bytes: u64) -> WorkloadSpec {
    WorkloadSpec {
        tenant: "t".to_owned(),
        path: device.to_owned(),
        access,
        bytes: Some(bytes),
        block_bytes: 64 << 10,
        region_start: 0,
        region_bytes: 32 << 20,
        depth: 1,
        compute: Compute::Nothing,
        think: Nanos::ZERO,
        rests: None,
        appearance: Appearance::default(),
        part: None,
        seed: 3,
    }
}

/// Polls until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lab(arguments: &[&str]) -> Output {
    Command::new(LAB).args(arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_disk_serves_every_request_at_the_models_pace_and_goes_without_a_trace() {
    if skipped() {
        return;
    }
    let spec = small("serve", "sata7200-80g");
    let disk = Disk::create(&spec).unwrap();
    let (device, kernel_name) = (disk.device().to_owned(), disk.info().kernel_name.clone());
    let queue = BlockQueue::new(&kernel_name);
    assert_eq!(queue.elevator().unwrap(), "bfq");
    assert_eq!(queue.read("rotational").unwrap(), "1");
    assert_eq!(queue.read("iosched/low_latency").unwrap(), "0");

    let before = disk.statistics().model;
    perform(&job(&device, Access::RandomRead, 1 << 20), &Cancel::default()).unwrap();
    perform(&job(&device, Access::SequentialWrite, 1 << 20), &Cancel::default()).unwrap();
    let statistics = disk.statistics();
    assert_eq!(statistics.model.read_bytes - before.read_bytes, 1 << 20);
    assert_eq!(statistics.model.write_bytes - before.write_bytes, 1 << 20);
    assert_eq!(statistics.model.reads - before.reads, 16, "one request of the worker is one request of the disk");
    assert!(statistics.model.seeks > before.seeks, "random reads move the arm");
    assert_eq!(statistics.requests_pending, 0);
    assert_eq!(status(&spec.name).unwrap().statistics.model, statistics.model);

    drop(disk);
    assert!(status(&spec.name).is_err());
    assert!(!Path::new("/sys/block").join(&kernel_name).join("loop/backing_file").exists());
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&spec.name));
}

/// Guests that write have a part of the disk each, which one elevator orders.
#[test]
fn partitions_are_parts_of_the_disk_and_go_with_it() {
    if skipped() {
        return;
    }
    let disk = Disk::create(&DiskSpec { has_partitions: true, ..small("partition", SSD) }).unwrap();
    let parts = [1, 2].map(|number: u32| disk.partition(number, u64::from(number) << 24, 16 << 20).unwrap());
    let before = disk.statistics().model;
    for (part, depth) in parts.iter().zip([1, 4]) {
        let job = WorkloadSpec { region_bytes: 16 << 20, depth, ..job(part, Access::RandomWrite, 1 << 20) };
        perform(&job, &Cancel::default()).unwrap();
    }
    assert_eq!(disk.statistics().model.write_bytes - before.write_bytes, 2 << 20);
    let beyond = WorkloadSpec { region_start: 16 << 20, ..job(&parts[0], Access::RandomWrite, 1 << 20) };
    assert!(perform(&beyond, &Cancel::default()).is_err(), "the other's part is out of reach");
    drop(disk);
    assert!(parts.iter().all(|part| !part.exists()));
}

#[test]
fn a_backing_file_keeps_the_contents() {
    if skipped() {
        return;
    }
    let backing = std::env::temp_dir().join(name("backing"));
    let contents: Vec<u8> = (0..64 << 20).map(|i: u32| (i / 4096) as u8).collect();
    fs::write(&backing, &contents).unwrap();
    let disk = Disk::create(&DiskSpec { backing: Some(backing.clone()), ..small("backing", SSD) }).unwrap();
    let read = fs::read(disk.device()).unwrap();
    drop(disk);
    fs::remove_file(&backing).unwrap();
    assert!(read == contents);
}

#[test]
fn a_name_is_taken_once_and_bad_wishes_are_refused_in_words() {
    if skipped() {
        return;
    }
    let spec = small("taken", SSD);
    let _disk = Disk::create(&spec).unwrap();
    let refusal = |spec: DiskSpec| Disk::create(&spec).unwrap_err().to_string();
    assert!(refusal(spec.clone()).contains("exists already"));
    assert!(refusal(DiskSpec { profile: "drum".into(), ..small("drum", SSD) }).contains("sata7200-80g"));
    assert!(refusal(DiskSpec { name: "../x".into(), ..spec.clone() }).contains("cannot name a disk"));
    assert!(refusal(DiskSpec { size_bytes: Some(1000), ..small("size", SSD) }).contains("4096"));
    assert!(refusal(DiskSpec { queue_depth: Some(0), ..small("depth", SSD) }).contains("queue_depth"));
    assert!(refusal(DiskSpec { elevator: "fast".into(), ..small("elevator", SSD) }).contains("mq-deadline"));
    // A refused disk leaves nothing, so its name can be had at once.
    drop(Disk::create(&small("elevator", SSD)).unwrap());
}

#[test]
fn create_list_stats_and_destroy_from_the_command_line() {
    if skipped() {
        return;
    }
    let name = name("cli");
    let created = lab(&["disk", "create", "--name", &name, "--profile", SSD, "--size", "64MiB"]);
    assert!(created.status.success(), "{}", errors(&created));
    let device = String::from_utf8_lossy(&created.stdout).trim().to_owned();
    assert!(device.starts_with("/dev/loop"), "{device}");
    let again = lab(&["disk", "create", "--name", &name, "--profile", SSD]);
    assert!(!again.status.success());
    assert!(errors(&again).contains("exists already"), "{}", errors(&again));
    let listed = lab(&["disk", "list", "--json"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&name));
    perform(&job(device.as_ref(), Access::SequentialRead, 1 << 20), &Cancel::default()).unwrap();
    let stats = lab(&["disk", "stats", &name, "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert!(stats["statistics"]["model"]["read_bytes"].as_u64().unwrap() >= 1 << 20);
    assert!(lab(&["disk", "destroy", &name]).status.success());
    let gone = lab(&["disk", "stats", &name]);
    assert!(errors(&gone).contains("there is no emulated disk"), "{}", errors(&gone));
}

#[test]
fn what_a_killed_owner_leaves_is_swept() {
    if skipped() {
        return;
    }
    let name = name("killed");
    let created = lab(&["disk", "create", "--name", &name, "--profile", SSD, "--size", "64MiB", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    let owner = info["owner_pid"].to_string();
    // A request under way must not keep the device.
    let busy = job(info["device"].as_str().unwrap().as_ref(), Access::RandomRead, 1 << 40);
    let busy = std::thread::spawn(move || perform(&busy, &Cancel::default()).is_err());
    until("requests are under way", || status(&name).unwrap().statistics.replies >= 10);
    assert!(Command::new("kill").args(["-9", &owner]).status().unwrap().success());
    assert!(busy.join().unwrap(), "the reader is told that its disk is gone");
    // The owner may still be on its way out, and another test may have swept.
    let lock = Path::new("/run/minerva-lab").join(format!("{name}.lock"));
    until("the disk is swept", || !sweep(&name).unwrap().disks.is_empty() || !lock.exists());
    let loops = fs::read_dir("/sys/block").unwrap().flatten();
    let backing = loops.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
    assert!(backing.into_iter().all(|file| !file.contains(&name)));
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&name));
}

#[test]
fn what_a_killed_owner_leaves_is_swept_also_with_a_file_system_mounted_on_it() {
    if skipped() {
        return;
    }
    let name = name("killed-files");
    let at = |name: String| Path::new("/run/minerva-lab").join(name);
    let (contents, files) = (at(format!("{name}.contents")), at(format!("files-{name}")));
    let backing = contents.to_str().unwrap();
    let create =
        ["disk", "create", "--name", &name, "--profile", SSD, "--size", "64MiB", "--json", "--backing", backing];
    let created = lab(&create);
    let info: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    let device = info["device"].as_str().unwrap();
    fs::create_dir_all(&files).unwrap();
    let done = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    done(Command::new("mkfs.ext4").args(["-q", "-F", "-E", "nodiscard", device]));
    done(Command::new("mount").args(["-t", "ext4", device]).arg(&files));
    fs::write(files.join("unsynced"), [1; 4096]).unwrap();
    let steering = at(format!("steering-{name}"));
    fs::create_dir_all(steering.join("state")).unwrap();
    assert!(Command::new("kill").args(["-9", &info["owner_pid"].to_string()]).status().unwrap().success());
    // The owner may still be on its way out.
    until("the disk is swept", || {
        sweep(&name).unwrap();
        !at(format!("{name}.lock")).exists()
    });
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&name));
    let loops = fs::read_dir("/sys/block").unwrap().flatten();
    let backing = loops.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
    assert!(backing.into_iter().all(|file| !file.contains(&name)));
    assert!([at(name), contents, files, steering].iter().all(|path| !path.exists()));
}

#[test]
fn workers_in_their_cgroups_account_for_every_byte() {
    if skipped() {
        return;
    }
    if blkio_version() == CgroupVersion::Absent {
        println!("skipped: needs a blkio or io cgroup controller");
        return;
    }
    let disk = Disk::create(&small("workers", SSD)).unwrap();
    let parent = CgroupParent::create("minerva-test-workers").unwrap();
    let group = parent.tenant("one").unwrap();
    let program = WorkerProgram(LAB.into());
    let before = disk.statistics().model.read_bytes;
    let spec = WorkloadSpec { compute: Compute::Checksum, ..job(disk.device(), Access::SequentialRead, 8 << 20) };
    let mut worker = Worker::spawn(&program, &spec, Some(&group)).unwrap();
    let members = fs::read_to_string(group.processes_file()).unwrap();
    assert_eq!(members.trim(), worker.pid().to_string());
    worker.start().unwrap();
    let result = worker.wait().unwrap();
    assert_eq!(result.finished.bytes, 8 << 20);
    assert_eq!(result.finished.latency.count(), 128);
    assert_eq!(result.progress.last().unwrap().bytes, 8 << 20);
    assert!(result.progress.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes && pair[0].at <= pair[1].at));
    assert_eq!(disk.statistics().model.read_bytes - before, 8 << 20);
    // SHA-256 of 8 MiB of zeros.
    let zeros = "2daeb1f36095b44b318410b3f4e8b5d989dcc7bb023d1426c492dab0a3053e74";
    assert_eq!(result.finished.checksum.as_deref(), Some(zeros));

    let endless = WorkloadSpec { bytes: None, ..job(disk.device(), Access::RandomRead, 0) };
    let mut worker = Worker::spawn(&program, &endless, Some(&group)).unwrap();
    worker.start().unwrap();
    until("it has read something", || worker.progress().is_some_and(|progress| progress.bytes > 0));
    worker.stop();
    let stopped = worker.wait().unwrap();
    assert_eq!(stopped.finished.bytes, stopped.finished.latency.count() * (64 << 10));
}

#[test]
fn a_worker_that_cannot_work_says_why() {
    if skipped() {
        return;
    }
    let spec = job("/dev/minerva-test-absent".as_ref(), Access::SequentialRead, 4096);
    let message = Worker::spawn(&WorkerProgram(LAB.into()), &spec, None).unwrap_err().to_string();
    assert!(message.contains("worker `t` failed"), "{message}");
    assert!(message.contains("/dev/minerva-test-absent"), "{message}");
}
