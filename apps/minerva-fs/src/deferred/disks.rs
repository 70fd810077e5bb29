//! The disk that a directory lies on, and who else uses it at this moment, by what the kernel counts of it.
//!
//! The counters know no tenants. What we read of that disk is next to nothing, so that reads are others'; of writes those are
//! others' that come while nothing of ours is under way, which is so after each piece, and more than a piece takes meanwhile.

use minerva_linux_observe::{Roots, disks_below, read_mount_facts};
use minerva_model::DeviceId;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A request is no smaller, when a file is written in whole pieces.
const REQUEST_BYTES: u64 = 64 << 10;
/// What a file system writes beside the data.
const FURTHER_WRITES: u64 = 16;
/// What it reads to find room.
const FURTHER_READS: u64 = 4;

/// The disk of a file system without one: memory, a network.
pub(super) const NO_DISK: DeviceId = DeviceId { major: 0, minor: 0 };

/// Where files go: a disk, or a file system without one. Moves to one never wait for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Destination {
    pub(super) disk: DeviceId,
    /// The number of a file system without a disk; 0 for all others.
    file_system: u64,
}

impl Destination {
    /// Of files of a directory in a file system of this number.
    pub(super) fn of(directory: &Path, file_system: u64) -> Self {
        let disk = disk_of(directory, file_system);
        Self { disk, file_system: if disk == NO_DISK { file_system } else { 0 } }
    }
}

/// The disk below a directory; [`NO_DISK`] where there is none.
pub(super) fn disk_of(directory: &Path, device: u64) -> DeviceId {
    let device = DeviceId { major: rustix::fs::major(device), minor: rustix::fs::minor(device) };
    let own = disks_below(Path::new("/sys"), device);
    if let Some(disk) = own.first() {
        return *disk;
    }
    // Some file systems have a number of their own: the table of mounts names their disks.
    let Ok(facts) = Roots::detect().and_then(|roots| read_mount_facts(&roots)) else { return NO_DISK };
    let below = facts.iter().filter(|facts| directory.starts_with(&facts.mount_point));
    let nearest = below.max_by_key(|facts| facts.mount_point.len());
    nearest.and_then(|facts| facts.devices.first().copied()).unwrap_or(NO_DISK)
}

/// Requests of a disk since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    reads: u64,
    writes: u64,
    in_flight: u64,
}

/// Of "reads merged sectors ms writes merged sectors ms in_flight ...", as Documentation/block/stat.rst has it.
fn parse(text: &str) -> Option<Count> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut nth = |n| numbers.nth(n)?.ok();
    Some(Count { reads: nth(0)?, writes: nth(3)?, in_flight: nth(3)? })
}

/// Counters that are read again and again.
#[derive(Debug, Default)]
pub(super) struct Counters {
    last: BTreeMap<DeviceId, Count>,
}

impl Counters {
    /// Requests that others made since the last look, while nothing of ours was under way; none are told of at the first.
    pub(super) fn others(&mut self, disk: DeviceId) -> u64 {
        let Some(now) = read(disk) else { return 0 };
        let Some(last) = self.last.insert(disk, now) else { return now.in_flight };
        now.reads.saturating_sub(last.reads) + now.writes.saturating_sub(last.writes) + now.in_flight
    }

    /// Requests that others made while a piece of so many bytes was written.
    pub(super) fn others_beside(&mut self, disk: DeviceId, bytes: u64) -> u64 {
        let Some(now) = read(disk) else { return 0 };
        let last = self.last.insert(disk, now).unwrap_or(now);
        let reads = now.reads.saturating_sub(last.reads);
        let writes = now.writes.saturating_sub(last.writes);
        reads.saturating_sub(FURTHER_READS) + writes.saturating_sub(bytes.div_ceil(REQUEST_BYTES) + FURTHER_WRITES)
    }
}

fn read(disk: DeviceId) -> Option<Count> {
    if disk == NO_DISK {
        return None;
    }
    parse(&fs::read_to_string(PathBuf::from(format!("/sys/dev/block/{disk}/stat"))).ok()?)
}

#[cfg(test)]
mod tests {
    use super::{Count, parse};

    #[test]
    fn the_kernels_line_is_read_and_a_torn_one_is_none() {
        let line = "     441      46    36418      304     5182     3811   150768     6391        2     5228     6695";
        assert_eq!(parse(line), Some(Count { reads: 441, writes: 5182, in_flight: 2 }));
        for torn in ["", "441 46 36418 304", "441 46 36418 304 5182 3811 150768 6391", "a b c d e f g h i"] {
            assert_eq!(parse(torn), None, "{torn}");
        }
    }
}
