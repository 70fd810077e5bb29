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

use crate::counter_files::{BFQ_TIMES, FILES, Sources, THROTTLE_BYTES};
use crate::counter_slice::{Slice, parents_files};
use crate::descriptors::Descriptors;
use crate::disks::KnownDisk;
use crate::parents::Parents;
use crate::parse::parse_blkio;
use crate::read::Reader;
use crate::skips::Skips;
use crate::subtrees::Subtree;
use crate::tenant_counters::State;
use crate::tenants::Known;
use minerva_model::{CgroupVersion, DeviceId, SubtreeIo, TenantId, TenantIo};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};

/// The file whose lines tell which disks are armed.
const ARMED_FILE: &str = FILES[THROTTLE_BYTES];

/// Reads the counters of all tenants.
#[derive(Debug)]
pub(crate) struct Counters {
    /// By path, as the parents have them in order.
    states: Vec<(TenantId, State)>,
    /// Their places in that, by tenant.
    by_tenant: Vec<usize>,
    /// By inode of the delegated group.
    subtree_states: BTreeMap<u64, State>,
    has_bfq_times: bool,
    parents: Parents,
    descriptors: Descriptors,
    /// The tenants' generation for which parents are arranged.
    generation: Option<u64>,
    sources: Sources,
    /// The disks of the last reading, with what tells one from another of its number.
    disks: Vec<(DeviceId, String)>,
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
            states: Vec::new(),
            by_tenant: Vec::new(),
            subtree_states: BTreeMap::new(),
            has_bfq_times: times.is_ok(),
            parents: Parents::default(),
            descriptors: Descriptors::default(),
            generation: None,
            sources: Default::default(),
            disks: Vec::new(),
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
        let Counted { tenants, subtrees, generation } = counted;
        self.descriptors.begin_slice();
        if self.descriptors.is_above() {
            self.close_all();
        }
        if self.generation != Some(generation) {
            self.generation = Some(generation);
            self.rearrange(counted);
        }
        self.look_at_disks(root, version, disks, reader, skips);
        let mut slice = Slice {
            root,
            version,
            tenants,
            disks,
            sources: &self.sources,
            parents_files: parents_files(version, &self.sources),
            has_bfq_times: self.has_bfq_times,
            states: &mut self.states,
            descriptors: &mut self.descriptors,
            reader,
            skips,
        };
        // Before any tenant below, so that whatever is in a tenant's counters and not in these comes in the next slice.
        let subtrees = slice.read_subtrees(subtrees, &mut self.subtree_states);
        self.parents.read(&mut slice);
        let mut reading = Reading { rows: Vec::new(), subtrees, active: BTreeSet::new() };
        for place in &self.by_tenant {
            let (tenant, state) = &mut self.states[*place];
            if state.end_slice() {
                reading.active.insert(*tenant);
            }
            reading.rows.extend(state.rows(*tenant, disks));
        }
        reading
    }

    /// Forgets what other disks, or other counters of them, said of parents.
    fn look_at_disks(
        &mut self,
        root: &OwnedFd,
        version: CgroupVersion,
        disks: &BTreeMap<DeviceId, KnownDisk>,
        reader: &mut Reader,
        skips: &mut Skips,
    ) {
        let sources = find_sources(root, version, disks, reader, skips);
        let now = disks.iter().map(|(id, disk)| (*id, disk.sequence()));
        if sources != self.sources || !now.clone().eq(self.disks.iter().map(|(id, sequence)| (*id, sequence.as_str())))
        {
            self.parents.forget();
            self.sources = sources;
            self.disks = now.map(|(id, sequence)| (id, sequence.to_owned())).collect();
        }
    }

    /// Lets go of every file that stayed open.
    fn close_all(&mut self) {
        let states = self.states.iter_mut().map(|(_, state)| state).chain(self.subtree_states.values_mut());
        states.for_each(|state| state.files.clear());
        self.parents.forget();
        self.descriptors.kept = 0;
    }

    /// Forgets tenants that are gone, and arranges the parents of those that are there.
    fn rearrange(&mut self, Counted { tenants, subtrees, .. }: Counted<'_>) {
        let mut before: BTreeMap<TenantId, State> = std::mem::take(&mut self.states).into_iter().collect();
        let by_path = tenants.iter().map(|(id, known)| (known.tenant.cgroup.path.as_str(), *id, known.extent));
        let order = self.parents.arrange(by_path).into_iter();
        let arranged = order.map(|(tenant, wanted)| match before.remove(&tenant) {
            Some(state) => (tenant, State { wanted, ..state }),
            None => (tenant, State::new(wanted)),
        });
        self.states = arranged.collect();
        self.by_tenant = (0..self.states.len()).collect();
        self.by_tenant.sort_unstable_by_key(|place| self.states[*place].0);
        self.subtree_states.retain(|inode, _| subtrees.contains_key(inode));
        let states = self.states.iter().map(|(_, state)| state).chain(self.subtree_states.values());
        self.descriptors.kept = states.map(|state| state.files.len() as u64).sum();
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
