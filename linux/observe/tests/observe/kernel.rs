//! What the documentation of `counters` and `tree` claims, on the kernel that runs: real groups, a real loop device under BFQ.

use crate::fake_host::{seen, words};
use minerva_linux_observe::{Observer, Roots};
use minerva_model::{CgroupVersion, DeviceId, Event, IoCounters, Sample, Tenant};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PREFIX: &str = "minerva-test-observe-";
/// The kernel makes another loop device where none is free, and keeps it until the boot ends: so many are enough.
const USED_MAX: usize = 24;
const MIB: u64 = 1 << 20;

/// Polls until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A real group, removed with all below it.
struct Group {
    path: PathBuf,
    name: String,
}

impl Group {
    /// `None`, with the reason printed, where this host has no v1 hierarchy that may be written.
    fn new() -> Option<(Roots, Self)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let roots = Roots::detect().unwrap();
        if roots.version != CgroupVersion::V1 {
            println!("skipped: needs blkio mounted as cgroup v1");
            return None;
        }
        sweep(&roots.cgroup);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = roots.cgroup.join(&name);
        if let Err(error) = fs::create_dir(&path) {
            println!("skipped: needs the right to make {}: {error}", path.display());
            return None;
        }
        Some((roots, Self { path, name }))
    }

    fn make(&self, child: &str) -> PathBuf {
        let path = self.path.join(child);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Tenants of this group only: other tests run beside.
    fn mine(&self, events: &[Event]) -> Vec<Tenant> {
        seen(events).into_iter().filter(|tenant| tenant.cgroup.path.starts_with(&self.name)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_groups(&self.path);
    }
}

/// Removes what an earlier run left behind when it was killed.
fn sweep(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_left_behind(&name) {
            remove_groups(&entry.path());
        }
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        let folder = Path::new(file.trim_end_matches(" (deleted)\n")).parent();
        let name = folder.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if is_left_behind(&name) {
            let node = Path::new("/dev").join(entry.file_name());
            let _detached = Command::new("losetup").arg("--detach").arg(node).status();
            let _removed = folder.map(fs::remove_dir_all);
        }
    }
}

/// Names start with the prefix and the pid of the run that made them.
fn is_left_behind(name: &str) -> bool {
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}

fn remove_groups(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _gone_already = fs::remove_dir(path);
}

/// A loop device on a file, with BFQ in force, detached at the end.
struct LoopDisk {
    _folder: TempDir,
    node: String,
    sys: PathBuf,
    id: DeviceId,
}

impl LoopDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir().unwrap();
        let image = folder.path().join("disk.img");
        // Written in full: a read of a hole is a read all the same, but a file system may answer it on another path.
        fs::write(&image, vec![7_u8; 16 * MIB as usize]).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            println!("skipped: needs losetup and a free loop device");
            return None;
        };
        let node = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let sys = Path::new("/sys/block").join(node.trim_start_matches("/dev/"));
        let id = fs::read_to_string(sys.join("dev")).unwrap().trim().parse().unwrap();
        let disk = Self { _folder: folder, node, sys, id };
        if fs::write(disk.sys.join("queue/scheduler"), "bfq").is_err() {
            println!("skipped: needs BFQ in the kernel");
            return None;
        }
        Some(disk)
    }

    /// One that was never throttled, and `false`, if there is one. What once was counts there until the boot ends, also when a test is run again.
    fn fresh() -> Option<(Self, bool)> {
        let mut used = Vec::new();
        loop {
            let disk = Self::new()?;
            let counts = fs::read_to_string("/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes");
            let was_armed = counts.is_ok_and(|text| text.contains(&format!("{} ", disk.id)));
            if !was_armed || used.len() >= USED_MAX {
                return Some((disk, was_armed));
            }
            // Held until another is found.
            used.push(disk);
        }
    }

    /// Reads `bytes` from inside a group, past the page cache, in requests of 64 KiB.
    fn read(&self, group: &Path, bytes: u64) {
        let script = format!(
            "echo $$ > {}/cgroup.procs && exec dd if={} of=/dev/null bs=64k count={} iflag=direct",
            group.display(),
            self.node,
            bytes >> 16
        );
        let status = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _elevator = fs::write(self.sys.join("queue/scheduler"), "none");
        let _detached = Command::new("losetup").args(["--detach", &self.node]).status();
    }
}

fn counters(sample: &Sample, tenant: &Tenant, disk: &LoopDisk) -> Option<IoCounters> {
    sample.io.iter().find(|row| row.tenant == tenant.id && row.device == disk.id).map(|row| row.counters)
}

fn reads(bytes: u64) -> IoCounters {
    IoCounters { read_bytes: bytes, read_ops: bytes >> 16, ..IoCounters::default() }
}

#[test]
fn real_counters_rise_by_what_was_read_through_every_source() {
    let Some((roots, group)) = Group::new() else { return };
    let Some((disk, was_armed)) = LoopDisk::fresh() else { return };
    let child = group.make("tenant");
    let mut observer = Observer::new(roots, &[]).unwrap();
    let events = observer.discover();
    let tenant = group.mine(&events).remove(0);
    let device = events.iter().find_map(|event| match event {
        Event::DeviceSeen(device) if device.id == disk.id => Some(device.clone()),
        _ => None,
    });
    let facts = device.unwrap().facts;
    assert_eq!((facts.elevator.as_deref(), facts.size_bytes), (Some("bfq"), 16 * MIB));
    assert!(facts.bfq_low_latency.is_some() && facts.throttle_available);
    assert_eq!(counters(&observer.sample(), &tenant, &disk), None);
    disk.read(&child, 4 * MIB);
    assert_eq!(counters(&observer.sample(), &tenant, &disk), Some(reads(4 * MIB)));

    // Arms the throttle's counters. The rule is far above what any disk does, and it is taken back at once.
    let rule = child.join("blkio.throttle.read_bps_device");
    fs::write(&rule, format!("{} 1000000000000", disk.id)).unwrap();
    fs::write(&rule, format!("{} 0", disk.id)).unwrap();
    let sample = observer.sample();
    if was_armed {
        println!("skipped: needs a loop device that was never throttled, to see its counters change their source");
    } else {
        // The throttle has counted nothing yet: what was told stands still, or the row waits for its first request.
        assert!(counters(&sample, &tenant, &disk).is_none_or(|counters| counters == reads(4 * MIB)));
    }
    disk.read(&child, MIB);
    observer.sample();
    let before = counters(&observer.sample(), &tenant, &disk).unwrap();
    disk.read(&child, 2 * MIB);
    let after = counters(&observer.sample(), &tenant, &disk).unwrap();
    assert_eq!(after.read_bytes - before.read_bytes, 2 * MIB);
    assert_eq!(after.read_ops - before.read_ops, 32);

    // They tick on under another elevator, where BFQ's are gone.
    fs::write(disk.sys.join("queue/scheduler"), "none").unwrap();
    assert!(words(&observer.discover()).contains(&format!("+{}", disk.node.trim_start_matches("/dev/"))));
    disk.read(&child, MIB);
    let last = counters(&observer.sample(), &tenant, &disk).unwrap();
    assert_eq!(last.read_bytes - after.read_bytes, MIB);
}

#[test]
fn what_is_inside_a_unit_counts_as_the_unit() {
    let Some((roots, group)) = Group::new() else { return };
    let Some(disk) = LoopDisk::new() else { return };
    let inner = group.make("vm.scope/vcpu0");
    let mut observer = Observer::new(roots, &[]).unwrap();
    let tenants = group.mine(&observer.discover());
    assert_eq!(tenants.len(), 1, "{tenants:?}");
    observer.sample();
    disk.read(&inner, MIB);
    assert_eq!(counters(&observer.sample(), &tenants[0], &disk), Some(reads(MIB)));
}

#[test]
fn on_v1_the_kernel_forgets_what_removed_groups_did_and_so_nothing_is_told_of_them() {
    let Some((roots, group)) = Group::new() else { return };
    let Some(disk) = LoopDisk::new() else { return };
    let user = group.make("user");
    group.make("user/stays");
    if std::os::unix::fs::chown(&user, Some(1_000), None).is_err() {
        return println!("skipped: needs the right to give a directory away");
    }
    let mut observer = Observer::new(roots, &[]).unwrap();
    observer.discover();
    let brief = group.make("user/brief");
    disk.read(&brief, MIB);
    let has_counted = || {
        let text = fs::read_to_string(user.join("blkio.bfq.io_service_bytes_recursive")).unwrap();
        text.contains(&format!("{} Read {MIB}", disk.id))
    };
    assert!(has_counted());
    // Its process may be on its way out still.
    until("the group is gone", || fs::remove_dir(&brief).is_ok());
    until("the kernel has forgotten it", || !has_counted());
    assert_eq!(observer.sample().subtrees, []);
}

#[test]
fn a_real_group_that_vanishes_between_the_looks_is_no_news_and_its_name_comes_back_as_another() {
    let Some((roots, group)) = Group::new() else { return };
    let child = group.make("a");
    group.make("b");
    let mut observer = Observer::new(roots, &[]).unwrap();
    let first = group.mine(&observer.discover()).remove(0);
    fs::remove_dir(&child).unwrap();
    let sample = observer.sample();
    assert!(sample.skipped.iter().all(|skipped| !skipped.why.contains(&group.name)), "{:?}", sample.skipped);
    group.make("a");
    let events = observer.discover();
    assert!(events.contains(&Event::TenantGone(first.id)));
    let second = group.mine(&events).remove(0);
    assert_eq!(second.cgroup.path, first.cgroup.path);
    assert_ne!(second.cgroup.inode, first.cgroup.inode);
    assert_ne!(second.id, first.id);
}

#[test]
fn of_many_real_groups_right_below_one_each_is_seen_to_come_to_go_and_to_be_another_of_its_name() {
    let Some((roots, group)) = Group::new() else { return };
    let children: Vec<PathBuf> = (0..100).map(|index| group.make(&format!("t{index}"))).collect();
    let mut observer = Observer::new(roots, &[]).unwrap();
    let first = group.mine(&observer.discover());
    assert_eq!(first.len(), 100);
    let named = |name: &str| first.iter().find(|tenant| tenant.cgroup.path.ends_with(name)).unwrap();
    for (index, child) in children.iter().enumerate().take(20) {
        let events = observer.discover();
        assert!(group.mine(&events).is_empty(), "nothing changed");
        fs::remove_dir(child).unwrap();
        // The link count of the group above is as before: another one of the name, one of another name, or none.
        let made = [Some(format!("t{index}")), Some(format!("u{index}")), None][index % 3].clone();
        made.iter().for_each(|name| drop(group.make(name)));
        let events = observer.discover();
        assert!(events.contains(&Event::TenantGone(named(&format!("/t{index}")).id)), "{index}: {events:?}");
        let came = group.mine(&events);
        assert_eq!(came.len(), made.iter().len(), "{index}: {events:?}");
        let is_named = |tenant: &Tenant| made.iter().any(|name| tenant.cgroup.path.ends_with(&format!("/{name}")));
        assert!(came.iter().all(is_named), "{index}: {came:?}");
    }
}

#[test]
fn of_many_real_groups_one_that_gets_a_group_below_is_seen_at_its_first_transfer_and_else_within_sixteen_looks() {
    let Some((roots, group)) = Group::new() else { return };
    let Some(disk) = LoopDisk::new() else { return };
    (0..100).for_each(|index| drop(group.make(&format!("t{index}"))));
    let mut observer = Observer::new(roots, &[]).unwrap();
    let looks = |observer: &mut Observer, path: &str, most: usize| {
        let mut came = std::iter::repeat_with(|| {
            let came = group.mine(&observer.discover());
            observer.sample();
            came
        });
        came.by_ref().take(most).position(|came| came.iter().any(|tenant| tenant.cgroup.path.ends_with(path)))
    };
    assert_eq!(looks(&mut observer, "/t99", 1), Some(0));
    for index in 0..20 {
        group.make(&format!("t{index}/resting"));
        assert!(looks(&mut observer, &format!("/t{index}/resting"), 16).is_some(), "t{index}");
        let busy = group.make(&format!("t{}/busy", index + 50));
        disk.read(&busy, 64 << 10);
        let seen = looks(&mut observer, &format!("/t{}/busy", index + 50), 2);
        assert!(seen.is_some(), "t{} has transferred something", index + 50);
    }
}

#[test]
fn a_real_process_is_seen_to_use_things() {
    let Some((roots, group)) = Group::new() else { return };
    let child = group.make("sleeper");
    let script = format!("echo $$ > {}/cgroup.procs && echo in && exec sleep 1000", child.display());
    let mut process = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.take().unwrap()), &mut line).unwrap();
    let mut observer = Observer::new(roots, &[]).unwrap();
    observer.want_usage(true);
    let tenant = group.mine(&observer.discover()).remove(0);
    // Everyone has a turn within as many slices as there are tenants; while `sh` becomes `sleep` it has no memory at all.
    let mut mine = (0..1_000).filter_map(|_| observer.sample().usage.into_iter().find(|row| row.tenant == tenant.id));
    let usage = mine.find(|row| row.memory_bytes > 0);
    process.kill().unwrap();
    process.wait().unwrap();
    let usage = usage.unwrap();
    assert_eq!(usage.processes, 1);
    assert!(usage.open_files >= 3, "{usage:?}");
    assert_eq!(usage.network_bytes, None);
}

#[test]
fn twelve_hundred_real_groups_cost_one_file_each_and_at_rest_none() {
    let Some((roots, group)) = Group::new() else { return };
    // Without a disk that is counted no counters are read at all.
    let Some(disk) = LoopDisk::new() else { return };
    let busy = group.make("t0");
    for index in 1..1_200 {
        group.make(&format!("t{index}"));
    }
    let mut observer = Observer::new(roots, &[]).unwrap();
    let events = observer.discover();
    let tenants = group.mine(&events);
    assert_eq!(tenants.len(), 1_200);
    let cost = |observer: &mut Observer| {
        let before = observer.read_counts();
        observer.discover();
        let sample = observer.sample();
        let now = observer.read_counts();
        (now.files - before.files, now.opened - before.opened, sample)
    };
    cost(&mut observer);
    let (_, opened, _) = cost(&mut observer);
    // Files of disks, of a few groups' processes, and of tenants of other tests; with the usual limit of 1,024 a quarter are kept.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(opened < 1_000 + 2_000_u64.saturating_sub(limit / 4), "{opened} files opened again");
    // Nobody moved: their parent says so for all of them.
    // A disk of another test that comes or goes has all of them read anew.
    let files = (0..20).map(|_| cost(&mut observer).0).min().unwrap();
    assert!(files < 1_000, "{files} files while all rest");
    // One begins, and is seen in that very slice, at the first byte.
    disk.read(&busy, 64 << 10);
    let tenant = tenants.iter().find(|tenant| tenant.cgroup.path.ends_with("/t0")).unwrap();
    let (files, _, sample) = cost(&mut observer);
    assert!(files >= 1_200, "{files} files: somebody moved, so that all are looked at");
    assert_eq!(counters(&sample, tenant, &disk), Some(reads(64 << 10)));
    // And stays told while it rests.
    let (_, _, sample) = cost(&mut observer);
    assert_eq!(counters(&sample, tenant, &disk), Some(reads(64 << 10)));
    // It goes on: it accounts for what its parent counts, so that the others are known to rest.
    let files = (0..20).map(|_| {
        disk.read(&busy, 64 << 10);
        cost(&mut observer).0
    });
    let files = files.min().unwrap();
    assert!(files < 1_000, "{files} files while one of 1,200 moves");
    let (_, _, sample) = cost(&mut observer);
    assert_eq!(counters(&sample, tenant, &disk), Some(reads(21 * (64 << 10))));
}
