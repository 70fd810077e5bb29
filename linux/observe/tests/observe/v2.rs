//! A v2 host.

use crate::fake_host::{FakeHost, rows, seen, words};
use minerva_linux_observe::read_mount_facts;
use minerva_model::{CgroupVersion, Event, TenantKind};

const UID: &str = "7f0c7b1e-1111-2222-3333-444455556666";
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn kinds_and_units_on_a_host_of_everything() {
    let host = FakeHost::new(CgroupVersion::V2);
    let pod = format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice", UID.replace('-', "_"));
    for holder in
        ["system.slice", "machine.slice", "kubepods.slice", "kubepods.slice/kubepods-burstable.slice", "minerva", &pod]
    {
        host.group(holder, "");
        host.enable_io(holder);
    }
    let vm = r"machine.slice/machine-qemu\x2d1\x2dweb.scope";
    let container = format!("{pod}/cri-containerd-{ID}.scope");
    for unit in ["system.slice/nginx.service", "system.slice/dev-mqueue.mount", vm, &container, "minerva/backup"] {
        host.group(unit, "");
    }
    // What a unit makes inside belongs to it, whatever it is called.
    host.group(&format!("{vm}/libvirt/emulator"), "5\n");
    host.enable_io(vm);
    host.group(&format!("{container}/docker/{ID}"), "6\n");
    host.group("lxc.payload.ci/init.scope", "");
    let mut observer = host.observer(&[]);
    let mut tenants: Vec<(TenantKind, String)> =
        seen(&observer.discover()).into_iter().map(|tenant| (tenant.kind, tenant.name)).collect();
    tenants.sort_by(|a, b| a.1.cmp(&b.1));
    assert_eq!(
        tenants,
        [
            (TenantKind::Named, "backup".to_owned()),
            (TenantKind::Lxc, "ci".to_owned()),
            (TenantKind::Service, "nginx.service".to_owned()),
            (TenantKind::Container, "pod-7f0c7b1e/0123456789ab".to_owned()),
            (TenantKind::VirtualMachine, "web".to_owned()),
        ]
    );
}

#[test]
fn the_tenant_is_the_lowest_group_that_the_controller_reaches() {
    let host = FakeHost::new(CgroupVersion::V2);
    host.group("a", "");
    host.group("a/b", "7\n");
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+a"]);
    host.enable_io("a");
    assert_eq!(words(&observer.discover()), ["-t1", "+a/b"]);
    host.write_group("a", "cgroup.subtree_control", "memory\n");
    assert_eq!(words(&observer.discover()), ["-t2", "+a"]);
}

#[test]
fn groups_nested_deeper_than_is_looked_at_belong_to_the_one_at_that_depth() {
    let host = FakeHost::new(CgroupVersion::V2);
    let path = |depth: usize| vec!["d"; depth].join("/");
    let deepen = |depth: usize| {
        host.group(&path(depth), "");
        host.enable_io(&path(depth));
    };
    (1..=30).for_each(deepen);
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), [format!("+{}", path(24))]);
    for look in 0..61 {
        // One more a look, as a user who nests them one by one.
        deepen(31 + look);
        assert_eq!(words(&observer.discover()), Vec::<String>::new(), "look {look}");
    }
    // Also where it comes by one made beside it.
    host.group(&format!("{}/beside", path(24)), "");
    assert_eq!(words(&observer.discover()), Vec::<String>::new());
}

#[test]
fn slices_that_hide_their_services_are_told() {
    let host = FakeHost::new(CgroupVersion::V2);
    for group in ["system.slice", "user.slice", "a", "a/b", "init.scope"] {
        host.group(group, "");
    }
    for service in ["nginx.service", "dev-mqueue.mount", "postgres.service", "system-getty.slice"] {
        host.group(&format!("system.slice/{service}"), "");
    }
    let mut observer = host.observer(&[]);
    let mut told = || {
        observer.discover();
        observer.hidden().map(|hidden| (hidden.slice, hidden.groups)).collect::<Vec<_>>()
    };
    // A mount has no processes; an empty slice hides nobody; whoever made `a` by hand meant it so.
    assert_eq!(told(), [("system.slice".to_owned(), 3)]);
    host.group("system.slice/cron.service", "");
    host.group("user.slice/user-1000.slice", "");
    assert_eq!(told(), [("system.slice".to_owned(), 4), ("user.slice".to_owned(), 1)]);
    host.enable_io("system.slice");
    host.group("system.slice/system-getty.slice/getty@tty1.service", "");
    assert_eq!(told(), [("system.slice/system-getty.slice".to_owned(), 1), ("user.slice".to_owned(), 1)]);
    host.enable_io("system.slice/system-getty.slice");
    host.enable_io("user.slice");
    assert_eq!(told(), []);
    host.write_group("system.slice", "cgroup.subtree_control", "memory\n");
    assert_eq!(told(), [("system.slice".to_owned(), 4)]);
}

#[test]
fn counters_pressure_and_what_was_cut() {
    let host = FakeHost::new(CgroupVersion::V2);
    host.disk("sda", "8:0", "[none]\n", &[]);
    host.disk("sdb", "8:16", "[none]\n", &[]);
    host.group("a", "");
    host.group("b", "");
    host.write_group("a", "io.stat", "7:9 rbytes=9 wbytes=9 rios=9 wios=9\n8:16 \n8:0 rbytes=4096 wbytes=512 rios=2 wios=1 dbytes=0 dios=0 cost.usage=7\n");
    host.write_group("b", "io.stat", "8:0 rbytes=10 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:16 rbytes=99");
    host.write("proc/diskstats", "8 0 sda 5 0 16 3 1 0 8 2 0 4 5\n8 1 sda1 5 0 16 3 1 0 8 2 0 4 5\n");
    let mut observer = host.observer(&[]);
    observer.discover();
    let sample = observer.sample();
    assert_eq!(rows(&sample), ["t1 8:0 4096+512 2+1", "t2 8:0 10+0 1+0"]);
    assert_eq!((sample.io[0].served_ns, sample.io[1].served_ns), (Some(7_000), None), "by iocost's account");
    assert_eq!(sample.skipped.len(), 1);
    assert_eq!((sample.skipped[0].place.as_str(), sample.skipped[0].count), ("io.stat", 1));
    assert_eq!(sample.skipped[0].why, r#"line not understood, of b: "8:16 rbytes=99""#);
    assert_eq!(sample.devices.len(), 1);
    assert_eq!((sample.devices[0].counters.read_bytes, sample.devices[0].busy_ns), (8192, 4_000_000));
    assert_eq!(sample.host_pressure.map(|pressure| pressure.some_ns), Some(7_000));
    assert_eq!(sample.memory_pressure.map(|pressure| pressure.full_ns), Some(3_000));
    assert_eq!(sample.pressure.len(), 2);
    assert_eq!(sample.pressure[0].pressure.full_ns, 2_000);
}

#[test]
fn a_disk_that_is_gone_from_the_texts_makes_no_group_unreadable() {
    let host = FakeHost::new(CgroupVersion::V2);
    host.disk("sda", "8:0", "[none]\n", &[]);
    host.group("a", "");
    let gone = "(unknown) rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n";
    host.write_group("a", "io.stat", &format!("{gone}8:0 rbytes=4096 wbytes=512 rios=2 wios=1 dbytes=0 dios=0\n"));
    let mut observer = host.observer(&[]);
    observer.discover();
    let sample = observer.sample();
    assert_eq!(rows(&sample), ["t1 8:0 4096+512 2+1"]);
    assert_eq!(sample.skipped, []);
}

#[test]
fn facts_of_iocost_and_writeback() {
    let host = FakeHost::new(CgroupVersion::V2);
    host.disk("sda", "8:0", "[none]\n", &[]);
    host.write_group("", "io.cost.qos", "8:0 enable=1 ctrl=auto\n");
    let mut observer = host.observer(&[]);
    let events = observer.discover();
    let Event::DeviceSeen(device) = &events[0] else { panic!("{events:?}") };
    assert!(device.facts.iocost_available && device.facts.iocost_enabled && device.facts.writeback_attributed);
    assert!(!device.facts.iocost_model_guessed, "a kernel that shows no model");
    host.write_group("", "io.cost.model", "8:0 ctrl=auto model=linear rbps=1 rseqiops=1\n");
    let events = observer.discover();
    let Event::DeviceSeen(device) = &events[0] else { panic!("{events:?}") };
    assert!(device.facts.iocost_model_guessed);
    host.write_group("", "io.cost.model", "8:0 ctrl=user model=linear rbps=1 rseqiops=1\n");
    let events = observer.discover();
    let Event::DeviceSeen(device) = &events[0] else { panic!("{events:?}") };
    assert!(!device.facts.iocost_model_guessed);
    host.write_group("", "io.cost.qos", "");
    assert_eq!(words(&observer.discover()), ["+sda"]);
}

#[test]
fn mounts_are_judged() {
    let host = FakeHost::new(CgroupVersion::V2);
    host.disk("sda", "8:0", "[none]\n", &[]);
    host.partition("sda", "sda1", "8:1");
    host.disk("sdb", "8:16", "[none]\n", &[]);
    for member in ["sda", "sdb"] {
        host.write(&format!("sys/fs/btrfs/some-uuid/devices/{member}"), "");
    }
    host.write(
        "proc/self/mountinfo",
        "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n28 27 0:50 / /pool rw - btrfs /dev/sdb rw\n29 27 0:51 / /z rw - zfs tank rw\n30 27 0:52 / /n rw - nfs4 host:/x rw\n31 27 0:53 / /t rw - tmpfs none rw\n32 27 0:54 / /proc rw - proc proc rw\n41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n33 27 8:16 / /old rw - ext3 /dev/sdb rw\n34 27 0:55 / /t rw - ramfs none rw\n",
    );
    let facts = read_mount_facts(&host.roots()).unwrap();
    let told: Vec<String> = facts
        .iter()
        .map(|mount| {
            let devices: Vec<String> = mount.devices.iter().map(ToString::to_string).collect();
            format!(
                "{} [{}] {} {}",
                mount.mount_point,
                devices.join(" "),
                mount.hidden_because.is_none(),
                mount.writeback_attributed
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "/ [8:0] true true",
            "/pool [8:0 8:16] false false",
            "/z [] false false",
            "/n [] false false",
            "/old [8:16] true false",
            // The ramfs hides the tmpfs on the same place.
            "/t [] false false"
        ]
    );
}

#[test]
fn without_a_controller_there_are_disks_and_no_tenants() {
    let host = FakeHost::new(CgroupVersion::Absent);
    host.disk("sda", "8:0", "[none]\n", &[]);
    let mut observer = host.observer(&[]);
    let events = observer.discover();
    assert_eq!(words(&events), ["+sda"]);
    let Event::DeviceSeen(device) = &events[0] else { panic!("{events:?}") };
    assert_eq!(device.facts.cgroup, CgroupVersion::Absent);
    assert!(!device.facts.controller_enabled && !device.facts.throttle_available);
    assert_eq!(observer.sample().skipped, []);
}
