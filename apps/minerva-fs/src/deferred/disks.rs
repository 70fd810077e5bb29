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

impl Count {
    /// Requests that others made since an earlier look, while nothing of ours was under way.
    fn others_since(&self, last: &Self) -> u64 {
        self.reads.saturating_sub(last.reads) + self.writes.saturating_sub(last.writes) + self.in_flight
    }

    /// Requests that others made since an earlier look, while a piece of so many bytes was written.
    fn others_beside(&self, last: &Self, bytes: u64) -> u64 {
        let (reads, writes) = (self.reads.saturating_sub(last.reads), self.writes.saturating_sub(last.writes));
        reads.saturating_sub(FURTHER_READS) + writes.saturating_sub(bytes.div_ceil(REQUEST_BYTES) + FURTHER_WRITES)
    }
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
        now.others_since(&last)
    }

    /// Requests that others made while a piece of so many bytes was written.
    pub(super) fn others_beside(&mut self, disk: DeviceId, bytes: u64) -> u64 {
        let Some(now) = read(disk) else { return 0 };
        let last = self.last.insert(disk, now).unwrap_or(now);
        now.others_beside(&last, bytes)
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
    use super::{Count, FURTHER_READS, FURTHER_WRITES, parse};
    use crate::deferred::copy::PIECE;

    const LAST: Count = Count { reads: 100, writes: 200, in_flight: 0 };
    /// Requests of 64 KiB that a piece is.
    const OF_A_PIECE: u64 = 16;

    /// After so many more reads and writes.
    fn after(reads: u64, writes: u64, in_flight: u64) -> Count {
        Count { reads: LAST.reads + reads, writes: LAST.writes + writes, in_flight }
    }

    #[test]
    fn the_kernels_line_is_read_and_a_torn_one_is_none() {
        let line = "     441      46    36418      304     5182     3811   150768     6391        2     5228     6695";
        assert_eq!(parse(line), Some(Count { reads: 441, writes: 5182, in_flight: 2 }));
        for torn in ["", "441 46 36418 304", "441 46 36418 304 5182 3811 150768 6391", "a b c d e f g h i"] {
            assert_eq!(parse(torn), None, "{torn}");
        }
    }

    #[test]
    fn between_pieces_every_request_is_anothers_also_one_that_is_under_way() {
        let others = |now: Count| now.others_since(&LAST);
        assert_eq!([after(0, 0, 0), after(1, 0, 0), after(0, 1, 0), after(0, 0, 1)].map(others), [0, 1, 1, 1]);
        assert_eq!(others(after(3, 4, 5)), 12);
        // A disk that was taken out and put in again counts anew.
        assert_eq!(others(Count { reads: 7, writes: 7, in_flight: 2 }), 2);
    }

    #[test]
    fn beside_a_piece_what_is_more_than_the_piece_takes_is_anothers() {
        let beside = |reads, writes| after(reads, writes, 0).others_beside(&LAST, PIECE as u64);
        let writes = OF_A_PIECE + FURTHER_WRITES;
        assert_eq!([beside(0, 1), beside(FURTHER_READS, writes)], [0, 0]);
        assert_eq!(
            [beside(FURTHER_READS + 1, 0), beside(0, writes + 1), beside(FURTHER_READS + 2, writes + 3)],
            [1, 1, 5]
        );
        // The last piece is shorter, and takes less itself.
        assert_eq!(after(0, 2 + FURTHER_WRITES, 0).others_beside(&LAST, 1), 1);
        assert_eq!(Count { reads: 7, writes: 7, in_flight: 0 }.others_beside(&LAST, PIECE as u64), 0);
    }

    /// One who reads one block after the other makes fewer reads beside a piece than a piece may: it is met at the look after it.
    #[test]
    fn a_reader_that_makes_few_reads_beside_a_piece_is_met_right_after_it() {
        let at_the_end = after(FURTHER_READS, OF_A_PIECE, 1);
        assert_eq!(at_the_end.others_beside(&LAST, PIECE as u64), 0);
        let listened = Count { reads: at_the_end.reads, writes: at_the_end.writes, in_flight: 1 };
        assert_eq!(listened.others_since(&at_the_end), 1);
    }
}
