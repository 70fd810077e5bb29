//! Times of the electronics, made ready for the hot path: whole nanoseconds.

use crate::device::SECTOR_BYTES;
use crate::profile::{HddProfile, Profile};

/// Pairs are after a read, after a write.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    pub(crate) read_hit_ns: [u64; 2],
    pub(crate) read_miss_ns: [u64; 2],
    pub(crate) write_hit_ns: [u64; 2],
    pub(crate) write_miss_ns: [u64; 2],
    pub(crate) reconnect_ns: u64,
    pub(crate) write_prepare_ns: u64,
    pub(crate) write_reach_ns_min: u64,
    pub(crate) read_completion_ns: u64,
    pub(crate) write_completion_ns: u64,
    pub(crate) age_max_ns: u64,
    /// One sector over the cable, in units of 2^-16 ns.
    read_sector: u64,
    write_sector: u64,
}

fn nanos(ms: f64) -> u64 {
    (ms.max(0.0) * 1e6).round() as u64
}

impl Timing {
    pub(crate) fn new(profile: &Profile, hdd: &HddProfile) -> Self {
        let overhead = &hdd.overhead;
        let sector = |mb_per_s: f64| (SECTOR_BYTES as f64 / mb_per_s * 1e3 * 65_536.0).round() as u64;
        Self {
            read_hit_ns: overhead.read_hit_ms.map(nanos),
            read_miss_ns: overhead.read_miss_ms.map(nanos),
            write_hit_ns: overhead.write_hit_ms.map(nanos),
            write_miss_ns: overhead.write_miss_ms.map(nanos),
            reconnect_ns: nanos(overhead.reconnect_ms),
            write_prepare_ns: nanos(overhead.write_prepare_ms),
            write_reach_ns_min: nanos(overhead.write_reach_ms_min),
            read_completion_ns: nanos(overhead.read_completion_ms),
            write_completion_ns: nanos(overhead.write_completion_ms),
            age_max_ns: nanos(hdd.age_ms_max),
            read_sector: sector(profile.interface_mb_per_s),
            write_sector: sector(profile.interface_write_mb_per_s.unwrap_or(profile.interface_mb_per_s)),
        }
    }

    pub(crate) fn cable_read_ns(&self, sectors: u64) -> u64 {
        sectors.saturating_mul(self.read_sector) >> 16
    }

    pub(crate) fn cable_write_ns(&self, sectors: u64) -> u64 {
        sectors.saturating_mul(self.write_sector) >> 16
    }

    /// What the electronics take before the arm moves, when it does not matter after what.
    pub(crate) fn estimate_ns(&self, write: bool) -> u64 {
        if write { self.write_miss_ns[0] } else { self.read_miss_ns[0] }
    }
}
