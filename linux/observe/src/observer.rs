//! The observer: everything that reads the machine, behind two calls a slice.

use crate::ObserveError;
use crate::counters::{Counted, Counters};
use crate::disk_stats::DiskStats;
use crate::disks::Disks;
use crate::hidden::HiddenGroups;
use crate::identity::identity;
use crate::images::{GuestDisk, device_of_image};
use crate::parse::parse_pressure;
use crate::pids::pids_of;
use crate::processes::{Processes, Round};
use crate::read::{Reader, directory_facts};
use crate::roots::Roots;
use crate::skips::Skips;
use crate::stack::Stack;
use crate::tenants::Tenants;
use minerva_model::{CgroupRef, CgroupVersion, DeviceId, Event, Sample, TenantId, TenantRule};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::path::Path;

/// Watches tenants, disks and processes of one host.
#[derive(Debug)]
pub struct Observer {
    roots: Roots,
    tenants: Tenants,
    disks: Disks,
    counters: Counters,
    disk_stats: DiskStats,
    processes: Processes,
    reader: Reader,
    skips: Skips,
    wants_usage: bool,
}

/// How much was read since the observer was made: tests and benchmarks compare counts, not times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Files read.
    pub files: u64,
    /// Files opened for that; the others had been left open.
    pub opened: u64,
}

impl Observer {
    /// An observer that knows nothing yet: the first [`Observer::discover`] reports everything.
    pub fn new(roots: Roots, rules: &[TenantRule]) -> Result<Self, ObserveError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match roots.version {
            // Nothing is looked for in it.
            CgroupVersion::Absent => &roots.proc,
            CgroupVersion::V1 | CgroupVersion::V2 => &roots.cgroup,
        };
        let open_error =
            |source: rustix::io::Errno| ObserveError::Read { path: directory.clone(), source: source.into() };
        let root = rustix::fs::open(directory, flags, Mode::empty()).map_err(open_error)?;
        crate::read::open_below(rustix::fd::AsFd::as_fd(&root), "", OFlags::PATH)
            .map_err(|source| ObserveError::Open { path: directory.clone(), source: source.into() })?;
        Ok(Self {
            counters: Counters::new(&root),
            tenants: Tenants::new(root, roots.version, &roots.proc, rules)?,
            disks: Disks::default(),
            disk_stats: DiskStats::default(),
            processes: Processes::new(&roots.proc, roots.version),
            reader: Reader::new(),
            skips: Skips::default(),
            wants_usage: false,
            roots,
        })
    }

    /// The groups right below which each is one with all that is in it, as the operator's named groups are, without a leading slash;
    /// `minerva` unless this is called, which is to be before the first [`Observer::discover`].
    #[must_use]
    pub fn named_below(mut self, parents: Vec<String>) -> Self {
        self.tenants.named_below(parents);
        self
    }

    /// Replaces the tenant rules. Tenants that they change are announced again by the next [`Observer::discover`].
    pub fn set_rules(&mut self, rules: &[TenantRule]) -> Result<(), ObserveError> {
        self.tenants.set_rules(rules)
    }

    /// Whether samples are to tell what tenants use besides the disk, and their pressure: that costs tens of system calls a process,
    /// so that it is read only while somebody looks at it.
    pub fn want_usage(&mut self, wanted: bool) {
        self.wants_usage = wanted;
        if !wanted {
            self.processes.forget();
        }
    }

    /// Where everything is read from.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// The whole disk on which a device number lies: the disk itself, or that of a partition. Nothing if there is none.
    pub fn whole_disk(&mut self, device: DeviceId) -> Option<DeviceId> {
        Stack { sys: &self.roots.sys, mounts: &[] }.whole_disk(device, &mut self.reader)
    }

    /// The whole disks on which a block device lies: see [`disks_below`].
    pub fn disks_below(&self, device: DeviceId) -> Vec<DeviceId> {
        disks_below(&self.roots.sys, device)
    }

    /// What a watched disk says of itself, by which it is known again under another number; empty if it says nothing.
    pub fn disk_identity(&mut self, name: &str) -> String {
        identity(&self.roots.sys.join("block").join(name), &mut self.reader)
    }

    /// The block device on which a guest's image lies: of several the one that is like `disk`, as the guest sees it, else the largest.
    /// Nothing of a tenant whose group was not made for a machine by root, or whose image is on none: of others nothing is read, as they
    /// could have any number of files, and a command line that nobody can read to its end.
    pub fn image_device(&mut self, tenant: TenantId, disk: &GuestDisk) -> Option<DeviceId> {
        let known = self.tenants.known.get(&tenant)?;
        if !self.roots.is_machine(&known.tenant.cgroup.path) {
            return None;
        }
        let pids = pids_of(self.tenants.root(), known, &mut self.reader, &mut self.skips);
        device_of_image(&self.roots.proc, &self.roots.sys, &pids, disk, &mut self.reader)
    }

    /// Whether a group is there, and still the one that was met. One that is may have ceased to be a tenant all the same.
    pub fn is_there(&self, cgroup: &CgroupRef) -> bool {
        directory_facts(self.tenants.root(), &cgroup.path).is_some_and(|facts| facts.inode == cgroup.inode)
    }

    /// Looks for disks and tenants that came, went or changed: to be called each slice, before [`Observer::sample`]. Those
    /// that went come first, and the history of a tenant that came is empty: the store adds it.
    ///
    /// A device that is back under the same number with another disk behind it is gone and then seen.
    pub fn discover(&mut self) -> Vec<Event> {
        let mut events = self.disks.discover(&self.roots, self.tenants.root(), &mut self.reader, &mut self.skips);
        if self.roots.version != CgroupVersion::Absent {
            events.extend(self.tenants.discover(&mut self.reader, &mut self.skips));
        }
        events
    }

    /// Slices whose groups are one tenant because the controller ends there, as the last [`Observer::discover`] found them.
    pub fn hidden(&self) -> impl Iterator<Item = HiddenGroups> + '_ {
        self.tenants.hidden()
    }

    /// Reads all counters. What cannot be read is in `skipped`, and the rest is as if it were not there.
    pub fn sample(&mut self) -> Sample {
        let (reader, skips) = (&mut self.reader, &mut self.skips);
        let disks = &self.disks.known;
        let (devices, spaces) = self.disk_stats.read(&self.roots.proc, |id| disks.contains_key(&id), reader, skips);
        let none = BTreeMap::new();
        let known = if self.roots.version == CgroupVersion::Absent { &none } else { &self.tenants.known };
        let root = self.tenants.root();
        // Without a hierarchy none was ever looked for.
        let Tenants { subtrees, generation, .. } = &self.tenants;
        let counted = Counted { tenants: known, subtrees, generation: *generation };
        let reading = self.counters.read(root, self.roots.version, counted, disks, reader, skips);
        let guests = self.processes.guests(root, known, &reading.active, reader);
        let round = match self.wants_usage {
            true => self.processes.round(root, known, &reading.active, reader, skips),
            false => Round::default(),
        };
        // A kernel without pressure accounting has no such files, which is no news.
        let mut host = |name: &str| {
            let place = format!("pressure/{name}");
            let (pressure, malformed) = parse_pressure(reader.path(&self.roots.proc.join(&place)).ok()?);
            skips.malformed(&format!("/proc/{place}"), "the host", &malformed);
            pressure
        };
        self.tenants.moved(reading.active.iter());
        let (host_pressure, memory_pressure) = (host("io"), host("memory"));
        for (id, name) in guests {
            self.tenants.is_guest(id, name);
        }
        Sample {
            devices,
            io: reading.rows,
            usage: round.usage,
            pressure: round.pressure,
            host_pressure,
            memory_pressure,
            // This is the kernel's side; whoever knows the time zone adds it.
            wall_seconds: None,
            spaces,
            subtrees: reading.subtrees,
            skipped: self.skips.take(),
        }
    }

    /// How much was read so far.
    pub fn read_counts(&self) -> ReadCounts {
        ReadCounts { files: self.reader.files_read, opened: self.reader.files_opened }
    }
}

/// The whole disks on which a block device lies, by sysfs at `sys`: its own first, then those at the bottom of its stack (`dm`, `md`,
/// loop). None for a number that is no block device's.
pub fn disks_below(sys: &Path, device: DeviceId) -> Vec<DeviceId> {
    let mut reader = Reader::new();
    let stack = Stack { sys, mounts: &[] };
    let Some(whole) = stack.whole_disk(device, &mut reader) else { return Vec::new() };
    let bottom = stack.bottom(whole, &mut reader);
    std::iter::once(whole).chain(bottom).collect()
}
