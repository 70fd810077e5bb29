//! A reader of `minerva-ctl doctor --probe` and `--compare`: a process of its own, so that it can be in a group of its own.

use crate::output::{self, CommandStatus};
use anyhow::{Context, anyhow};
use hdrhistogram::Histogram;
use minerva_model::Device;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Direct reads want buffers at addresses of whole blocks, which are never longer than this.
const ALIGNMENT: usize = 4096;
/// Percentiles are right to 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

/// What a reader does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReaderJob {
    /// The part of the disk, in bytes.
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// What one read asks for, in bytes: whole blocks of the disk.
    pub(crate) read_bytes: usize,
    /// Reads that are under way at once.
    pub(crate) depth: usize,
    /// The seed of random places; without one it reads from the start to the end and round again.
    pub(crate) random_seed: Option<u64>,
    pub(crate) duration_milliseconds: u64,
}

/// What a reader got.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) bytes: u64,
    pub(crate) reads: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// A process that waits for a line and then reads.
pub(crate) fn reader(device: &Device, job: &ReaderJob) -> anyhow::Result<Child> {
    // The kernel writes a slash in a name as an exclamation mark.
    let node = PathBuf::from("/dev").join(device.name.replace('!', "/"));
    Command::new("/proc/self/exe")
        .arg("probe-reader")
        .arg(node)
        .arg(serde_json::to_string(&(std::process::id(), job)).context("failed to tell a reader its job")?)
        // What a terminal sends is for the probe, which then ends them.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start a reader")
}

/// What such a process does: reads past the page cache and prints how much it got. Ends at once when whoever started it is gone.
pub(crate) fn read(node: &Path, job: &str) -> anyhow::Result<CommandStatus> {
    let (probe, job): (i32, ReaderJob) = serde_json::from_str(job).context("the job is not one that a probe gives")?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("failed to ask for an end with the probe")?;
    // One that was killed before that sends no signal, and may have said already that it is time to read.
    if rustix::process::getppid().map(rustix::process::Pid::as_raw_nonzero).map(i32::from) != Some(probe) {
        return Ok(CommandStatus::Well);
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(node)
        .with_context(|| format!("failed to open {}", node.display()))?;
    let mut word = [0; 3];
    if std::io::stdin().read_exact(&mut word).is_err() {
        return Ok(CommandStatus::Well);
    }
    let taken = AtomicU64::new(0);
    let lanes: Vec<anyhow::Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let (file, job, taken) = (&file, &job, &taken);
        let lanes: Vec<_> = (0..job.depth).map(|lane| scope.spawn(move || read_lane(file, job, lane, taken))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_| Err(anyhow!("a reader panicked")))).collect()
    });
    let mut times = Histogram::new(SIGNIFICANT_DIGITS)?;
    for lane in lanes {
        times.add(lane.with_context(|| format!("failed to read {}", node.display()))?)?;
    }
    let (p50_ns, p99_ns) = (times.value_at_quantile(0.5), times.value_at_quantile(0.99));
    output::json(&Reading { bytes: times.len() * job.read_bytes as u64, reads: times.len(), p50_ns, p99_ns })?;
    Ok(CommandStatus::Well)
}

/// One of the reads that are under way at once; `taken` counts the places that were taken by all. The time of each read, in
/// nanoseconds.
fn read_lane(file: &File, job: &ReaderJob, lane: usize, taken: &AtomicU64) -> anyhow::Result<Histogram<u64>> {
    let mut memory = vec![0; job.read_bytes + ALIGNMENT];
    let skip = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = memory.get_mut(skip..skip + job.read_bytes).context("no aligned memory")?;
    let places = (job.length / job.read_bytes as u64).max(1);
    let mut random = job.random_seed.map(|seed| fastrand::Rng::with_seed(seed ^ lane as u64));
    let mut times = Histogram::new(SIGNIFICANT_DIGITS)?;
    let (begin, duration) = (Instant::now(), Duration::from_millis(job.duration_milliseconds));
    while begin.elapsed() < duration {
        let place = match &mut random {
            Some(random) => random.u64(..places),
            None => taken.fetch_add(1, Ordering::Relaxed) % places,
        };
        let asked = Instant::now();
        file.read_exact_at(buffer, job.start + place * job.read_bytes as u64)?;
        times.record(u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX))?;
    }
    Ok(times)
}
