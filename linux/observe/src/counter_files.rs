//! The files in which the kernel counts what one tenant transferred, and reading them. Which there are, and when, says `counters`.

use crate::descriptors::Descriptors;
use crate::parse::{BlkioRow, Parsed, parse_blkio, parse_io_stat};
use crate::read::{Reader, directory_facts, open_below};
use crate::skips::Skips;
use crate::tenant_counters::{Raw, Source, State};
use crate::tenants::Extent;
use minerva_model::{CgroupRef, CgroupVersion, DeviceId, IoCounters, WaitCounters};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// Counter files: `io.stat`, then of the throttle and of BFQ bytes, operations, and the two times, each with and without what is
/// below.
pub(crate) const FILES: [&str; 13] = [
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
pub(crate) const IO_STAT: usize = 0;
pub(crate) const THROTTLE_BYTES: usize = 1;
pub(crate) const BFQ_BYTES: usize = 5;
/// From a source's bytes to its operations.
pub(crate) const OPERATIONS: usize = 2;
pub(crate) const BFQ_TIMES: [usize; 2] = [9, 11];
/// From a group's own to that with what is below.
pub(crate) const RECURSIVE: usize = 1;

/// Disks that the throttle counts, and those that BFQ does.
pub(crate) type Sources = (BTreeSet<DeviceId>, BTreeSet<DeviceId>);

/// Opens a group's directory, if it is still the one that was met.
fn open_group(root: &OwnedFd, cgroup: &CgroupRef, skips: &mut Skips) -> Option<OwnedFd> {
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

/// One tenant, or one group above tenants, while it is read.
pub(crate) struct GroupReader<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) cgroup: &'a CgroupRef,
    pub(crate) extent: Extent,
    /// Its directory, once a file in it is opened.
    pub(crate) group: Option<OwnedFd>,
    pub(crate) state: &'a mut State,
    pub(crate) descriptors: &'a mut Descriptors,
    /// Not all of it could be read.
    pub(crate) failed: bool,
    pub(crate) reader: &'a mut Reader,
    pub(crate) skips: &'a mut Skips,
}

impl GroupReader<'_> {
    /// Reads the tenant's counters of the disks that each source counts into `raw`.
    pub(crate) fn read_sources(
        &mut self,
        version: CgroupVersion,
        sources: &Sources,
        has_bfq_times: bool,
        raw: &mut Vec<Raw>,
    ) {
        let extent = self.extent;
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
        let path = &self.cgroup.path;
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
            self.group = open_group(self.root, self.cgroup, self.skips);
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
            served_ns: row.cost_usage_us.map(|us| us.saturating_mul(1_000)),
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
            let wait = waits.get(&row.device).copied();
            raw.push(Raw { device: row.device, source, counters, wait, served_ns: None });
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
        let recursive = if self.extent == Extent::Subtree { RECURSIVE } else { 0 };
        self.read(file + recursive, parse_blkio)
    }
}
