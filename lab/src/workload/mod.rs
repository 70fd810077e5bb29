//! Workloads: real processes in real cgroups that read or write a real block device.
//!
//! A [`Worker`] is a child process (`minerva-lab worker`) that moves itself into its tenant's cgroup, says that it is
//! ready, waits for the word, works, and reports on its standard output as JSON lines. It dies with its parent.

mod appearance;
mod buffer;
mod bytes_at;
mod cgroup;
mod deep;
mod hierarchy;
mod latency;
mod offsets;
mod part;
mod perform;
mod rests;
mod worker;

pub use appearance::Appearance;
pub(crate) use bytes_at::bytes_at;
pub use cgroup::{CgroupParent, TenantCgroup};
pub use hierarchy::blkio_version;
pub use latency::Latency;
pub(crate) use latency::Recorder;
pub use part::{Begin, Part, TakesPart};
pub use perform::{perform, worker_main};
pub use rests::Rests;
pub use worker::{Worker, WorkerProgram, WorkerResult};

pub(crate) use cgroup::{WeightKnob, remove_leftover_cgroups};

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Between two progress reports. Plots show 250 ms.
const PROGRESS_EVERY: Nanos = Nanos::from_millis(100);

/// Set to end work early.
pub type Cancel = Arc<AtomicBool>;

/// In which order and direction a worker touches its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Reads from the start of the region on, and from its start again at its end.
    SequentialRead,
    /// Reads blocks anywhere in the region.
    RandomRead,
    /// Writes from the start of the region on.
    SequentialWrite,
    /// Writes blocks anywhere in the region.
    RandomWrite,
    /// Appends a block to a file and syncs it, block by block, through the page cache: what a database does that commits. The
    /// path is that of the file.
    Commit,
    /// Writes a file from its start on through the page cache, over and over, and syncs nothing: the kernel writes it back, and holds
    /// the writer up when too much waits for that. The path is that of the file.
    BufferedWrite,
    /// Writes a file from its start on through the page cache, and syncs it at its end: what a program does that keeps its result. The
    /// path is that of the file.
    WriteAndSync,
}

impl Access {
    /// Anywhere in the region.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }

    /// Changes what is there.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::SequentialRead | Self::RandomRead)
    }

    /// Of a file, and through the page cache.
    pub(crate) const fn is_buffered(self) -> bool {
        matches!(self, Self::Commit | Self::BufferedWrite | Self::WriteAndSync)
    }
}

/// What a worker does with what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compute {
    /// Nothing.
    Nothing,
    /// SHA-256 over every byte.
    Checksum,
}

/// One worker's job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Whose work it is, for messages and tables.
    pub tenant: String,
    /// The block device or file. It is opened with `O_DIRECT`, except where it is a file that is written.
    pub path: PathBuf,
    /// Order and direction.
    pub access: Access,
    /// How much in all; `None` works until it is stopped.
    pub bytes: Option<u64>,
    /// Bytes a request, a multiple of 4096.
    pub block_bytes: u32,
    /// First byte of the region, a multiple of the block.
    pub region_start: u64,
    /// Length of the region in bytes, at least one block.
    pub region_bytes: u64,
    /// Requests under way at once; more than one for what goes past the page cache, without compute, only.
    pub depth: u32,
    /// What is done with the data.
    pub compute: Compute,
    /// Pause after each request.
    pub think: Nanos,
    /// When it pauses, if it alternates between the disk and other work; for a depth of one.
    #[serde(default)]
    pub rests: Option<Rests>,
    /// What else an observer sees of it while it works.
    #[serde(default)]
    pub appearance: Appearance,
    /// How it takes part in its own scheduling, if it does.
    pub part: Option<TakesPart>,
    /// Seed of the random order.
    pub seed: u64,
}

/// What a worker reports, one JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// In its cgroup, file open; waits for a line on its standard input.
    Ready,
    /// So far.
    Progress(Progress),
    /// The job is done, or it was stopped.
    Finished(Finished),
}

/// Bytes done at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Instant of `CLOCK_BOOTTIME`.
    pub at: Nanos,
    /// Bytes since the start.
    pub bytes: u64,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// When it was given the word. What it then waits for its turn, if it coordinates, counts.
    pub started: Nanos,
    /// When its last request was done, and its compute with it.
    pub ended: Nanos,
    /// Bytes done.
    pub bytes: u64,
    /// How long each request took.
    pub latency: Latency,
    /// SHA-256 of what was read, in hexadecimal, if that was asked for.
    pub checksum: Option<String>,
}
