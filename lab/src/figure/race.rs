//! Equal readers against each other: what part of a disk each group gets when all ask for as much as they can.

use crate::clock::boottime;
use crate::disk::Disk;
use crate::error::{LabError, Result};
use crate::workload::bytes_at;
use crate::workload::{Access, Appearance, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BLOCK_BYTES: u32 = 256 << 10;
/// So that something of each is always queued: on a busy machine an elevator gives up waiting for a reader that comes back late.
const DEPTH: u32 = 4;
/// How long each reads alone before all read at once.
const ALONE: Nanos = Nanos::from_millis(300);
/// What a paused reader had asked for is done.
const PAUSED: Nanos = Nanos::from_millis(100);
/// Until all are at work.
const GATHER: Nanos = Nanos::from_millis(500);

/// Where and with what to race.
#[derive(Clone, Copy)]
pub(super) struct Race<'a> {
    pub(super) disk: &'a Disk,
    pub(super) program: &'a WorkerProgram,
    pub(super) interrupted: &'a AtomicBool,
}

impl Race<'_> {
    /// Lets a reader in each group read by itself for a moment, and then all at once: what part of all each got in the window.
    ///
    /// Nobody else may use the disk. BFQ keeps what a group has had before its turn, as an advance on its virtual time, while others
    /// keep the disk busy: a group that had a twohundredth of the weight when it was last served waits some 25 s for its next turn,
    /// whatever it weighs by then. Whoever comes to an idle disk has no advance on anybody, so each group comes to it once.
    pub(super) fn run(self, groups: &[&TenantCgroup], window: Nanos) -> Result<Vec<f64>> {
        let Self { disk, program, interrupted } = self;
        let mut readers = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let spec = equal_reader(disk, &format!("race-{index}"), index as u64, groups.len() as u64);
            readers.push(Worker::spawn(program, &WorkloadSpec { depth: DEPTH, ..spec }, Some(group))?);
        }
        for reader in &mut readers {
            reader.start()?;
            wait_until(boottime() + ALONE, interrupted)?;
            reader.pause();
            wait_until(boottime() + PAUSED, interrupted)?;
        }
        readers.iter().for_each(Worker::resume);
        let from = wait_until(boottime() + GATHER, interrupted)?;
        wait_until(from + window, interrupted)?;
        readers.iter_mut().for_each(Worker::stop);
        let bytes = |reader: Worker| {
            let progress = reader.wait()?.progress;
            Ok(bytes_at(&progress, from + window) - bytes_at(&progress, from))
        };
        let bytes: Vec<f64> = readers.into_iter().map(bytes).collect::<Result<_>>()?;
        let sum = bytes.iter().sum::<f64>().max(1.0);
        Ok(bytes.into_iter().map(|bytes| bytes / sum).collect())
    }
}

/// Sleeps until the instant, and answers with it.
pub(super) fn wait_until(until: Nanos, interrupted: &AtomicBool) -> Result<Nanos> {
    while boottime() < until {
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(until)
}

/// One of `count` equal readers, each at the start of its own part of the disk, so that every change between them costs a seek.
pub(super) fn equal_reader(disk: &Disk, tenant: &str, index: u64, count: u64) -> WorkloadSpec {
    let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    let part = blocks(disk.info().size_bytes / count);
    WorkloadSpec {
        tenant: tenant.to_owned(),
        path: disk.device().to_owned(),
        access: Access::SequentialRead,
        bytes: None,
        block_bytes: BLOCK_BYTES,
        region_start: part * index,
        // The same outer piece of each part: readers at unlike speeds would not be equal.
        region_bytes: blocks(part / 4),
        depth: 1,
        compute: Compute::Nothing,
        think: Nanos::ZERO,
        rests: None,
        appearance: Appearance::default(),
        part: None,
        seed: 1 + index,
    }
}
