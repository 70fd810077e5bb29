//! One slice's reading of counters: of what was delegated to users, of other groups above tenants, and of tenants.

use crate::counter_files::{BFQ_BYTES, FILES, GroupReader, IO_STAT, RECURSIVE, Sources, THROTTLE_BYTES};
use crate::descriptors::Descriptors;
use crate::disks::KnownDisk;
use crate::parents::{Groups, Past, Texts};
use crate::parse::{parse_blkio, parse_io_stat};
use crate::read::{Reader, open_below};
use crate::remainder::{Totals, add};
use crate::skips::Skips;
use crate::subtrees::Subtree;
use crate::tenant_counters::{Source, State};
use crate::tenants::{Extent, Known};
use minerva_model::{CgroupRef, CgroupVersion, DeviceId, IoCounters, SubtreeIo, TenantId};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};

/// What one slice reads, and what with.
pub(crate) struct Slice<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) version: CgroupVersion,
    pub(crate) tenants: &'a BTreeMap<TenantId, Known>,
    pub(crate) disks: &'a BTreeMap<DeviceId, KnownDisk>,
    pub(crate) sources: &'a Sources,
    pub(crate) parents_files: Vec<(&'static str, Option<&'a BTreeSet<DeviceId>>)>,
    pub(crate) has_bfq_times: bool,
    /// By path.
    pub(crate) states: &'a mut [(TenantId, State)],
    pub(crate) descriptors: &'a mut Descriptors,
    pub(crate) reader: &'a mut Reader,
    pub(crate) skips: &'a mut Skips,
}

impl Slice<'_> {
    /// Reads what lies below each delegated group, as a whole.
    pub(crate) fn read_subtrees(
        &mut self,
        subtrees: &BTreeMap<u64, Subtree>,
        states: &mut BTreeMap<u64, State>,
    ) -> Vec<SubtreeIo> {
        let mut rows = Vec::new();
        for (inode, subtree) in subtrees {
            let state = states.entry(*inode).or_insert_with(|| State::new(Extent::Subtree));
            self.read_group(&subtree.group, state, false);
            state.end_slice();
            let told = state.pairs.iter().filter(|(_, pair)| pair.is_told);
            rows.extend(told.map(|(device, pair)| subtree.row(*device, pair.reported)));
        }
        rows
    }

    /// Reads one group's counters of the disks that are watched, and takes them in.
    fn read_group(&mut self, cgroup: &CgroupRef, state: &mut State, has_bfq_times: bool) {
        let mut raw = Vec::new();
        let mut group = GroupReader {
            root: self.root,
            cgroup,
            extent: state.wanted,
            group: None,
            state,
            descriptors: self.descriptors,
            failed: false,
            reader: self.reader,
            skips: self.skips,
        };
        group.read_sources(self.version, self.sources, has_bfq_times, &mut raw);
        raw.retain(|row| self.disks.contains_key(&row.device));
        raw.sort_by_key(|row| row.device);
        raw.dedup_by_key(|row| row.device);
        state.take(&raw, self.skips);
    }
}

impl Groups for Slice<'_> {
    fn texts(&mut self, path: &str, files: &mut Vec<OwnedFd>) -> Option<Texts> {
        if files.len() != self.parents_files.len() {
            files.clear();
            for (name, _) in &self.parents_files {
                files.push(open_below(self.root.as_fd(), &format!("{path}/{name}"), OFlags::RDONLY).ok()?);
                self.reader.files_opened += 1;
            }
        }
        let texts: Result<Texts, _> = files.iter().map(|file| self.reader.again(file).map(<[u8]>::to_vec)).collect();
        if texts.is_err() {
            // It was removed, and perhaps made again.
            files.clear();
        }
        texts.ok().filter(|texts| !texts.is_empty())
    }

    fn totals(&self, texts: &Texts) -> Option<Totals> {
        let mut totals = Totals::new();
        for ((_, counted), text) in self.parents_files.iter().zip(texts) {
            let malformed = match counted {
                None => {
                    let parsed = parse_io_stat(text);
                    let there = parsed.rows.iter().filter(|row| self.disks.contains_key(&row.device));
                    there.for_each(|row| add(&mut totals, row.device, &row.counters));
                    parsed.malformed
                }
                Some(counted) => {
                    let parsed = parse_blkio(text);
                    let there = parsed.rows.iter().filter(|row| counted.contains(&row.device));
                    there.for_each(|row| add(&mut totals, row.device, &bytes(row.read, row.write)));
                    parsed.malformed
                }
            };
            if malformed.count > 0 {
                return None;
            }
        }
        Some(totals)
    }

    fn may_fall(&self) -> bool {
        self.version == CgroupVersion::V1
    }

    fn read(&mut self, place: usize) {
        let tenants = self.tenants;
        let Some((tenant, state)) = self.states.get_mut(place) else { return };
        let Some(known) = tenants.get(tenant) else { return };
        let wanted = state.wanted;
        let mut state = std::mem::replace(state, State::new(wanted));
        self.read_group(&known.tenant.cgroup, &mut state, self.has_bfq_times);
        self.states[place].1 = state;
    }

    fn past(&self, place: usize) -> Option<Past> {
        self.states.get(place).filter(|(_, state)| state.is_whole()).map(|(_, state)| state.past)
    }

    fn add_last(&self, place: usize, sum: &mut Totals) {
        let told =
            self.states[place].1.pairs.iter().filter(|(device, pair)| pair.is_told && self.disks.contains_key(device));
        for (device, pair) in told {
            let counters = match pair.source {
                Source::IoStat => pair.raw,
                // Of a parent only bytes are read.
                Source::Throttle(_) | Source::Bfq(_) => bytes(pair.raw.read_bytes, pair.raw.write_bytes),
            };
            add(sum, *device, &counters);
        }
    }
}

/// Counters that count no operations.
fn bytes(read_bytes: u64, write_bytes: u64) -> IoCounters {
    IoCounters { read_bytes, write_bytes, ..IoCounters::default() }
}

/// What of a parent holds all that its tenants' counters can say, each file with the disks of which it does, all if there are none.
pub(crate) fn parents_files(
    version: CgroupVersion,
    (armed, bfq): &Sources,
) -> Vec<(&'static str, Option<&BTreeSet<DeviceId>>)> {
    if version == CgroupVersion::V2 {
        return vec![(FILES[IO_STAT], None)];
    }
    let sources = [(THROTTLE_BYTES, armed), (BFQ_BYTES, bfq)].into_iter().filter(|(_, disks)| !disks.is_empty());
    sources.map(|(bytes, disks)| (FILES[bytes + RECURSIVE], Some(disks))).collect()
}
