//! How long BFQ takes to obey when the weight of a busy reader rises: what it was served at the small weight counts as had in advance.

use super::knob_files::weigh;
use super::race::{equal_reader, wait_until};
use crate::clock::boottime;
use crate::disk::{Disk, DiskSpec};
use crate::error::Result;
use crate::workload::bytes_at;
use crate::workload::{CgroupParent, Progress, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// So that something of each is always queued.
const DEPTH: u32 = 4;
/// BFQ learns a fresh disk's peak rate, and serves the reader at its small weight a few times.
const BEFORE: Nanos = Nanos::from_secs(12);
/// In each of these a reader of an equal part has two turns or more.
const WINDOW: Nanos = Nanos::from_secs(2);
const STEP: Nanos = Nanos::from_millis(100);

/// What to measure.
#[derive(Clone, Debug)]
pub struct RisePlan {
    /// Which disk to emulate.
    pub profile: String,
    /// What one reader weighs before; the others 100.
    pub weight: u32,
    /// How many others there are.
    pub others: u32,
    /// For how long to look after its weight is 100 too.
    pub watched: Nanos,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RiseResult {
    /// After so many seconds it had half an equal part for two seconds; nothing if never.
    pub after_s: Option<f64>,
    /// Of the reader while its weight was small.
    pub before_mb_per_s: f64,
    /// Of the reader at the end.
    pub after_mb_per_s: f64,
    /// Of all together.
    pub total_mb_per_s: f64,
}

/// Readers in sequence without end; one of them has a small weight, and then that of the others.
pub fn rise(plan: &RisePlan, program: &WorkerProgram, interrupted: &AtomicBool) -> Result<RiseResult> {
    let disk = Disk::create(&DiskSpec::new(format!("rise-{}", std::process::id()), plan.profile.clone()))?;
    disk.queue().write("iosched/low_latency", "0")?;
    let parent = CgroupParent::create("minerva-lab-rise")?;
    let count = u64::from(plan.others) + 1;
    let groups = (0..count).map(|index| parent.tenant(&format!("reader-{index}"))).collect::<Result<Vec<_>>>()?;
    weigh(&groups[0], &disk, plan.weight)?;
    let mut readers = Vec::new();
    for (index, group) in (0..count).zip(&groups) {
        let spec = equal_reader(&disk, &format!("reader-{index}"), index, count);
        readers.push(Worker::spawn(program, &WorkloadSpec { depth: DEPTH, ..spec }, Some(group))?);
    }
    readers.iter_mut().try_for_each(Worker::start)?;
    let begin = boottime();
    wait_until(begin + BEFORE, interrupted)?;
    weigh(&groups[0], &disk, 100)?;
    let raised = boottime();
    let end = wait_until(raised + plan.watched, interrupted)?;
    readers.iter_mut().for_each(Worker::stop);
    let progress = readers.into_iter().map(|reader| Ok(reader.wait()?.progress)).collect::<Result<Vec<_>>>()?;
    let rate = |of: &[Progress], from: Nanos, until: Nanos| {
        (bytes_at(of, until) - bytes_at(of, from)) / until.since(from).as_secs_f64() / 1e6
    };
    let all = |from, until| progress.iter().map(|of| rate(of, from, until)).sum::<f64>();
    let shows = |from: Nanos| rate(&progress[0], from, from + WINDOW) * 2.0 * count as f64 >= all(from, from + WINDOW);
    let windows = (0..).map(|step| raised + Nanos(STEP.0 * step)).take_while(|from| *from + WINDOW <= end);
    let last = end - Nanos(5 * WINDOW.0);
    Ok(RiseResult {
        after_s: windows.into_iter().find(|from| shows(*from)).map(|from| from.since(raised).as_secs_f64()),
        before_mb_per_s: rate(&progress[0], begin + Nanos(BEFORE.0 / 2), raised),
        after_mb_per_s: rate(&progress[0], last, end),
        total_mb_per_s: all(raised, end),
    })
}
