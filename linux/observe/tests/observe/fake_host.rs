//! A directory that looks like a host: `/proc`, `/sys` and a cgroup hierarchy as plain files.

use minerva_linux_observe::{Observer, Roots};
use minerva_model::{CgroupVersion, Event, Sample, Tenant, TenantRule};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) struct FakeHost {
    folder: TempDir,
    version: CgroupVersion,
}

impl FakeHost {
    pub(crate) fn new(version: CgroupVersion) -> Self {
        // In memory where there is such a place: one test makes ten thousand directories.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let host = Self { folder, version };
        let cgroups = match version {
            CgroupVersion::V1 => "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
            CgroupVersion::V2 => "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            CgroupVersion::Absent => "",
        };
        host.write("proc/self/mountinfo", &format!("27 1 8:1 / / rw - ext4 /dev/sda1 rw\n{cgroups}"));
        host.write("proc/diskstats", "");
        host.write(
            "proc/pressure/io",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
        );
        host.write(
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
        );
        fs::create_dir_all(host.path("sys/block")).unwrap();
        match version {
            CgroupVersion::V1 => {
                host.group("", "");
                host.write_group("", "blkio.throttle.read_bps_device", "");
                host.write_group("", "blkio.throttle.io_service_bytes", "Total 0\n");
            }
            CgroupVersion::V2 => {
                host.write_group("", "cgroup.controllers", "cpu io memory pids\n");
                host.group("", "");
                host.enable_io("");
            }
            CgroupVersion::Absent => {}
        }
        host
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn group_path(&self, group: &str) -> PathBuf {
        let root = if self.version == CgroupVersion::V1 { "sys/fs/cgroup/blkio" } else { "sys/fs/cgroup" };
        self.path(root).join(group)
    }

    pub(crate) fn write_group(&self, group: &str, file: &str, text: &str) {
        let folder = self.group_path(group);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
    }

    /// Makes a group with these processes and no I/O yet.
    pub(crate) fn group(&self, group: &str, processes: &str) {
        self.write_group(group, "cgroup.procs", processes);
        match self.version {
            CgroupVersion::V1 => {
                for file in ["io_service_bytes", "io_serviced"] {
                    for suffix in ["", "_recursive"] {
                        self.write_group(group, &format!("blkio.bfq.{file}{suffix}"), "Total 0\n");
                        self.write_group(group, &format!("blkio.throttle.{file}{suffix}"), "Total 0\n");
                    }
                }
            }
            _ => {
                self.write_group(group, "io.stat", "");
                self.write_group(group, "cgroup.subtree_control", "");
                self.write_group(
                    group,
                    "io.pressure",
                    "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2\n",
                );
            }
        }
    }

    pub(crate) fn enable_io(&self, group: &str) {
        self.write_group(group, "cgroup.subtree_control", "io memory\n");
    }

    /// A v1 group's counters: `source` is `bfq` or `throttle`.
    pub(crate) fn blkio(&self, group: &str, source: &str, suffix: &str, device: &str, bytes: [u64; 2], ops: [u64; 2]) {
        let text = |[read, write]: [u64; 2]| {
            let sum = read + write;
            format!(
                "{device} Read {read}\n{device} Write {write}\n{device} Sync {sum}\n{device} Async 0\n{device} Discard 0\n{device} Total {sum}\nTotal {sum}\n"
            )
        };
        self.write_group(group, &format!("blkio.{source}.io_service_bytes{suffix}"), &text(bytes));
        self.write_group(group, &format!("blkio.{source}.io_serviced{suffix}"), &text(ops));
    }

    /// A whole disk under `/sys/devices`, linked as the kernel links it.
    pub(crate) fn disk(&self, name: &str, device: &str, scheduler: &str, slaves: &[&str]) {
        let folder = format!("sys/devices/virtual/block/{name}");
        self.write(&format!("{folder}/dev"), &format!("{device}\n"));
        self.write(&format!("{folder}/size"), "2048\n");
        self.write(&format!("{folder}/diskseq"), "1\n");
        self.write(&format!("{folder}/queue/scheduler"), scheduler);
        self.write(&format!("{folder}/queue/rotational"), "1\n");
        self.write(&format!("{folder}/queue/iosched/low_latency"), "1\n");
        for directory in ["slaves", "mq/0"] {
            fs::create_dir_all(self.path(&format!("{folder}/{directory}"))).unwrap();
        }
        self.link_block(name, device, &folder);
        symlink(self.path(&folder), self.path("sys/block").join(name)).unwrap();
        for slave in slaves {
            let target = self.path("sys/class/block").join(slave).canonicalize().unwrap();
            symlink(target, self.path(&format!("{folder}/slaves/{slave}"))).unwrap();
        }
    }

    pub(crate) fn partition(&self, disk: &str, name: &str, device: &str) {
        let folder = format!("sys/devices/virtual/block/{disk}/{name}");
        self.write(&format!("{folder}/dev"), &format!("{device}\n"));
        self.write(&format!("{folder}/partition"), "1\n");
        self.link_block(name, device, &folder);
    }

    fn link_block(&self, name: &str, device: &str, folder: &str) {
        for (place, link) in [("sys/class/block", name), ("sys/dev/block", device)] {
            fs::create_dir_all(self.path(place)).unwrap();
            symlink(self.path(folder), self.path(place).join(link)).unwrap();
        }
    }

    /// A process with one open socket and one open file of 100 bytes.
    pub(crate) fn process(&self, pid: u32, name: &str, start: u64, cpu_ticks: u64, read_bytes: u64) {
        self.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {cpu_ticks} 0 0 0 20 0 1 0 {start} 1000 10 0\n"),
        );
        self.write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
        self.write(
            &format!("proc/{pid}/io"),
            &format!("rchar: 1\nread_bytes: {read_bytes}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"),
        );
        self.write(&format!("proc/{pid}/fd/3"), &"x".repeat(100));
    }

    pub(crate) fn roots(&self) -> Roots {
        let roots = Roots::at(self.folder.path()).unwrap();
        assert_eq!(roots.version, self.version);
        roots
    }

    pub(crate) fn observer(&self, rules: &[TenantRule]) -> Observer {
        let mut observer = Observer::new(self.roots(), rules).unwrap();
        observer.want_usage(true);
        observer
    }
}

/// Tenants that events announce.
pub(crate) fn seen(events: &[Event]) -> Vec<Tenant> {
    let tenants = events.iter().filter_map(|event| match event {
        Event::TenantSeen { tenant, .. } => Some(tenant.clone()),
        _ => None,
    });
    tenants.collect()
}

/// Events as short words: `+path`, `-t1`, `+sda`, `-8:0`.
pub(crate) fn words(events: &[Event]) -> Vec<String> {
    let word = |event: &Event| match event {
        Event::DeviceSeen(device) => format!("+{}", device.name),
        Event::DeviceGone(id) => format!("-{id}"),
        Event::TenantSeen { tenant, .. } => format!("+{}", tenant.cgroup.path),
        Event::TenantGone(id) => format!("-{id}"),
        other => panic!("unexpected {other:?}"),
    };
    events.iter().map(word).collect()
}

/// Counter rows as short words: tenant, device, bytes and operations.
pub(crate) fn rows(sample: &Sample) -> Vec<String> {
    let row = |row: &minerva_model::TenantIo| {
        let c = row.counters;
        format!("{} {} {}+{} {}+{}", row.tenant, row.device, c.read_bytes, c.write_bytes, c.read_ops, c.write_ops)
    };
    sample.io.iter().map(row).collect()
}
