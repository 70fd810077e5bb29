//! What a disk says of itself, and which disk a guest's image is on.

use crate::fake_host::{FakeHost, seen};
use crate::v1::BFQ;
use minerva_linux_observe::GuestDisk;
use minerva_model::CgroupVersion;

const MACHINE: &str = r"machine.slice/machine-qemu\x2d1\x2dvm.scope";

#[test]
fn a_disk_is_known_by_what_it_says_of_itself() {
    let host = FakeHost::new(CgroupVersion::V1);
    for (name, device) in
        [("sda", "8:0"), ("nvme0n1", "259:0"), ("vda", "252:16"), ("dm-0", "253:0"), ("vdb", "252:32")]
    {
        host.disk(name, device, "[none]", &[]);
    }
    let say =
        |disk: &str, file: &str, text: &str| host.write(&format!("sys/devices/virtual/block/{disk}/{file}"), text);
    say("sda", "device/wwid", "t10.ATA     WDC WD10  \n");
    say("nvme0n1", "wwid", "eui.0025385\n");
    say("nvme0n1", "device/serial", "S1\n");
    say("vda", "serial", "\n");
    say("dm-0", "dm/uuid", "LVM-abc\n");
    say("vdb", "serial", "root-disk\n");
    let mut observer = host.observer(&[]);
    let said = ["sda", "nvme0n1", "vda", "dm-0", "vdb", "gone"].map(|disk| observer.disk_identity(disk));
    let expected =
        ["wwid:t10.ATA WDC WD10", "wwid:eui.0025385", "diskseq:252:16#1", "dm:LVM-abc", "serial:root-disk", ""];
    assert_eq!(said, expected);
}

#[test]
fn a_guests_image_is_the_one_like_its_disk_else_the_largest_file_that_it_may_write() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    host.disk("sdb", "8:16", BFQ, &[]);
    host.partition("sdb", "sdb1", "8:17");
    for (group, pid, name) in [(MACHINE, 41, "qemu-system-x86"), ("shell", 42, "qemu-system-x86")] {
        host.group(group, &format!("{pid}\n"));
        host.process(pid, name, 5, 0, 0);
        host.write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
        // One file system for each, by the process's own mounts.
        let mount =
            |folder: &str, device: &str| format!("28 27 {device} / {} rw - ext4 x rw\n", host.path(folder).display());
        host.write(&format!("proc/{pid}/mountinfo"), &(mount("images", "8:17") + &mount("firmware", "8:0")));
    }
    let open = |pid: u32, number: u32, folder: &str, bytes: usize| {
        let file = format!("{folder}/{pid}-{number}");
        host.write(&file, &"x".repeat(bytes));
        std::os::unix::fs::symlink(host.path(&file), host.path(&format!("proc/{pid}/fd/{number}"))).unwrap();
    };
    let mut observer = host.observer(&[]);
    let tenants = seen(&observer.discover());
    observer.sample();
    let tenants = [tenants, seen(&observer.discover())].concat();
    let id = |path: &str| tenants.iter().find(|tenant| tenant.cgroup.path == path).unwrap().id;
    let any = GuestDisk::default();
    assert_eq!(observer.image_device(id(MACHINE), &any), None, "it has none open");
    open(41, 7, "firmware", 2_000);
    open(41, 8, "images", 60_000);
    open(41, 9, "firmware", 30_000);
    open(42, 7, "images", 60_000);
    let mut on = |size_bytes, serial: &str| {
        let disk = GuestDisk { size_bytes, serial: serial.to_owned() };
        observer.image_device(id(MACHINE), &disk).map(|device| device.to_string()).unwrap_or_default()
    };
    assert_eq!(on(0, ""), "8:16");
    // Of the size that the guest sees, whatever others there are; of a size that none has, the largest.
    assert_eq!([on(30_000, ""), on(60_000, ""), on(50_000, "")], ["8:0", "8:16", "8:16"]);
    // Of the serial that the guest sees, whatever its size.
    let data = host.path("firmware/41-7");
    let arguments = format!("qemu\0-drive\0id=d,file={}\0-device\0virtio-blk,drive=d,serial=data\0", data.display());
    host.write("proc/41/cmdline", &arguments);
    assert_eq!([on(60_000, "data"), on(60_000, "other"), on(0, "other")], ["8:0", "8:16", "8:16"]);
    // Of a process beside QEMU no arguments are read.
    host.write("proc/41/comm", "virtiofsd\n");
    assert_eq!(on(60_000, "data"), "8:16");
    assert_eq!(observer.image_device(id("shell"), &any), None, "whoever calls itself QEMU is no machine for it");
}
