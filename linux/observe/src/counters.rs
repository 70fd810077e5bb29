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
//! Files of counters stay open, as far as the process may have so many, so that a tenant costs one call; and tenants below a parent
//! whose counters stand still are not read at all (`parents`).
//!
//! So for each disk the throttle's counters are read if they are armed, else BFQ's if it is in force, else none. When a
//! disk's source changes under a tenant, what is reported stands still for that slice and goes on from there: the two sets
//! have different zeros, and the difference between them is no traffic. It is told as one `skipped` row.

use crate::descriptors::Descriptors;
use crate::disks::KnownDisk;
use crate::parents::Parents;
use crate::parse::{BlkioRow, Parsed, parse_blkio, parse_io_stat};
use crate::read::{Reader, directory_facts, open_below};
use crate::skips::Skips;
use crate::tenants::{Extent, Known};
use minerva_model::{CgroupVersion, DeviceId, IoCounters, TenantId, TenantIo, WaitCounters};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// The file whose lines tell which disks are armed.
const ARMED_FILE: &str = FILES[THROTTLE_BYTES];

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
    wait: Option<WaitCounters>,
    /// It had a row in the last reading.
    is_told: bool,
}

/// What is known of one tenant.
#[derive(Debug, Default)]
struct State {
    pairs: BTreeMap<DeviceId, Pair>,
    /// How much of the group was read last; nothing before the first whole reading.
    extent: Option<Extent>,
    /// Files that stay open, by place in [`FILES`].
    files: BTreeMap<usize, OwnedFd>,
}

/// Counter files: `io.stat`, then of the throttle and of BFQ bytes, operations, and the two times, each with and without what is
/// below.
const FILES: [&str; 13] = [
    "io.stat",
    "blkio.throttle.io_service_bytes",
    "blkio.throttle.io_service_bytes_recursive",
    "blkio.throttle.io_serviced",
    "blkio.throttle.io_serviced_recursive",
    "blkio.bfq.io_service_bytes",
    "blkio.bfq.io_service_bytes_recursive",
    "blkio.bfq.io_serviced",
    "blkio.bfq.io_serviced_recursive",
    "blkio.bfq.io_wait_time",
    "blkio.bfq.io_wait_time_recursive",
    "blkio.bfq.io_service_time",
    "blkio.bfq.io_service_time_recursive",
];
const IO_STAT: usize = 0;
const THROTTLE_BYTES: usize = 1;
const BFQ_BYTES: usize = 5;
/// From a source's bytes to its operations.
const OPERATIONS: usize = 2;
const BFQ_TIMES: [usize; 2] = [9, 11];
/// From a group's own to that with what is below.
const RECURSIVE: usize = 1;

/// Disks that the throttle counts, and those that BFQ does.
type Sources = (BTreeSet<DeviceId>, BTreeSet<DeviceId>);

/// Reads the counters of all tenants.
#[derive(Debug)]
pub(crate) struct Counters {
    states: BTreeMap<TenantId, State>,
    has_bfq_times: bool,
    parents: Parents,
    descriptors: Descriptors,
    /// The tenants' generation for which parents are arranged.
    generation: Option<u64>,
    sources: Sources,
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
        let times = rustix::fs::statat(root, FILES[BFQ_TIMES[1]], rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        Self {
            states: BTreeMap::new(),
            has_bfq_times: times.is_ok(),
            parents: Parents::default(),
            descriptors: Descriptors::default(),
            generation: None,
            sources: Default::default(),
        }
    }

    /// Reads everyone's counters, but for tenants that rest: theirs are what they were. `generation` is another when tenants are.
    pub(crate) fn read(
        &mut self,
        root: &OwnedFd,
        version: CgroupVersion,
        (tenants, generation): (&BTreeMap<TenantId, Known>, u64),
        disks: &BTreeMap<DeviceId, KnownDisk>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Reading {
        self.descriptors.begin_slice();
        if self.descriptors.is_above() {
            self.close_all();
        }
        if self.generation != Some(generation) {
            self.generation = Some(generation);
            self.rearrange(tenants);
        }
        let sources = find_sources(root, version, disks, reader, skips);
        if sources != self.sources {
            self.parents.forget();
            self.sources = sources;
        }
        let resting = self.parents.resting(root, &parents_files(version, &self.sources), reader);
        let mut reading = Reading { rows: Vec::new(), active: BTreeSet::new() };
        let mut raw = Vec::new();
        for (id, known) in tenants {
            let mut state = self.states.remove(id).unwrap_or_default();
            if resting.contains(id) && state.extent == Some(known.extent) {
                reading.rows.extend(state.rows(*id, disks));
                self.states.insert(*id, state);
                continue;
            }
            let descriptors = &mut self.descriptors;
            let mut place =
                Place { root, known, group: None, state: &mut state, descriptors, failed: false, reader, skips };
            raw.clear();
            place.read_sources(version, &self.sources, self.has_bfq_times, &mut raw);
            raw.retain(|row| disks.contains_key(&row.device));
            raw.sort_by_key(|row| row.device);
            raw.dedup_by_key(|row| row.device);
            report(*id, &mut state, &raw, &mut reading, skips);
            self.states.insert(*id, state);
        }
        reading
    }

    /// Lets go of every file that stayed open.
    fn close_all(&mut self) {
        self.states.values_mut().for_each(|state| state.files.clear());
        self.parents.forget();
        self.descriptors.kept = 0;
    }

    /// Forgets tenants that are gone, and arranges the parents of those that are there.
    fn rearrange(&mut self, tenants: &BTreeMap<TenantId, Known>) {
        self.states.retain(|id, _| tenants.contains_key(id));
        self.descriptors.kept = self.states.values().map(|state| state.files.len() as u64).sum();
        self.parents.arrange(tenants);
    }
}

/// Which source counts which disk now.
fn find_sources(
    root: &OwnedFd,
    version: CgroupVersion,
    disks: &BTreeMap<DeviceId, KnownDisk>,
    reader: &mut Reader,
    skips: &mut Skips,
) -> Sources {
    let mut armed = if version == CgroupVersion::V1 { armed(root, reader, skips) } else { BTreeSet::new() };
    // A loop device stays armed after its file is gone; nobody's counters of it are wanted.
    armed.retain(|id| disks.contains_key(id));
    let bfq = disks
        .iter()
        .filter(|(id, disk)| !armed.contains(id) && disk.device.facts.elevator.as_deref() == Some("bfq"))
        .map(|(id, _)| *id)
        .collect();
    (armed, bfq)
}

impl State {
    /// The rows of a tenant that rests.
    fn rows(&self, id: TenantId, disks: &BTreeMap<DeviceId, KnownDisk>) -> impl Iterator<Item = TenantIo> {
        let there = self.pairs.iter().filter(|(device, pair)| pair.is_told && disks.contains_key(device));
        there.map(move |(device, pair)| TenantIo {
            tenant: id,
            device: *device,
            counters: pair.reported,
            wait: pair.wait,
        })
    }
}

/// What of a parent holds all that its tenants' counters can say.
fn parents_files(version: CgroupVersion, (armed, bfq): &Sources) -> Vec<&'static str> {
    if version == CgroupVersion::V2 {
        return vec![FILES[IO_STAT]];
    }
    let sources = [(THROTTLE_BYTES, armed), (BFQ_BYTES, bfq)].into_iter().filter(|(_, disks)| !disks.is_empty());
    sources.map(|(bytes, _)| FILES[bytes + RECURSIVE]).collect()
}

/// Turns what was read of one tenant into what is reported.
fn report(id: TenantId, state: &mut State, raw: &[Raw], reading: &mut Reading, skips: &mut Skips) {
    state.pairs.values_mut().for_each(|pair| pair.is_told = false);
    for row in raw {
        let pairs = &mut state.pairs;
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
        pairs.insert(
            row.device,
            Pair { source: row.source, raw: row.counters, offset, reported, wait: row.wait, is_told: true },
        );
        reading.rows.push(TenantIo { tenant: id, device: row.device, counters: reported, wait: row.wait });
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
    root: &'a OwnedFd,
    known: &'a Known,
    /// Its directory, once a file in it is opened.
    group: Option<OwnedFd>,
    state: &'a mut State,
    descriptors: &'a mut Descriptors,
    /// Not all of it could be read.
    failed: bool,
    reader: &'a mut Reader,
    skips: &'a mut Skips,
}

impl Place<'_> {
    /// Reads the tenant's counters of the disks that each source counts into `raw`.
    fn read_sources(&mut self, version: CgroupVersion, sources: &Sources, has_bfq_times: bool, raw: &mut Vec<Raw>) {
        let extent = self.known.extent;
        if self.state.extent != Some(extent) {
            self.descriptors.kept = self.descriptors.kept.saturating_sub(self.state.files.len() as u64);
            self.state.files.clear();
        }
        if version == CgroupVersion::V2 {
            self.read_io_stat(raw);
        } else {
            self.read_blkio(THROTTLE_BYTES, Source::Throttle(extent), &sources.0, false, raw);
            self.read_blkio(BFQ_BYTES, Source::Bfq(extent), &sources.1, has_bfq_times, raw);
        }
        // Whose reading failed is read again, whatever its parent says.
        self.state.extent = (!self.failed).then_some(extent);
    }

    /// Reads one of [`FILES`] and keeps it open if that may be.
    fn read<T>(&mut self, file: usize, parse: fn(&[u8]) -> Parsed<T>) -> Vec<T> {
        let path = &self.known.tenant.cgroup.path;
        let error = match self.open(file) {
            None => return Vec::new(),
            Some(Err(error)) => error,
            Some(Ok(fd)) => match self.reader.again(&fd) {
                Ok(text) => {
                    let parsed = parse(text);
                    self.failed |= parsed.malformed.count > 0;
                    self.skips.malformed(FILES[file], path, &parsed.malformed);
                    if self.descriptors.take() {
                        self.state.files.insert(file, fd);
                    }
                    return parsed.rows;
                }
                Err(error) => error,
            },
        };
        self.failed = true;
        self.skips.unreadable(FILES[file], path, error);
        Vec::new()
    }

    /// The open file, taken from those that are kept; nothing when the group is gone, which is told here.
    fn open(&mut self, file: usize) -> Option<Result<OwnedFd, Errno>> {
        if let Some(fd) = self.state.files.remove(&file) {
            self.descriptors.kept = self.descriptors.kept.saturating_sub(1);
            return Some(Ok(fd));
        }
        if self.group.is_none() {
            self.group = open_group(self.root, self.known, self.skips);
            self.failed |= self.group.is_none();
        }
        let opened = open_below(self.group.as_ref()?.as_fd(), FILES[file], OFlags::RDONLY);
        if matches!(opened, Err(Errno::MFILE | Errno::NFILE)) {
            self.descriptors.lower();
        }
        self.reader.files_opened += 1;
        Some(opened)
    }

    fn read_io_stat(&mut self, raw: &mut Vec<Raw>) {
        let rows = self.read(IO_STAT, parse_io_stat).into_iter();
        raw.extend(rows.map(|row| Raw {
            device: row.device,
            source: Source::IoStat,
            counters: row.counters,
            wait: None,
        }));
    }

    /// Reads bytes, and operations unless no byte moved: an idle tenant costs one file.
    fn read_blkio(
        &mut self,
        file: usize,
        source: Source,
        wanted: &BTreeSet<DeviceId>,
        times: bool,
        raw: &mut Vec<Raw>,
    ) {
        if wanted.is_empty() {
            return;
        }
        let mut bytes = self.blkio_rows(file);
        bytes.retain(|row| wanted.contains(&row.device));
        let last = |state: &State, row: &BlkioRow| {
            let pair = state.pairs.get(&row.device).filter(|pair| pair.source == source)?;
            (pair.raw.read_bytes == row.read && pair.raw.write_bytes == row.write).then_some(pair.raw)
        };
        let idle = |row: &BlkioRow| (row.read == 0 && row.write == 0) || last(self.state, row).is_some();
        let all_idle = bytes.iter().all(idle);
        let serviced = if all_idle { Vec::new() } else { self.blkio_rows(file + OPERATIONS) };
        let waits = if times { self.waits() } else { BTreeMap::new() };
        for row in bytes {
            let operations = serviced.iter().find(|other| other.device == row.device);
            let counters = match (operations, last(self.state, &row)) {
                (Some(ops), _) => IoCounters {
                    read_bytes: row.read,
                    write_bytes: row.write,
                    read_ops: ops.read,
                    write_ops: ops.write,
                },
                (None, Some(last)) => last,
                (None, None) if all_idle => IoCounters::default(),
                // Bytes without operations would be half a reading: the pair waits for the next slice.
                (None, None) => {
                    self.failed = true;
                    continue;
                }
            };
            raw.push(Raw { device: row.device, source, counters, wait: waits.get(&row.device).copied() });
        }
    }

    /// Time from arrival in BFQ to completion, where the kernel accounts it.
    fn waits(&mut self) -> BTreeMap<DeviceId, WaitCounters> {
        let mut waits: BTreeMap<DeviceId, WaitCounters> = BTreeMap::new();
        for file in BFQ_TIMES {
            for row in self.blkio_rows(file) {
                let wait = waits.entry(row.device).or_default();
                wait.read_ns = wait.read_ns.saturating_add(row.read);
                wait.write_ns = wait.write_ns.saturating_add(row.write);
            }
        }
        waits
    }

    fn blkio_rows(&mut self, file: usize) -> Vec<BlkioRow> {
        let recursive = if self.known.extent == Extent::Subtree { RECURSIVE } else { 0 };
        self.read(file + recursive, parse_blkio)
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
