//! A v1 host.

use crate::fake_host::{FakeHost, rows, seen, words};
use minerva_model::{CgroupVersion, ForecastMode, JobSettings, Nanos, TenantKind, TenantRule};
use std::fs;

pub(crate) const BFQ: &str = "none mq-deadline [bfq]\n";
const DEADLINE: &str = "none [mq-deadline] bfq\n";

#[test]
fn bfq_counters_serve_until_the_throttle_is_armed_and_the_switch_is_no_traffic() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    host.blkio("a", "bfq", "_recursive", "8:0", [1_000, 200], [10, 2]);
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+sda", "+a"]);
    assert_eq!(rows(&observer.sample()), ["t1 8:0 1000+200 10+2"]);

    // Armed: from now on the throttle counts, from a zero of its own.
    host.write_group("", "blkio.throttle.io_service_bytes", "8:0 Read 0\n8:0 Write 0\n8:0 Total 0\nTotal 0\n");
    host.blkio("a", "throttle", "_recursive", "8:0", [50_000, 0], [5, 0]);
    let sample = observer.sample();
    assert_eq!(rows(&sample), ["t1 8:0 1000+200 10+2"]);
    assert_eq!(sample.skipped.len(), 1);
    assert!(sample.skipped[0].why.starts_with("of 8:0: counted from another zero"), "{:?}", sample.skipped);

    host.blkio("a", "throttle", "_recursive", "8:0", [50_100, 7], [6, 1]);
    let sample = observer.sample();
    assert_eq!(rows(&sample), ["t1 8:0 1100+207 11+3"]);
    assert_eq!(sample.skipped, []);
}

#[test]
fn a_disk_without_a_counting_source_has_no_rows() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", DEADLINE, &[]);
    host.group("a", "");
    host.blkio("a", "bfq", "_recursive", "8:0", [1_000, 200], [10, 2]);
    let mut observer = host.observer(&[]);
    observer.discover();
    assert_eq!(rows(&observer.sample()), Vec::<String>::new());
}

#[test]
fn a_counter_that_begins_again_is_told_as_it_is() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    host.blkio("a", "bfq", "_recursive", "8:0", [1_000, 0], [10, 0]);
    let mut observer = host.observer(&[]);
    observer.discover();
    observer.sample();
    host.blkio("a", "bfq", "_recursive", "8:0", [30, 0], [1, 0]);
    assert_eq!(rows(&observer.sample()), ["t1 8:0 30+0 1+0"]);
}

#[test]
fn bytes_without_operations_wait_for_the_next_slice() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    host.blkio("a", "bfq", "_recursive", "8:0", [1_000, 0], [10, 0]);
    host.write_group("a", "blkio.bfq.io_serviced_recursive", "8:0 Read 1");
    let mut observer = host.observer(&[]);
    observer.discover();
    let sample = observer.sample();
    assert_eq!(rows(&sample), Vec::<String>::new());
    assert_eq!(sample.skipped[0].place, "blkio.bfq.io_serviced_recursive");
}

#[test]
fn an_inner_group_is_a_tenant_only_with_processes_of_its_own_and_counts_only_them() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    host.group("a/b", "");
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+sda", "+a/b"]);

    host.write_group("a", "cgroup.procs", "77\n");
    assert_eq!(words(&observer.discover()), ["+a"]);
    host.blkio("a", "bfq", "", "8:0", [10, 0], [1, 0]);
    host.blkio("a", "bfq", "_recursive", "8:0", [110, 0], [11, 0]);
    host.blkio("a/b", "bfq", "_recursive", "8:0", [100, 0], [10, 0]);
    assert_eq!(rows(&observer.sample()), ["t1 8:0 100+0 10+0", "t2 8:0 10+0 1+0"]);

    // The child goes: its parent becomes a leaf that stands for everything below, without a jump.
    fs::remove_dir_all(host.group_path("a/b")).unwrap();
    assert_eq!(words(&observer.discover()), ["-t1"]);
    assert_eq!(rows(&observer.sample()), ["t2 8:0 10+0 1+0"]);
    host.blkio("a", "bfq", "_recursive", "8:0", [115, 0], [12, 0]);
    assert_eq!(rows(&observer.sample()), ["t2 8:0 15+0 2+0"]);
}

#[test]
fn a_recycled_name_is_a_new_tenant() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("a", "");
    let mut observer = host.observer(&[]);
    let first = seen(&observer.discover()).remove(0);
    // Moved away and not removed, for an ordinary file system may give a freed inode number out again at once.
    fs::rename(host.group_path("a"), host.path("elsewhere")).unwrap();
    host.group("a", "");
    let events = observer.discover();
    assert_eq!(words(&events), ["-t1", "+a"]);
    let second = seen(&events).remove(0);
    assert_eq!(second.cgroup.path, first.cgroup.path);
    assert_ne!(second.cgroup.inode, first.cgroup.inode);
    assert_ne!(second.id, first.id);
}

#[test]
fn a_name_recycled_between_discovery_and_reading_is_not_read_as_the_old_tenant() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    let mut observer = host.observer(&[]);
    observer.discover();
    fs::rename(host.group_path("a"), host.path("elsewhere")).unwrap();
    host.group("a", "");
    host.blkio("a", "bfq", "_recursive", "8:0", [1_000, 0], [10, 0]);
    assert_eq!(rows(&observer.sample()), Vec::<String>::new());
}

#[test]
fn a_directory_that_became_a_link_is_refused() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    host.group("a/b", "");
    host.group("c", "");
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+sda", "+a/b", "+c"]);
    fs::rename(host.group_path("a"), host.path("evil")).unwrap();
    std::os::unix::fs::symlink(host.path("evil"), host.group_path("a")).unwrap();
    host.write("evil/b/blkio.bfq.io_service_bytes_recursive", "8:0 Read 5\n8:0 Write 5\n8:0 Total 10\n");

    // Before discovery sees it, the kernel refuses to walk through the link, and that is told.
    let sample = observer.sample();
    assert_eq!(rows(&sample), Vec::<String>::new());
    assert!(!sample.skipped.is_empty());
    for skipped in &sample.skipped {
        assert!(skipped.why.contains("of a/b: Too many levels of symbolic links"), "{skipped:?}");
    }
    assert_eq!(words(&observer.discover()), ["-t1"]);
    assert_eq!(observer.sample().skipped, []);
}

#[test]
fn an_unreadable_group_leaves_the_others_alone() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    for name in ["a", "b", "c"] {
        host.group(name, "");
        host.blkio(name, "bfq", "_recursive", "8:0", [10, 0], [1, 0]);
    }
    let mut observer = host.observer(&[]);
    observer.discover();
    // A directory in place of the file: reading it fails as an unreadable file does, also for root.
    let file = host.group_path("b").join("blkio.bfq.io_service_bytes_recursive");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let sample = observer.sample();
    assert_eq!(rows(&sample), ["t1 8:0 10+0 1+0", "t3 8:0 10+0 1+0"]);
    assert_eq!(sample.skipped.len(), 1);
    assert_eq!(sample.skipped[0].place, "blkio.bfq.io_service_bytes_recursive");
    assert!(sample.skipped[0].why.contains("of b: Is a directory"), "{:?}", sample.skipped);
}

#[test]
fn a_group_that_vanished_is_no_news() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.group("a", "");
    let mut observer = host.observer(&[]);
    observer.discover();
    fs::remove_dir_all(host.group_path("a")).unwrap();
    let sample = observer.sample();
    assert_eq!((rows(&sample), sample.skipped), (vec![], vec![]));
    assert_eq!(words(&observer.discover()), ["-t1"]);
}

#[test]
fn one_gone_and_another_come_between_two_looks_are_both_seen() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("a", "");
    host.group("b", "");
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+a", "+b"]);
    // The link count of the parent is what it was.
    fs::remove_dir_all(host.group_path("a")).unwrap();
    host.group("c", "");
    assert_eq!(words(&observer.discover()), ["-t1", "+c"]);
    assert_eq!(words(&observer.discover()), Vec::<String>::new());
}

#[test]
fn rules_name_group_exclude_and_weigh_and_can_be_replaced() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("batch/night", "");
    host.group("web", "");
    let rule = TenantRule {
        pattern: "batch/*".into(),
        name: Some("nightly".into()),
        group: Some("batch".into()),
        exclude: true,
        weight_percent: Some(50),
        role: Some(minerva_model::Role::Guest),
        price_percent: Some(150),
        quota_percent: None,
        credits_expiry: Some(Nanos::from_secs(3600)),
        forecast: Some(ForecastMode::On),
        job: Some(JobSettings { name: "sort".into(), bytes: Some(7) }),
    };
    let mut observer = host.observer(&[rule]);
    let tenants = seen(&observer.discover());
    assert_eq!((tenants[0].name.as_str(), tenants[0].group.as_deref()), ("nightly", Some("batch")));
    assert_eq!((tenants[0].weight_percent, tenants[0].excluded), (50, true));
    let terms = tenants[0].terms;
    assert_eq!((terms.role, terms.price_percent, terms.quota_percent), (minerva_model::Role::Guest, 150, 100));
    assert_eq!(terms.credits_expiry, Some(Nanos::from_secs(3600)));
    assert_eq!(terms.forecast, Some(ForecastMode::On));
    assert_eq!(tenants[0].job, Some(JobSettings { name: "sort".into(), bytes: Some(7) }));
    assert_eq!((tenants[1].name.as_str(), tenants[1].weight_percent), ("web", 100));

    observer.set_rules(&[]).unwrap();
    let again = seen(&observer.discover());
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].id, again[0].name.as_str(), again[0].excluded), (tenants[0].id, "batch/night", false));
    assert_eq!(seen(&observer.discover()), []);
}

#[test]
fn a_plain_qemu_process_makes_its_group_a_guest_also_when_it_comes_late() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("vm1", "41\n");
    host.process(41, "qemu-system-x86", 5, 0, 0);
    host.group("vm2", "");
    let mut observer = host.observer(&[]);
    let tenants = seen(&observer.discover());
    assert_eq!((tenants[0].kind, tenants[0].name.as_str()), (TenantKind::VirtualMachine, "vm1"));
    assert_eq!(tenants[0].origin.guest_name.as_deref(), Some("qemu-41"));
    assert_eq!(tenants[1].kind, TenantKind::Cgroup);

    host.write_group("vm2", "cgroup.procs", "42\n");
    host.process(42, "qemu-system-x86", 6, 0, 0);
    observer.sample();
    let late = seen(&observer.discover());
    assert_eq!(late.len(), 1);
    assert_eq!(
        (late[0].id, late[0].kind, late[0].name.as_str(), late[0].origin.guest_name.as_deref()),
        (tenants[1].id, TenantKind::VirtualMachine, "vm2", Some("qemu-42"))
    );
    assert_eq!(late[0].kind_by_group(), TenantKind::Cgroup, "what it calls itself is noted beside what its group is");
}

#[test]
fn usage_is_summed_by_growth_and_a_recycled_pid_is_another_process() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("a", "50\n51\n");
    host.group("a/inner", "");
    fs::remove_dir_all(host.group_path("a/inner")).unwrap();
    host.process(50, "x", 5, 10, 4096);
    host.process(51, "y", 5, 20, 0);
    let mut observer = host.observer(&[]);
    observer.discover();
    let first = observer.sample().usage.remove(0);
    assert_eq!((first.processes, first.open_files, first.open_file_bytes), (2, 2, 200));
    assert_eq!(first.process_read_bytes, 4096);
    assert_eq!(first.network_bytes, None);

    // 51 ends, and 50 is another process now that has used less than the old one.
    host.write_group("a", "cgroup.procs", "50\n");
    host.process(50, "x", 99, 3, 1000);
    let second = observer.sample().usage.remove(0);
    assert_eq!(second.processes, 1);
    assert_eq!(second.process_read_bytes, 5096);
    let tick_ns = first.cpu_ns / 30;
    assert_eq!(second.cpu_ns, first.cpu_ns + 3 * tick_ns);
}

#[test]
fn the_budget_of_processes_goes_round_and_everyone_has_a_turn() {
    let host = FakeHost::new(CgroupVersion::V1);
    for index in 0..200 {
        host.group(&format!("g{index:03}"), &format!("{}\n", 1_000 + index));
        host.process(1_000 + index, "x", 5, 1, 0);
    }
    let mut observer = host.observer(&[]);
    observer.discover();
    let mut had_a_turn = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let usage = observer.sample().usage;
        assert!(usage.len() <= 4, "they are all at rest");
        had_a_turn.extend(usage.iter().map(|row| row.tenant));
    }
    assert_eq!(had_a_turn.len(), 200);
}

#[test]
fn open_files_beyond_what_a_slice_looks_at_have_their_turn_in_the_next() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("server", "1001\n1002\n1003\n");
    for pid in 1_001..=1_003 {
        host.process(pid, "x", 5, 1, 0);
        (4..300).for_each(|number| host.write(&format!("proc/{pid}/fd/{number}"), &"x".repeat(100)));
    }
    let mut observer = host.observer(&[]);
    observer.discover();
    let mut bytes = || observer.sample().usage.remove(0).open_file_bytes;
    // 256 of each process, and 256 a slice.
    assert_eq!([bytes(), bytes(), bytes()], [25_600, 51_200, 76_800]);
    // What has become of the first, which opened one more, is seen when all three have had their turn.
    for number in 3..=300 {
        host.write(&format!("proc/1001/fd/{number}"), &"x".repeat(200));
    }
    assert_eq!([bytes(), bytes()], [102_400, 102_400]);
}

#[test]
fn stacks_and_partitions_resolve_to_whole_disks() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.partition("sda", "sda1", "8:1");
    host.disk("sdb", "8:16", DEADLINE, &[]);
    host.disk("md0", "9:0", "none\n", &["sda1", "sdb"]);
    host.disk("dm-0", "253:0", "none\n", &["md0"]);
    host.disk("zram0", "252:0", "none\n", &[]);
    host.disk("loop0", "7:0", BFQ, &[]);
    host.disk("loop1", "7:1", BFQ, &[]);
    host.write("sys/devices/virtual/block/loop1/loop/backing_file", "/var/disk.img\n");
    host.disk("loop2", "7:2", BFQ, &[]);
    host.write("sys/devices/virtual/block/loop2/loop/backing_file", "/fuse/disk.img\n");
    host.write(
        "proc/self/mountinfo",
        "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n28 27 0:99 / /fuse rw - fuse.lab lab rw\n38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
    );
    let mut observer = host.observer(&[]);
    let events = observer.discover();
    let mut stacks = Vec::new();
    for event in &events {
        if let minerva_model::Event::DeviceSeen(device) = event {
            let below: Vec<String> = device.facts.stacked_on.iter().map(ToString::to_string).collect();
            stacks.push(format!("{} on [{}]", device.name, below.join(" ")));
        }
    }
    // loop0 has no file and zram0 is memory; the file of loop2 is in FUSE, which is no disk.
    assert_eq!(
        stacks,
        ["loop1 on [8:0]", "loop2 on []", "sda on []", "sdb on []", "md0 on [8:0 8:16]", "dm-0 on [8:0 8:16]"]
    );
}

#[test]
fn disks_that_cannot_be_read_are_unknown_and_not_gone() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", "[bfq] none", &[]);
    host.disk("sdb", "8:16", "[none]", &[]);
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+sda", "+sdb"]);
    // A directory that cannot be listed, whoever asks: it is none.
    fs::rename(host.path("sys/block"), host.path("sys/away")).unwrap();
    host.write("sys/block", "");
    assert_eq!(words(&observer.discover()), Vec::<String>::new());
    let skipped = observer.sample().skipped;
    assert!(skipped.iter().any(|skipped| format!("{skipped:?}").contains("/sys/block")), "{skipped:?}");
    fs::remove_file(host.path("sys/block")).unwrap();
    fs::rename(host.path("sys/away"), host.path("sys/block")).unwrap();
    assert_eq!(words(&observer.discover()), Vec::<String>::new());
    // A number that cannot be read, whoever asks.
    let number = host.path("sys/block/sdb/dev");
    fs::remove_file(&number).unwrap();
    fs::create_dir(&number).unwrap();
    assert_eq!(words(&observer.discover()), Vec::<String>::new());
    fs::remove_dir(&number).unwrap();
    assert_eq!(words(&observer.discover()), ["-8:16"], "without a number it has gone");
}

#[test]
fn disks_come_change_and_go() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    let mut observer = host.observer(&[]);
    let events = observer.discover();
    let minerva_model::Event::DeviceSeen(device) = &events[0] else { panic!("{events:?}") };
    assert_eq!((device.facts.elevator.as_deref(), device.facts.bfq_low_latency), (Some("bfq"), Some(true)));
    assert_eq!((device.facts.size_bytes, device.facts.rotational), (1 << 20, true));
    assert!(device.facts.controller_enabled && device.facts.throttle_available && !device.facts.iocost_available);
    assert_eq!(words(&observer.discover()), Vec::<String>::new());

    host.write("sys/devices/virtual/block/sda/queue/scheduler", DEADLINE);
    assert_eq!(words(&observer.discover()), ["+sda"]);
    host.write("sys/devices/virtual/block/sda/diskseq", "2\n");
    assert_eq!(words(&observer.discover()), ["-8:0", "+sda"]);
    fs::remove_file(host.path("sys/block/sda")).unwrap();
    assert_eq!(words(&observer.discover()), ["-8:0"]);
}
