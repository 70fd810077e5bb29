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
//! - The `_recursive` files add the groups below that are there. What a group did that is removed is in them for some milliseconds
//!   more, and then gone. So what a user's groups do that come and go between two looks (`subtrees`) is known on v2 only, whose
//!   `io.stat` keeps it.
//! - `io_service_time` and `io_wait_time` exist only in a kernel with `CONFIG_BFQ_CGROUP_DEBUG`, which most are not.
//!
//! Files of counters stay open, as far as the process may have so many, so that a tenant costs one call; and tenants below a parent
//! whose counters stand still are not read at all (`parents`).
//!
//! So for each disk the throttle's counters are read if they are armed, else BFQ's if it is in force, else none. When a
//! disk's source changes under a tenant, what is reported stands still for that slice and goes on from there: the two sets
//! have different zeros, and the difference between them is no traffic. It is told as one `skipped` row.

use crate::counter_files::{
    BFQ_BYTES, BFQ_TIMES, FILES, GroupReader, IO_STAT, Pair, RECURSIVE, Raw, Sources, State, THROTTLE_BYTES,
};
use crate::descriptors::Descriptors;
use crate::disks::KnownDisk;
use crate::parents::Parents;
use crate::parse::parse_blkio;
use crate::read::Reader;
use crate::skips::Skips;
use crate::subtrees::Subtree;
use crate::tenants::{Extent, Known};
use minerva_model::{CgroupVersion, DeviceId, IoCounters, SubtreeIo, TenantId, TenantIo};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};

/// The file whose lines tell which disks are armed.
const ARMED_FILE: &str = FILES[THROTTLE_BYTES];

/// Reads the counters of all tenants.
#[derive(Debug)]
pub(crate) struct Counters {
    states: BTreeMap<TenantId, State>,
    /// By inode of the delegated group.
    subtree_states: BTreeMap<u64, State>,
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
    /// Of what was delegated to users, each as a whole; sorted by inode, then disk.
    pub(crate) subtrees: Vec<SubtreeIo>,
    /// Tenants whose counters moved.
    pub(crate) active: BTreeSet<TenantId>,
}

/// Whose counters are read.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    pub(crate) tenants: &'a BTreeMap<TenantId, Known>,
    pub(crate) subtrees: &'a BTreeMap<u64, Subtree>,
    /// Another one when tenants are.
    pub(crate) generation: u64,
}

impl Counters {
    pub(crate) fn new(root: &OwnedFd) -> Self {
        let times = rustix::fs::statat(root, FILES[BFQ_TIMES[1]], rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        Self {
            states: BTreeMap::new(),
            subtree_states: BTreeMap::new(),
            has_bfq_times: times.is_ok(),
            parents: Parents::default(),
            descriptors: Descriptors::default(),
            generation: None,
            sources: Default::default(),
        }
    }

    /// Reads everyone's counters, but for tenants that rest: theirs are what they were.
    pub(crate) fn read(
        &mut self,
        root: &OwnedFd,
        version: CgroupVersion,
        counted: Counted<'_>,
        disks: &BTreeMap<DeviceId, KnownDisk>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Reading {
        let Counted { tenants, generation, .. } = counted;
        self.descriptors.begin_slice();
        if self.descriptors.is_above() {
            self.close_all();
        }
        if self.generation != Some(generation) {
            self.generation = Some(generation);
            self.rearrange(counted);
        }
        let sources = find_sources(root, version, disks, reader, skips);
        if sources != self.sources {
            self.parents.forget();
            self.sources = sources;
        }
        // Before any tenant below, so that whatever is in a tenant's counters and not in these comes in the next slice.
        let subtrees = self.read_subtrees((root, version), counted.subtrees, disks, reader, skips);
        let resting = self.parents.resting(root, &parents_files(version, &self.sources), reader);
        let mut reading = Reading { rows: Vec::new(), subtrees, active: BTreeSet::new() };
        let mut raw = Vec::new();
        for (id, known) in tenants {
            let mut state = self.states.remove(id).unwrap_or_default();
            if resting.contains(id) && state.extent == Some(known.extent) {
                reading.rows.extend(state.rows(*id, disks));
                self.states.insert(*id, state);
                continue;
            }
            let descriptors = &mut self.descriptors;
            let (cgroup, extent) = (&known.tenant.cgroup, known.extent);
            let state_read = &mut state;
            let mut place = GroupReader {
                root,
                cgroup,
                extent,
                group: None,
                state: state_read,
                descriptors,
                failed: false,
                reader,
                skips,
            };
            raw.clear();
            place.read_sources(version, &self.sources, self.has_bfq_times, &mut raw);
            let raw = of_disks(&mut raw, disks);
            if follow(&mut state, raw, skips) {
                reading.active.insert(*id);
            }
            reading.rows.extend(state.rows(*id, disks));
            self.states.insert(*id, state);
        }
        reading
    }

    /// Reads what lies below each delegated group, as a whole.
    fn read_subtrees(
        &mut self,
        (root, version): (&OwnedFd, CgroupVersion),
        subtrees: &BTreeMap<u64, Subtree>,
        disks: &BTreeMap<DeviceId, KnownDisk>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Vec<SubtreeIo> {
        let (mut rows, mut raw) = (Vec::new(), Vec::new());
        for (inode, subtree) in subtrees {
            let state = self.subtree_states.entry(*inode).or_default();
            let descriptors = &mut self.descriptors;
            let (cgroup, extent) = (&subtree.group, Extent::Subtree);
            let mut place =
                GroupReader { root, cgroup, extent, group: None, state, descriptors, failed: false, reader, skips };
            raw.clear();
            place.read_sources(version, &self.sources, false, &mut raw);
            let raw = of_disks(&mut raw, disks);
            follow(state, raw, skips);
            let told = state.pairs.iter().filter(|(_, pair)| pair.is_told);
            rows.extend(told.map(|(device, pair)| subtree.row(*device, pair.reported)));
        }
        rows
    }

    /// Lets go of every file that stayed open.
    fn close_all(&mut self) {
        self.states.values_mut().chain(self.subtree_states.values_mut()).for_each(|state| state.files.clear());
        self.parents.forget();
        self.descriptors.kept = 0;
    }

    /// Forgets tenants that are gone, and arranges the parents of those that are there.
    fn rearrange(&mut self, counted: Counted<'_>) {
        self.states.retain(|id, _| counted.tenants.contains_key(id));
        self.subtree_states.retain(|inode, _| counted.subtrees.contains_key(inode));
        let states = self.states.values().chain(self.subtree_states.values());
        self.descriptors.kept = states.map(|state| state.files.len() as u64).sum();
        self.parents.arrange(counted.tenants);
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
            served_ns: pair.served_ns,
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

/// What was read of disks that are watched, each once.
fn of_disks<'a>(raw: &'a mut Vec<Raw>, disks: &BTreeMap<DeviceId, KnownDisk>) -> &'a [Raw] {
    raw.retain(|row| disks.contains_key(&row.device));
    raw.sort_by_key(|row| row.device);
    raw.dedup_by_key(|row| row.device);
    raw
}

/// Turns what was read of one group into what is reported; whether that moved.
fn follow(state: &mut State, raw: &[Raw], skips: &mut Skips) -> bool {
    state.pairs.values_mut().for_each(|pair| pair.is_told = false);
    let mut has_moved = false;
    for row in raw {
        let pairs = &mut state.pairs;
        let before = pairs.get(&row.device).copied();
        if before.is_none() && row.counters == IoCounters::default() {
            continue;
        }
        let mut offset = before.map_or_else(IoCounters::default, |pair| pair.offset);
        if let Some(pair) = before {
            let switched = pair.source != row.source;
            let restarted = has_gone_backwards(&pair.raw, &row.counters) && pair.offset != IoCounters::default();
            if switched || restarted {
                offset = combine(&pair.reported, &row.counters, u64::wrapping_sub);
                skips.note("blkio counters", 1, || {
                    format!("of {}: counted from another zero now; this slice's transfers are not told", row.device)
                });
            }
        }
        let reported = combine(&row.counters, &offset, u64::wrapping_add);
        has_moved |= before.is_none_or(|pair| pair.reported != reported);
        pairs.insert(
            row.device,
            Pair {
                source: row.source,
                raw: row.counters,
                offset,
                reported,
                wait: row.wait,
                served_ns: row.served_ns,
                is_told: true,
            },
        );
    }
    has_moved
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

fn combine(a: &IoCounters, b: &IoCounters, with: fn(u64, u64) -> u64) -> IoCounters {
    IoCounters {
        read_bytes: with(a.read_bytes, b.read_bytes),
        write_bytes: with(a.write_bytes, b.write_bytes),
        read_ops: with(a.read_ops, b.read_ops),
        write_ops: with(a.write_ops, b.write_ops),
    }
}

fn has_gone_backwards(before: &IoCounters, now: &IoCounters) -> bool {
    now.read_bytes < before.read_bytes
        || now.write_bytes < before.write_bytes
        || now.read_ops < before.read_ops
        || now.write_ops < before.write_ops
}
