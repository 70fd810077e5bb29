//! Which of the files that wait in the pool goes to its own disk next, and how fast.
//!
//! One file of each disk is under way at a time. It moves in the gaps that others leave once the disk was quiet for whole slices; where
//! others use the disk it waits, unless somebody asked for it or its tenant's pool is about to be full. Then it takes a small part of the
//! time, so that the pool never ends up full of what nobody moves; and so it does once it has waited too long, so that it also leaves for
//! a disk that is never quiet. Whether others are there at this very moment is for the driver to see, every few milliseconds: what stands
//! here holds for a slice.

use minerva_model::{DeviceId, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Quiet slices in a row before a disk is taken for quiet; one less where a forecast with skill expects nobody.
const QUIET_SLICES: u32 = 2;
/// Thousandths of a tenant's pool: from here on its files go before others' of the same disk, and from there on they no longer wait.
const POOL_FILLS: u32 = 800;
const POOL_IS_FULL: u32 = 950;
/// Thousandths of the time that are taken while others use the disk.
const PART_ASKED_FOR: u32 = 100;
const PART_POOL_FULL: u32 = 200;
const PART_OVERDUE: u32 = 100;
/// Thousandths of probability: others are expected, or are not.
const EXPECTED: u32 = 500;
const NOT_EXPECTED: u32 = 100;

/// How pressing it is that a file moves; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationUrgency {
    /// Somebody asked that it be moved now.
    AskedFor,
    /// Its tenant's pool is about to be full.
    PoolIsFull,
    /// It has waited longer than files may.
    Overdue,
    /// Its tenant's pool fills up.
    PoolFills,
    /// None of these.
    Ordinary,
}

impl MigrationUrgency {
    /// Of a file that is or is not asked for and overdue, and whose tenant has used so many thousandths of its pool.
    pub const fn of(is_asked_for: bool, pool_permille: u32, is_overdue: bool) -> Self {
        if is_asked_for {
            Self::AskedFor
        } else if pool_permille >= POOL_IS_FULL {
            Self::PoolIsFull
        } else if is_overdue {
            Self::Overdue
        } else if pool_permille >= POOL_FILLS {
            Self::PoolFills
        } else {
            Self::Ordinary
        }
    }
}

/// A file in the pool whose place is on another disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFile {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub tenant: String,
    /// Where it is to go.
    pub device: DeviceId,
    /// What is to be written there.
    pub bytes: u64,
    /// For how long it has waited.
    pub waited: Nanos,
    /// That is longer than the operator lets files wait.
    pub is_overdue: bool,
    /// Somebody asked that it be moved now.
    pub is_asked_for: bool,
    /// It is partly there already.
    pub is_under_way: bool,
    /// How much of its tenant's pool is used, in thousandths.
    pub pool_permille: u32,
}

impl WaitingFile {
    fn urgency(&self) -> MigrationUrgency {
        MigrationUrgency::of(self.is_asked_for, self.pool_permille, self.is_overdue)
    }
}

/// Who says how many others use a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToldBy {
    /// The daemon: tenants that actively used it in the last slice.
    Daemon,
    /// The disk's own counters, which know no tenants: 1 if anybody did.
    Counters,
}

/// A disk to which files are to go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetDisk {
    /// Which.
    pub device: DeviceId,
    /// Its contention level without the migration itself; none where nothing is known.
    pub others: Option<(u32, ToldBy)>,
    /// Probability that others use it soon, in thousandths, by a forecast; none without one that has skill.
    pub expected_permille: Option<u32>,
}

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MigrationPace {
    /// Not in this slice.
    Hold,
    /// While nobody else uses the disk.
    Gaps,
    /// Beside others, for so many thousandths of the time.
    Share(u32),
}

/// What is to be done on one disk in the next slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationOrder {
    /// Which disk.
    pub device: DeviceId,
    /// The file that is next there.
    pub file: u64,
    /// Those that go after it at the same pace, in this order, if the slice has room for them.
    pub then: Vec<u64>,
    /// How fast.
    pub pace: MigrationPace,
    /// Why, for people.
    pub reason: String,
}

impl fmt::Display for MigrationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pace {
            MigrationPace::Hold => write!(f, "{}: file {} waits: {}", self.device, self.file, self.reason),
            MigrationPace::Gaps => write!(f, "{}: file {} moves in gaps: {}", self.device, self.file, self.reason),
            MigrationPace::Share(part) => {
                write!(f, "{}: file {} moves for {part} permille: {}", self.device, self.file, self.reason)
            }
        }
    }
}

/// Decides once a slice; keeps for how long each disk has been quiet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    quiet_slices: BTreeMap<DeviceId, u32>,
}

impl Migration {
    /// An order for each disk to which a file is to go, by disk. Files of a disk that is not told of wait.
    pub fn slice(&mut self, disks: &[TargetDisk], files: &[WaitingFile]) -> Vec<MigrationOrder> {
        self.quiet_slices.retain(|device, _| disks.iter().any(|disk| disk.device == *device));
        let mut orders = Vec::new();
        let mut disks: Vec<&TargetDisk> = disks.iter().collect();
        disks.sort_by_key(|disk| disk.device);
        for disk in disks {
            let quiet = self.quiet_for(disk);
            let mut there: Vec<&WaitingFile> = files.iter().filter(|file| file.device == disk.device).collect();
            there.sort_by_cached_key(|file| precedence(file, disk));
            if let Some((file, others)) = there.split_first() {
                let (at, reason) = pace(file, disk, quiet);
                let follows = |other: &&&WaitingFile| pace(other, disk, quiet).0 == at;
                let then = others.iter().filter(follows).map(|other| other.id).collect();
                orders.push(MigrationOrder { device: disk.device, file: file.id, then, pace: at, reason });
            }
        }
        orders
    }

    /// Slices in which nobody else used the disk, up to now.
    fn quiet_for(&mut self, disk: &TargetDisk) -> u32 {
        let quiet = self.quiet_slices.entry(disk.device).or_default();
        *quiet = if matches!(disk.others, Some((0, _))) { quiet.saturating_add(1) } else { 0 };
        *quiet
    }
}

/// The least goes first.
fn precedence(file: &WaitingFile, disk: &TargetDisk) -> impl Ord + use<> {
    // A gap that is expected to be short is used for what fits into it.
    let is_short_gap = disk.expected_permille.is_some_and(|expected| expected >= EXPECTED);
    let bytes = if is_short_gap { file.bytes } else { 0 };
    (file.urgency(), !file.is_under_way, bytes, std::cmp::Reverse(file.waited), file.id)
}

fn pace(file: &WaitingFile, disk: &TargetDisk, quiet: u32) -> (MigrationPace, String) {
    let others = match disk.others {
        None => "whether others use the disk is not known".to_owned(),
        Some((0, _)) => format!("nobody else has used the disk for {quiet} s"),
        Some((count, ToldBy::Daemon)) => format!("{count} others use the disk"),
        Some((_, ToldBy::Counters)) => "others use the disk".to_owned(),
    };
    let expected = match disk.expected_permille {
        Some(expected) => format!(", and with {} % somebody will within 15 s", expected / 10),
        None => String::new(),
    };
    let needed = QUIET_SLICES - u32::from(disk.expected_permille.is_some_and(|expected| expected < NOT_EXPECTED));
    if quiet >= needed {
        return (MigrationPace::Gaps, format!("{others}{expected}; {}", choice(file, disk)));
    }
    if file.pool_permille >= POOL_IS_FULL {
        let full = file.pool_permille / 10;
        return (
            MigrationPace::Share(PART_POOL_FULL),
            format!("{others}, but {full} % of {}'s pool is used", file.tenant),
        );
    }
    if file.is_asked_for {
        return (MigrationPace::Share(PART_ASKED_FOR), format!("{others}, but it was asked for"));
    }
    if file.is_overdue {
        let waited = waited_text(file.waited);
        return (MigrationPace::Share(PART_OVERDUE), format!("{others}, but it has waited for {waited}"));
    }
    let wait = if matches!(disk.others, Some((0, _))) { format!(", of {needed} s") } else { String::new() };
    (MigrationPace::Hold, format!("{others}{wait}{expected}"))
}

/// Why this file of all.
fn choice(file: &WaitingFile, disk: &TargetDisk) -> String {
    match file.urgency() {
        MigrationUrgency::AskedFor => return "it was asked for".to_owned(),
        MigrationUrgency::PoolIsFull | MigrationUrgency::PoolFills => {
            return format!("{} % of {}'s pool is used", file.pool_permille / 10, file.tenant);
        }
        MigrationUrgency::Overdue => return format!("it has waited for {}", waited_text(file.waited)),
        MigrationUrgency::Ordinary => (),
    }
    if file.is_under_way {
        "it is under way".to_owned()
    } else if disk.expected_permille.is_some_and(|expected| expected >= EXPECTED) {
        "the smallest goes first".to_owned()
    } else {
        "it waited longest".to_owned()
    }
}

fn waited_text(waited: Nanos) -> String {
    let seconds = waited.0 / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
