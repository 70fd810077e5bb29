//! Which disk is which, and what each stands on.

use crate::fake_host::{FakeHost, words};
use minerva_model::{CgroupVersion, DeviceId, Event};
use std::fs;
use std::os::unix::fs::symlink;

const BFQ: &str = "[bfq] none\n";

#[test]
fn another_file_behind_a_loop_device_is_another_disk_also_where_the_kernel_does_not_count_disks() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("loop0", "7:0", BFQ, &[]);
    fs::remove_file(host.path("sys/devices/virtual/block/loop0/diskseq")).unwrap();
    let file = |path: &str| host.write("sys/devices/virtual/block/loop0/loop/backing_file", &format!("{path}\n"));
    file("/var/one.img");
    let mut observer = host.observer(&[]);
    assert_eq!(words(&observer.discover()), ["+loop0"]);
    file("/var/one.img (deleted)");
    assert!(!words(&observer.discover()).contains(&"-7:0".to_owned()), "it is the same file still");
    file("/var/two.img");
    assert_eq!(words(&observer.discover()), ["-7:0", "+loop0"]);
}

#[test]
fn what_a_disk_stands_on_follows_changes_below_the_first_layer() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.disk("sdb", "8:16", BFQ, &[]);
    host.disk("dm-0", "253:0", "none\n", &["sda"]);
    host.disk("dm-1", "253:1", "none\n", &["dm-0"]);
    let mut observer = host.observer(&[]);
    let mut stacks = || {
        let events = observer.discover().into_iter();
        let seen = events.filter_map(|event| match event {
            Event::DeviceSeen(device) => Some(device),
            _ => None,
        });
        let below = |ids: &[DeviceId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        seen.map(|device| format!("{} on [{}]", device.name, below(&device.facts.stacked_on))).collect::<Vec<_>>()
    };
    assert_eq!(stacks(), ["sda on []", "sdb on []", "dm-0 on [8:0]", "dm-1 on [8:0]"]);
    // As pvmove leaves it below a dm-crypt, whose own table stays.
    let slaves = host.path("sys/devices/virtual/block/dm-0/slaves");
    fs::remove_file(slaves.join("sda")).unwrap();
    symlink(host.path("sys/devices/virtual/block/sdb"), slaves.join("sdb")).unwrap();
    assert_eq!(stacks(), ["dm-0 on [8:16]", "dm-1 on [8:16]"]);
    assert_eq!(stacks(), Vec::<String>::new());
}

#[test]
fn disks_without_blk_mq_are_told_apart() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("nvme0n1", "259:0", "[none]\n", &[]);
    host.disk("sda", "8:0", BFQ, &[]);
    fs::remove_dir_all(host.path("sys/devices/virtual/block/nvme0n1/mq")).unwrap();
    let found = host.observer(&[]).discover().into_iter().filter_map(|event| match event {
        Event::DeviceSeen(device) => Some((device.name, device.facts.multi_queue)),
        _ => None,
    });
    assert_eq!(found.collect::<Vec<_>>(), [("sda".to_owned(), true), ("nvme0n1".to_owned(), false)]);
}
