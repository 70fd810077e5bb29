//! Whole disks: which there are, and the facts that tell which knob bites on each.
//!
//! RAM disks and compressed RAM are left out, and so are loop devices without a file. A disk's identity is its number and the
//! kernel's `diskseq`, so that a loop device that got another file, or a number that was given to another disk, is a new one.
//!
//! What cannot be read is unknown and not gone: until it can be read again, the disks known before are those that are there.

use crate::parse::{MountRow, parse_elevators, parse_io_cost_model, parse_io_cost_qos, parse_mountinfo};
use crate::read::Reader;
use crate::roots::Roots;
use crate::skips::Skips;
use crate::stack::{DELETED, Stack};
use minerva_model::{CgroupVersion, Device, DeviceFacts, DeviceId, Event};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of disks that hold memory.
const MEMORY_DISKS: [&str; 2] = ["ram", "zram"];

/// The disks that are there.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    pub(crate) known: BTreeMap<DeviceId, KnownDisk>,
}

/// A disk that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownDisk {
    pub(crate) device: Device,
    /// Which disk of this number it is.
    incarnation: Incarnation,
}

/// What changes when a number is given to another disk. All but facts about the disks' stacks are read again every time;
/// the stacks only when this changes of a disk that was there before, for they cost the mount table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Incarnation {
    sequence: String,
    backing_file: String,
    slaves: Vec<String>,
}

/// What the hierarchy says of all disks together.
struct HierarchyFacts {
    controller_enabled: bool,
    writeback_attributed: bool,
    iocost_available: bool,
    iocost_enabled: Vec<DeviceId>,
    /// Those whose model the kernel chose.
    iocost_models_guessed: Vec<DeviceId>,
    throttle_available: bool,
}

impl KnownDisk {
    /// What tells this disk from others that had its number: the kernel's count of disks, which Linux has since 5.15; before that the
    /// name of a loop device's file, so that one whose file is renamed counts as another, and of others nothing.
    pub(crate) fn sequence(&self) -> &str {
        let Incarnation { sequence, backing_file, .. } = &self.incarnation;
        // A file that was removed is still the same one.
        if sequence.is_empty() { backing_file.trim_end_matches(DELETED) } else { sequence }
    }
}

impl Disks {
    /// Looks for disks that came, went or changed.
    pub(crate) fn discover(
        &mut self,
        roots: &Roots,
        hierarchy: &OwnedFd,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> Vec<Event> {
        let names = match disk_names(&roots.sys) {
            Ok(names) => names,
            Err(error) => {
                skips.note("/sys/block", 1, || format!("cannot be listed: {error}"));
                return Vec::new();
            }
        };
        let now = self.look_at(names, roots, hierarchy, reader, skips);
        let before = std::mem::replace(&mut self.known, now);
        differences(&before, &self.known)
    }

    /// The disks among `names` as they are now. Of one whose number cannot be read, what was known stays.
    fn look_at(
        &self,
        names: Vec<String>,
        roots: &Roots,
        hierarchy: &OwnedFd,
        reader: &mut Reader,
        skips: &mut Skips,
    ) -> BTreeMap<DeviceId, KnownDisk> {
        let shared = hierarchy_facts(roots, hierarchy, reader, skips);
        let mut mounts: Option<Vec<MountRow>> = None;
        let mut now = BTreeMap::new();
        let found: Vec<Found> = names.into_iter().filter_map(|name| Self::find(name, roots, reader, skips)).collect();
        // What a disk stands on in the end changes with any that lies between.
        let has_changed = found.iter().any(|found| match found {
            Found::Now(id, _, now) => self.known.get(id).is_some_and(|known| known.incarnation != *now),
            Found::Unreadable(_) => false,
        });
        for found in found {
            let (id, name, incarnation) = match found {
                Found::Now(id, name, incarnation) => (id, name, incarnation),
                Found::Unreadable(name) => {
                    let known = self.known.iter().find(|(_, known)| known.device.name == name);
                    now.extend(known.map(|(id, known)| (*id, known.clone())));
                    continue;
                }
            };
            let stacked_on = match self.known.get(&id).filter(|_| !has_changed) {
                Some(known) => known.device.facts.stacked_on.clone(),
                None => {
                    let mounts = mounts.get_or_insert_with(|| read_mounts(&roots.proc.join("self"), reader));
                    Stack { sys: &roots.sys, mounts }.bottom(id, reader)
                }
            };
            let folder = folder_of(roots, &name);
            let facts = facts(&folder, id, roots.version, &shared, stacked_on, reader);
            now.insert(id, KnownDisk { device: Device { id, name, facts }, incarnation });
        }
        now
    }

    /// What stands at a name in `/sys/block`; nothing if that is no disk.
    fn find(name: String, roots: &Roots, reader: &mut Reader, skips: &mut Skips) -> Option<Found> {
        let folder = folder_of(roots, &name);
        let is_loop = name.starts_with("loop");
        let backing_file = if is_loop { reader.line(&folder.join("loop/backing_file")) } else { String::new() };
        // Looked at first: a host has many loop devices without a file, and nothing else is read of them.
        if is_loop && backing_file.is_empty() {
            return None;
        }
        match number(&folder, reader) {
            Ok(id) => id.map(|id| Found::Now(id, name, incarnation(&folder, backing_file, reader))),
            Err(error) => {
                skips.note("/sys/block", 1, || format!("{name}/dev cannot be read: {error}"));
                Some(Found::Unreadable(name))
            }
        }
    }
}

/// A name in `/sys/block`.
enum Found {
    Now(DeviceId, String, Incarnation),
    /// Its number cannot be read.
    Unreadable(String),
}

fn folder_of(roots: &Roots, name: &str) -> PathBuf {
    roots.sys.join("block").join(name)
}

/// Disks that went or were replaced, then those that came or changed.
fn differences(before: &BTreeMap<DeviceId, KnownDisk>, now: &BTreeMap<DeviceId, KnownDisk>) -> Vec<Event> {
    let mut events = Vec::new();
    for (id, was) in before {
        if now.get(id).is_none_or(|is| is.sequence() != was.sequence()) {
            events.push(Event::DeviceGone(*id));
        }
    }
    for (id, is) in now {
        if before.get(id) != Some(is) {
            events.push(Event::DeviceSeen(is.device.clone()));
        }
    }
    events
}

/// The kernel's names of all disks but those that hold memory, sorted.
fn disk_names(sys: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(sys.join("block"))? {
        // A name that is no text is no disk's.
        let Ok(name) = entry?.file_name().into_string() else { continue };
        if !MEMORY_DISKS.iter().any(|kind| name.starts_with(kind)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The number of a disk; nothing if it went since it was listed.
fn number(folder: &Path, reader: &mut Reader) -> Result<Option<DeviceId>, Errno> {
    match reader.path(&folder.join("dev")) {
        Ok(text) => Ok(String::from_utf8_lossy(text).trim_end().parse().ok()),
        Err(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

fn incarnation(folder: &Path, backing_file: String, reader: &mut Reader) -> Incarnation {
    let slaves = std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
    let mut slaves: Vec<String> = slaves.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    slaves.sort();
    Incarnation { sequence: reader.line(&folder.join("diskseq")), backing_file, slaves }
}

fn facts(
    folder: &Path,
    id: DeviceId,
    cgroup: CgroupVersion,
    shared: &HierarchyFacts,
    stacked_on: Vec<DeviceId>,
    reader: &mut Reader,
) -> DeviceFacts {
    let elevators = reader.path(&folder.join("queue/scheduler")).map(parse_elevators).unwrap_or_default();
    let mut switch = |name: &str| match elevators.current.as_deref() {
        Some("bfq") => Some(reader.line(&folder.join("queue/iosched").join(name))).filter(|text| !text.is_empty()),
        _ => None,
    };
    let (low_latency, strict_guarantees) = (switch("low_latency"), switch("strict_guarantees"));
    DeviceFacts {
        cgroup,
        controller_enabled: shared.controller_enabled,
        writeback_attributed: shared.writeback_attributed,
        elevator: elevators.current,
        elevators_available: elevators.available,
        bfq_low_latency: low_latency.map(|text| text != "0"),
        bfq_strict_guarantees: strict_guarantees.map(|text| text != "0"),
        iocost_available: shared.iocost_available,
        iocost_enabled: shared.iocost_enabled.contains(&id),
        iocost_model_guessed: shared.iocost_models_guessed.contains(&id),
        throttle_available: shared.throttle_available,
        multi_queue: folder.join("mq").is_dir(),
        rotational: reader.line(&folder.join("queue/rotational")) == "1",
        stacked_on,
        // sysfs counts sectors of 512 bytes whatever the disk's own are.
        size_bytes: reader.line(&folder.join("size")).parse::<u64>().unwrap_or(0).saturating_mul(512),
        back_end_forced: None,
    }
}

fn hierarchy_facts(roots: &Roots, hierarchy: &OwnedFd, reader: &mut Reader, skips: &mut Skips) -> HierarchyFacts {
    let mut facts = HierarchyFacts {
        controller_enabled: roots.version == CgroupVersion::V1,
        writeback_attributed: false,
        iocost_available: false,
        iocost_enabled: Vec::new(),
        iocost_models_guessed: Vec::new(),
        throttle_available: false,
    };
    match roots.version {
        CgroupVersion::Absent => {}
        CgroupVersion::V1 => {
            facts.throttle_available = exists(hierarchy, "blkio.throttle.read_bps_device");
        }
        CgroupVersion::V2 => {
            let enabled = reader.below(hierarchy.as_fd(), "cgroup.subtree_control").unwrap_or_default();
            let has = |name: &[u8]| enabled.split(u8::is_ascii_whitespace).any(|word| word == name);
            facts.controller_enabled = has(b"io");
            facts.writeback_attributed = facts.controller_enabled && has(b"memory");
            // The root has no `io.max` to look for. Any kernel that has `io.stat` in it was built with BLK_CGROUP, and
            // every distribution sets BLK_DEV_THROTTLING with that; the write that fails where not is reported as refused.
            facts.throttle_available = facts.controller_enabled;
            if let Ok(text) = reader.below(hierarchy.as_fd(), "io.cost.qos") {
                let qos = parse_io_cost_qos(text);
                skips.malformed("io.cost.qos", "the root group", &qos.malformed);
                facts.iocost_available = true;
                facts.iocost_enabled = qos.rows.iter().filter(|row| row.enabled).map(|row| row.device).collect();
                facts.iocost_models_guessed = guessed_models(hierarchy, reader, skips);
            }
        }
    }
    facts
}

/// The disks for which iocost goes by a model that the kernel chose.
fn guessed_models(hierarchy: &OwnedFd, reader: &mut Reader, skips: &mut Skips) -> Vec<DeviceId> {
    let Ok(text) = reader.below(hierarchy.as_fd(), "io.cost.model") else { return Vec::new() };
    let models = parse_io_cost_model(text);
    skips.malformed("io.cost.model", "the root group", &models.malformed);
    models.rows.iter().filter(|row| row.guessed).map(|row| row.device).collect()
}

fn exists(directory: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// The mount table; empty when it cannot be read, and stacks then end early.
pub(crate) fn read_mounts(process: &Path, reader: &mut Reader) -> Vec<MountRow> {
    reader.table(&process.join("mountinfo")).map(|text| parse_mountinfo(text).rows).unwrap_or_default()
}
