//! What each tenant transferred on each disk, from `io.stat` (v2) or the `blkio` counters (v1).
//!
//! On v1 there are two sets of counters, and neither is always there. Checked on Linux 6.18:
//!
//! - `blkio.throttle.io_service_bytes` has no line for a disk until the first throttle rule of any group on that disk; then
//!   every group has one, from zero, whatever the elevator. It stays when the rule is removed, and even when a loop device is
//!   detached and attached again. The root group's file has a line, be it of zeros, for each disk armed this way: that is how
//!   it is told here. It counts a request when it is submitted.
//! - `blkio.bfq.io_service_bytes` has lines only for disks whose elevator is BFQ now, and starts from zero each time BFQ is
//!   put in force.
//! - The `_recursive` files add the groups below, also those that are removed since. Removing a child takes nothing away.
//! - `io_service_time` and `io_wait_time` exist only in a kernel with `CONFIG_BFQ_CGROUP_DEBUG`, which most are not.
//!
//! So for each disk the throttle's counters are read if they are armed, else BFQ's if it is in force, else none. When a
//! disk's source changes under a tenant, what is reported stands still for that slice and goes on from there: the two sets
//! have different zeros, and the difference between them is no traffic. It is told as one `skipped` row.

use crate::disks::KnownDisk;
use crate::parse::{BlkioRow, parse_blkio, parse_io_stat};
use crate::read::{Reader, directory_facts, open_below};
use crate::skips::Skips;
use crate::tenants::{Extent, Known};
use minerva_model::{CgroupVersion, DeviceId, IoCounters, TenantId, TenantIo, WaitCounters};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};

/// The file whose lines tell which disks are armed.
const ARMED_FILE: &str = "blkio.throttle.io_service_bytes";

/// Where a pair's counters come from. Counters of two different sources have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    IoStat,
    Throttle(Extent),
    Bfq(Extent),
}

/// What was last read of a tenant on a disk.
#[derive(Clone, Copy, Debug)]
struct Pair {
    source: Source,
    raw: IoCounters,
    /// Added to what is read, modulo 2^64, so that what is reported goes on where another source left it.
    offset: IoCounters,
    reported: IoCounters,
}

/// Reads the counters of all tenants.
#[derive(Debug)]
pub(crate) struct Counters {
    pairs: BTreeMap<TenantId, BTreeMap<DeviceId, Pair>>,
    has_bfq_times: bool,
}

/// What one reading gave.
pub(crate) struct Reading {
    /// Sorted by tenant, then disk.
    pub(crate) rows: Vec<TenantIo>,
    /// Tenants whose counters moved.
    pub(crate) active: BTreeSet<TenantId>,
}

/// One tenant's row before its source's zero is taken into account.
struct Raw {
    device: DeviceId,
    source: Source,
    counters: IoCounters,
    wait: Option<WaitCounters>,
}

impl Counters {
    pub(crate) fn new(root: &OwnedFd) -> Self {
        let times = rustix::fs::statat(root, "blkio.bfq.io_service_time", rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        Self { pairs: BTreeMap::new(), has_bfq_times: times.is_ok() }
    }

    /// Reads everyone's counters.
    pub(crate) fn read(
        &mut self,
        root: &OwnedFd,
        version: CgroupVersion,
        tenants: &BTreeMap<TenantId, Known>,
        disks: &BTreeMap<DeviceId, KnownDisk>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Reading {
        self.pairs.retain(|id, _| tenants.contains_key(id));
        let mut armed = if version == CgroupVersion::V1 { armed(root, reader, skips) } else { BTreeSet::new() };
        // A loop device stays armed after its file is gone; nobody's counters of it are wanted.
        armed.retain(|id| disks.contains_key(id));
        let bfq: BTreeSet<DeviceId> = disks
            .iter()
            .filter(|(id, disk)| !armed.contains(id) && disk.device.facts.elevator.as_deref() == Some("bfq"))
            .map(|(id, _)| *id)
            .collect();
        let mut reading = Reading { rows: Vec::new(), active: BTreeSet::new() };
        let mut raw = Vec::new();
        for (id, known) in tenants {
            let Some(group) = open_group(root, known, skips) else { continue };
            let mut place = Place { known, group: &group, reader, skips };
            raw.clear();
            if version == CgroupVersion::V2 {
                place.read_io_stat(&mut raw);
            } else {
                let known_pairs = self.pairs.get(id);
                for (prefix, source, wanted) in [
                    ("blkio.throttle", Source::Throttle(known.extent), &armed),
                    ("blkio.bfq", Source::Bfq(known.extent), &bfq),
                ] {
                    let times = self.has_bfq_times && matches!(source, Source::Bfq(_));
                    place.read_blkio(prefix, source, wanted, times, known_pairs, &mut raw);
                }
            }
            raw.retain(|row| disks.contains_key(&row.device));
            raw.sort_by_key(|row| row.device);
            raw.dedup_by_key(|row| row.device);
            self.report(*id, &raw, &mut reading, skips);
        }
        reading
    }

    /// Turns what was read of one tenant into what is reported.
    fn report(&mut self, id: TenantId, raw: &[Raw], reading: &mut Reading, skips: &mut Skips) {
        for row in raw {
            let pairs = self.pairs.entry(id).or_default();
            let before = pairs.get(&row.device).copied();
            if before.is_none() && row.counters == IoCounters::default() {
                continue;
            }
            let mut offset = before.map_or_else(IoCounters::default, |pair| pair.offset);
            if let Some(pair) = before {
                let switched = pair.source != row.source;
                let restarted = went_backwards(&pair.raw, &row.counters) && pair.offset != IoCounters::default();
                if switched || restarted {
                    offset = combine(&pair.reported, &row.counters, u64::wrapping_sub);
                    skips.note("blkio counters", 1, || {
                        format!("of {}: counted from another zero now; this slice's transfers are not told", row.device)
                    });
                }
            }
            let reported = combine(&row.counters, &offset, u64::wrapping_add);
            if before.is_none_or(|pair| pair.reported != reported) {
                reading.active.insert(id);
            }
            pairs.insert(row.device, Pair { source: row.source, raw: row.counters, offset, reported });
            reading.rows.push(TenantIo { tenant: id, device: row.device, counters: reported, wait: row.wait });
        }
    }
}

/// Disks whose throttle counters tick.
fn armed(root: &OwnedFd, reader: &mut Reader, skips: &mut Skips) -> BTreeSet<DeviceId> {
    match reader.below(root.as_fd(), ARMED_FILE) {
        Ok(text) => {
            let parsed = parse_blkio(text);
            skips.malformed(ARMED_FILE, "the root group", &parsed.malformed);
            parsed.rows.iter().map(|row| row.device).collect()
        }
        Err(error) => {
            skips.unreadable(ARMED_FILE, "the root group", error);
            BTreeSet::new()
        }
    }
}

/// Opens a tenant's directory, if it is still the one that was met.
fn open_group(root: &OwnedFd, known: &Known, skips: &mut Skips) -> Option<OwnedFd> {
    let cgroup = &known.tenant.cgroup;
    match open_below(root.as_fd(), &cgroup.path, OFlags::PATH | OFlags::DIRECTORY) {
        Ok(group) => {
            let same = directory_facts(&group, "").is_some_and(|facts| facts.inode == cgroup.inode);
            same.then_some(group)
        }
        Err(error) => {
            skips.unreadable("cgroup directories", &cgroup.path, error);
            None
        }
    }
}

/// One tenant while it is read.
struct Place<'a> {
    known: &'a Known,
    group: &'a OwnedFd,
    reader: &'a mut Reader,
    skips: &'a mut Skips,
}

impl Place<'_> {
    fn read_io_stat(&mut self, raw: &mut Vec<Raw>) {
        let path = &self.known.tenant.cgroup.path;
        match self.reader.below(self.group.as_fd(), "io.stat") {
            Ok(text) => {
                let parsed = parse_io_stat(text);
                self.skips.malformed("io.stat", path, &parsed.malformed);
                raw.extend(parsed.rows.into_iter().map(|row| Raw {
                    device: row.device,
                    source: Source::IoStat,
                    counters: row.counters,
                    wait: None,
                }));
            }
            Err(error) => self.skips.unreadable("io.stat", path, error),
        }
    }

    /// Reads bytes, and operations unless no byte moved: an idle tenant costs one file.
    fn read_blkio(
        &mut self,
        prefix: &str,
        source: Source,
        wanted: &BTreeSet<DeviceId>,
        times: bool,
        pairs: Option<&BTreeMap<DeviceId, Pair>>,
        raw: &mut Vec<Raw>,
    ) {
        if wanted.is_empty() {
            return;
        }
        let mut bytes = self.blkio_rows(prefix, "io_service_bytes");
        bytes.retain(|row| wanted.contains(&row.device));
        let last = |row: &BlkioRow| {
            let pair = pairs?.get(&row.device).filter(|pair| pair.source == source)?;
            (pair.raw.read_bytes == row.read && pair.raw.write_bytes == row.write).then_some(pair.raw)
        };
        let idle = |row: &BlkioRow| (row.read == 0 && row.write == 0) || last(row).is_some();
        let all_idle = bytes.iter().all(idle);
        let serviced = if all_idle { Vec::new() } else { self.blkio_rows(prefix, "io_serviced") };
        let waits = if times { self.waits(prefix) } else { BTreeMap::new() };
        for row in bytes {
            let operations = serviced.iter().find(|other| other.device == row.device);
            let counters = match (operations, last(&row)) {
                (Some(ops), _) => IoCounters {
                    read_bytes: row.read,
                    write_bytes: row.write,
                    read_ops: ops.read,
                    write_ops: ops.write,
                },
                (None, Some(last)) => last,
                (None, None) if all_idle => IoCounters::default(),
                // Bytes without operations would be half a reading: the pair waits for the next slice.
                (None, None) => continue,
            };
            raw.push(Raw { device: row.device, source, counters, wait: waits.get(&row.device).copied() });
        }
    }

    /// Time from arrival in BFQ to completion, where the kernel accounts it.
    fn waits(&mut self, prefix: &str) -> BTreeMap<DeviceId, WaitCounters> {
        let mut waits: BTreeMap<DeviceId, WaitCounters> = BTreeMap::new();
        for file in ["io_wait_time", "io_service_time"] {
            for row in self.blkio_rows(prefix, file) {
                let wait = waits.entry(row.device).or_default();
                wait.read_ns = wait.read_ns.saturating_add(row.read);
                wait.write_ns = wait.write_ns.saturating_add(row.write);
            }
        }
        waits
    }

    fn blkio_rows(&mut self, prefix: &str, file: &str) -> Vec<BlkioRow> {
        let suffix = if self.known.extent == Extent::Subtree { "_recursive" } else { "" };
        let name = format!("{prefix}.{file}{suffix}");
        let path = &self.known.tenant.cgroup.path;
        match self.reader.below(self.group.as_fd(), &name) {
            Ok(text) => {
                let parsed = parse_blkio(text);
                self.skips.malformed(&name, path, &parsed.malformed);
                parsed.rows
            }
            Err(error) => {
                self.skips.unreadable(&name, path, error);
                Vec::new()
            }
        }
    }
}

fn combine(a: &IoCounters, b: &IoCounters, with: fn(u64, u64) -> u64) -> IoCounters {
    IoCounters {
        read_bytes: with(a.read_bytes, b.read_bytes),
        write_bytes: with(a.write_bytes, b.write_bytes),
        read_ops: with(a.read_ops, b.read_ops),
        write_ops: with(a.write_ops, b.write_ops),
    }
}

fn went_backwards(before: &IoCounters, now: &IoCounters) -> bool {
    now.read_bytes < before.read_bytes
        || now.write_bytes < before.write_bytes
        || now.read_ops < before.read_ops
        || now.write_ops < before.write_ops
}
