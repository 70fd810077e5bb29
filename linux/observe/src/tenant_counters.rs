//! What is known of one group's counters, and what of it is told.

use crate::disks::KnownDisk;
use crate::parents::Past;
use crate::remainder::each;
use crate::skips::Skips;
use crate::tenants::Extent;
use minerva_model::{DeviceId, IoCounters, TenantId, TenantIo, WaitCounters};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

/// Where a pair's counters come from. Counters of two different sources have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    IoStat,
    Throttle(Extent),
    Bfq(Extent),
}

/// What was last read of a tenant on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) source: Source,
    pub(crate) raw: IoCounters,
    /// Added to what is read, modulo 2^64, so that what is reported goes on where another source left it.
    pub(crate) offset: IoCounters,
    pub(crate) reported: IoCounters,
    pub(crate) wait: Option<WaitCounters>,
    pub(crate) served_ns: Option<u64>,
    /// It had a row in the last reading.
    pub(crate) is_told: bool,
}

/// What is known of the counters of one tenant, or of one group above tenants.
#[derive(Debug)]
pub(crate) struct State {
    /// How much of the group is to be read.
    pub(crate) wanted: Extent,
    pub(crate) pairs: BTreeMap<DeviceId, Pair>,
    /// How much of the group was read last; nothing before the first whole reading.
    pub(crate) extent: Option<Extent>,
    /// Its counters moved in this slice.
    pub(crate) has_moved: bool,
    /// How they moved before.
    pub(crate) past: Past,
    /// Files that stay open, by place in [`FILES`].
    pub(crate) files: BTreeMap<usize, OwnedFd>,
}

impl State {
    /// Of a group that was not read yet.
    pub(crate) fn new(wanted: Extent) -> Self {
        let past = Past { still_slices: u8::MAX, pace: 0 };
        Self { wanted, pairs: BTreeMap::new(), extent: None, has_moved: false, past, files: BTreeMap::new() }
    }

    /// It was read as a whole, and as it is to be read now.
    pub(crate) fn is_whole(&self) -> bool {
        self.extent == Some(self.wanted)
    }

    /// What is told of it, if it is this tenant.
    pub(crate) fn rows(
        &self,
        tenant: TenantId,
        disks: &BTreeMap<DeviceId, KnownDisk>,
    ) -> impl Iterator<Item = TenantIo> {
        let there = self.pairs.iter().filter(|(device, pair)| pair.is_told && disks.contains_key(device));
        there.map(move |(device, pair)| TenantIo {
            tenant,
            device: *device,
            counters: pair.reported,
            wait: pair.wait,
            served_ns: pair.served_ns,
        })
    }

    /// Ends a slice; the answer is whether its counters moved in it.
    pub(crate) fn end_slice(&mut self) -> bool {
        let has_moved = std::mem::take(&mut self.has_moved);
        self.past.still_slices = if has_moved { 0 } else { self.past.still_slices.saturating_add(1) };
        has_moved
    }

    /// Takes in what was read of its counters.
    pub(crate) fn take(&mut self, raw: &[Raw], skips: &mut Skips) {
        self.pairs.values_mut().for_each(|pair| pair.is_told = false);
        let (mut pace, moved_before) = (0_u64, self.has_moved);
        for row in raw {
            let before = self.pairs.get(&row.device).copied();
            if before.is_none() && row.counters == IoCounters::default() {
                continue;
            }
            let mut offset = before.map_or_else(IoCounters::default, |pair| pair.offset);
            if let Some(pair) = before {
                let switched = pair.source != row.source;
                let restarted = has_gone_backwards(&pair.raw, &row.counters) && pair.offset != IoCounters::default();
                if switched || restarted {
                    offset = each(&pair.reported, &row.counters, u64::wrapping_sub);
                    skips.note("blkio counters", 1, || {
                        format!("of {}: counted from another zero now; this slice's transfers are not told", row.device)
                    });
                }
            }
            let reported = each(&row.counters, &offset, u64::wrapping_add);
            let last = before.map_or_else(IoCounters::default, |pair| pair.reported);
            if last != reported {
                self.has_moved = true;
                let moved = each(&reported, &last, u64::saturating_sub);
                pace = pace.saturating_add(moved.bytes()).saturating_add(moved.ops());
            }
            let Raw { device, source, counters, wait, served_ns } = *row;
            self.pairs.insert(device, Pair { source, raw: counters, offset, reported, wait, served_ns, is_told: true });
        }
        if pace > 0 {
            // It may be read twice in a slice.
            let before = if moved_before { self.past.pace } else { 0 };
            self.past.pace = before.saturating_add(pace);
        }
    }
}

/// One group's row before its source's zero is taken into account.
pub(crate) struct Raw {
    pub(crate) device: DeviceId,
    pub(crate) source: Source,
    pub(crate) counters: IoCounters,
    pub(crate) wait: Option<WaitCounters>,
    /// The disk's time by iocost's account.
    pub(crate) served_ns: Option<u64>,
}

fn has_gone_backwards(before: &IoCounters, now: &IoCounters) -> bool {
    now.read_bytes < before.read_bytes
        || now.write_bytes < before.write_bytes
        || now.read_ops < before.read_ops
        || now.write_ops < before.write_ops
}
