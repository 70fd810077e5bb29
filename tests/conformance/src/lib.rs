//! One list of jobs, run on the simulator, on the real kernel over the emulated disk, and by `minerva-blk` on the same disk, and compared.
//!
//! | file | what |
//! |---|---|
//! | `job` | the jobs, as data |
//! | `draw` | jobs that nobody has seen, by a seed |
//! | `parse` | a job from its description |
//! | `host` | what this host adds to a request: measured, and a disk model that adds it |
//! | `stalls` | short times in which the host does nothing for the disk |
//! | `calibration` | how that is measured |
//! | `plan` | what a tenant does, for a generator of requests |
//! | `simulated` | a job on the simulator |
//! | `guest_offsets` | a scheduler as it is in a server: it hears of places on guests' disks |
//! | `way` | what the real arms have in common: time and disk |
//! | `real` | a job on the kernel: an emulated disk, a real elevator, real cgroups, fio |
//! | `fio` | fio's job files and its log |
//! | `served` | a job at a real `minerva-blk`, on an emulated disk without an elevator |
//! | `server` | the process of that, and what it says of itself |
//! | `front_end` | a tenant as a guest's driver |
//! | `log` | what a process did within a window: the same count for all arms |
//! | `recorded` | the real arms of an earlier run, to compare a changed simulator with them |
//! | `compare` | pairs, and how far they are apart |
//!
//! The simulator is told of the host what was measured on two calibration disks before and behind each job, and nothing that
//! was measured of a job.

mod calibration;
pub mod compare;
pub mod draw;
mod fio;
mod front_end;
mod guest_offsets;
pub mod host;
pub mod hosted_disk;
pub mod job;
mod log;
mod parse;
mod plan;
pub mod real;
pub mod recorded;
pub mod served;
mod server;
pub mod simulated;
mod stalls;
mod way;

use serde::{Deserialize, Serialize};

/// What one arm says of a job: over the whole time, and in windows of it. How far those are apart is what chance does to a
/// measurement as long as one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Over all windows together.
    pub whole: Outcome,
    /// In each window.
    pub windows: Vec<Outcome>,
}

/// What a job did within some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// In the order of the job's tenants.
    pub tenants: Vec<TenantOutcome>,
}

/// What one tenant got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantOutcome {
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Request time that 99 in a hundred did not exceed, in milliseconds.
    pub p99_ms: f64,
    /// Mean request time, in milliseconds.
    pub mean_ms: f64,
    /// Requests behind these numbers.
    pub requests: u64,
}

impl Outcome {
    /// All tenants together, in bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.tenants.iter().map(|tenant| tenant.bytes_per_second).sum()
    }

    /// A tenant's part of it, 0 to 1.
    pub fn share(&self, tenant: usize) -> f64 {
        self.tenants[tenant].bytes_per_second / self.bytes_per_second().max(f64::MIN_POSITIVE)
    }
}
