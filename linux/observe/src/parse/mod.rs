//! Pure parsers of the kernel's texts, one file a family.
//!
//! They are lenient: a line that does not parse is passed over and counted, with the first offending text, and the rest is
//! kept. None panics, and none allocates more than a small multiple of its input, whatever the bytes; `fuzz/` holds them to it.

mod blkio;
mod cgroup;
mod disks;
mod io_stat;
mod mountinfo;
mod network;
mod pressure;
mod process;
mod qemu_disks;

pub use blkio::{BlkioRow, parse_blkio};
pub use cgroup::{CgroupMembership, parse_cgroup_membership, parse_pids};
pub use disks::{
    DiskStatsRow, Elevators, IoCostModelRow, IoCostQosRow, parse_diskstats, parse_elevators, parse_io_cost_model,
    parse_io_cost_qos,
};
pub use io_stat::{IoStatRow, parse_io_stat};
pub use mountinfo::{MountRow, parse_mountinfo};
pub use network::parse_network_bytes;
pub use pressure::parse_pressure;
pub use process::{ProcessIo, ProcessStat, parse_guest_cids, parse_process_io, parse_process_stat};
pub use qemu_disks::parse_file_of_serial;

/// Longest piece of an offending line that is kept, in bytes.
const OFFENDING_BYTES_MAX: usize = 80;

/// The kernel's name, in the texts of block groups, of a disk that is gone.
const GONE: &str = "(unknown)";

/// What a text said, and what of it was passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The rows that parsed.
    pub rows: Vec<T>,
    /// The lines that did not.
    pub malformed: Malformed,
}

/// Lines that were passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Malformed {
    /// How many.
    pub count: u64,
    /// The first of them, cut to a line of 80 bytes.
    pub first: Option<String>,
}

impl Malformed {
    fn note(&mut self, line: &[u8]) {
        self.count += 1;
        if self.first.is_none() {
            let cut = &line[..line.len().min(OFFENDING_BYTES_MAX)];
            self.first = Some(String::from_utf8_lossy(cut).escape_debug().to_string());
        }
    }
}

/// The non-empty lines of a text.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Reads every line with `parse`, which answers `None` for what it cannot read.
fn parse_lines<'a, T>(text: &'a [u8], mut parse: impl FnMut(&'a str) -> Option<T>) -> Parsed<T> {
    let mut parsed = Parsed { rows: Vec::new(), malformed: Malformed::default() };
    for line in lines(text) {
        match std::str::from_utf8(line).ok().and_then(&mut parse) {
            Some(row) => parsed.rows.push(row),
            None => parsed.malformed.note(line),
        }
    }
    parsed
}
