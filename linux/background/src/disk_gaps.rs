//! Gaps of one disk: whether others make requests of it, or of any disk that it lies on.

use crate::counters::{Counters, layer};
use crate::disks_below::bottom;
use crate::identity::FileIdentity;
use crate::settings::Settings;
use minerva_background::Gap;
use minerva_model::{BackgroundId, CgroupVersion, DeviceId, Nanos};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How often it is looked for groups, elevators and disks below that changed.
const LOOK_GROUPS: Nanos = Nanos::from_secs(2);

/// Work that goes first on a disk.
pub(crate) struct Front<'a> {
    pub(crate) id: BackgroundId,
    /// What is known of its file system; nothing of what a tenant owes.
    pub(crate) identity: Option<&'a FileIdentity>,
}

/// Whose requests are not those of others.
pub(crate) struct Ours<'a> {
    pub(crate) group: &'a Path,
    /// They are made by threads of the kernel.
    pub(crate) works_in_kernel: bool,
    pub(crate) is_made_by_us: bool,
}

/// A disk whose requests are counted.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    device: DeviceId,
    elevator: String,
}

/// A disk with work on it.
#[derive(Debug)]
pub(crate) struct DiskGaps {
    device: DeviceId,
    counters: Vec<Counters>,
    gap: Gap,
    /// For which work it was last seen what there is, and when.
    seen: Option<(BackgroundId, Nanos)>,
    counted: Vec<Counted>,
    bottom: BTreeSet<DeviceId>,
    /// The kernel has such a disk. Of one that it has not nobody makes requests, and that is no gap.
    is_there: bool,
}

impl DiskGaps {
    pub(crate) fn of(device: DeviceId) -> Self {
        let (counters, counted, bottom) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { device, counters, gap: Gap::default(), seen: None, counted, bottom, is_there: false }
    }

    /// Looks now and then what there is, and where other work comes first.
    pub(crate) fn refresh(&mut self, now: Nanos, settings: &Settings, front: &Front<'_>) {
        if self.seen.is_some_and(|(id, at)| id == front.id && now.since(at) < LOOK_GROUPS) {
            return;
        }
        self.seen = Some((front.id, now));
        let Settings { cgroup_root, version, sys, .. } = settings;
        self.is_there = directory_of(sys, self.device).exists();
        self.bottom = bottom(sys, self.device, front.identity);
        let below = self.bottom.iter().copied().filter(|lower| *lower != self.device);
        let counted: Vec<Counted> = [self.device]
            .into_iter()
            .chain(below)
            .map(|device| Counted { device, elevator: elevator(sys, device) })
            .collect();
        if counted != self.counted {
            self.counters = counters(cgroup_root, *version, self.device, &counted);
            self.counted = counted;
        } else if *version == CgroupVersion::V2 {
            self.counters.iter_mut().for_each(Counters::open_all);
        }
    }

    /// The disks that it lies on; itself if there are none.
    pub(crate) fn bottom(&self) -> &BTreeSet<DeviceId> {
        &self.bottom
    }

    /// Others have the turn of what it lies on: what they do meanwhile says nothing of pauses.
    pub(crate) fn loses_turn(&mut self) {
        self.counters.iter_mut().for_each(Counters::forget);
        self.gap.interrupt();
    }

    /// Whether others have paused, on it and on all that it lies on.
    pub(crate) fn look(&mut self, now: Nanos, ours: &Ours<'_>) -> bool {
        let mut others = 0;
        for counters in &mut self.counters {
            counters.set_ours(ours.group, ours.works_in_kernel, ours.is_made_by_us);
            others += counters.others().unwrap_or(0);
        }
        self.gap.look(now, others) && self.is_there
    }
}

/// Of all disks whose requests the same files count.
fn counters(root: &Path, version: CgroupVersion, own: DeviceId, counted: &[Counted]) -> Vec<Counters> {
    let layers: BTreeSet<&str> = counted.iter().map(|counted| layer(version, &counted.elevator)).collect();
    let of_layer = |of: &&'static str| -> Counters {
        let counted = counted.iter().filter(|counted| layer(version, &counted.elevator) == *of);
        Counters::new(root, version, counted.map(|counted| (counted.device, counted.device != own)).collect(), of)
    };
    layers.iter().map(of_layer).collect()
}

fn directory_of(sys: &Path, device: DeviceId) -> PathBuf {
    sys.join("dev/block").join(device.to_string())
}

/// The elevator in force.
fn elevator(sys: &Path, device: DeviceId) -> String {
    let text = fs::read_to_string(directory_of(sys, device).join("queue/scheduler")).unwrap_or_default();
    let in_force = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    in_force.map_or_else(String::new, |(name, _)| name.to_owned())
}
