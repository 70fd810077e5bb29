//! What a batch job does, slice by slice, in a bounded number of steps: when they are full, each two become one.

use minerva_model::{JobStep, Nanos, UsageSignals};
use serde::{Deserialize, Serialize};

/// A multiple of two.
const STEPS_MAX: usize = 240;
/// What others leave of a disk is taken as no less than this, because parts of its time are estimates.
const LEFT_MIN: f64 = 0.05;
/// Processors in use from which a job computes; one that only rests uses less.
const COMPUTING_CORES: f64 = 0.25;

/// The steps of one job so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trace {
    steps: Vec<JobStep>,
    /// Each step but the last spans so many slices; 0 before the first.
    slices_per_step: u32,
    slices_in_last: u32,
    /// Steps from here on wait for somebody to look what the processes used.
    unseen: usize,
    /// For how long the job would have kept the disk busy, had nobody else been there.
    wanted_seconds: f64,
}

/// What a job moved in a slice, on all disks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moved {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// The part of a disk's time that it took, and that others took, 0 to 1, on the disk where its own is the greatest.
    pub(crate) part: f64,
    pub(crate) others_part: f64,
}

impl Trace {
    /// A slice ended. Nothing is noted before the first transfer.
    pub(crate) fn slice(&mut self, seconds: f64, moved: Moved) {
        let bytes = moved.read_bytes.saturating_add(moved.write_bytes);
        if seconds <= 0.0 || (self.steps.is_empty() && bytes == 0) {
            return;
        }
        self.wanted_seconds += seconds * (moved.part / (1.0 - moved.others_part).max(LEFT_MIN)).clamp(0.0, 1.0);
        let is_full = self.slices_in_last >= self.slices_per_step.max(1);
        if is_full && self.steps.len() >= STEPS_MAX {
            self.halve();
        }
        if self.slices_per_step == 0 || self.slices_in_last >= self.slices_per_step {
            self.slices_per_step = self.slices_per_step.max(1);
            self.slices_in_last = 0;
            self.steps.push(JobStep::default());
        }
        self.slices_in_last += 1;
        if let Some(last) = self.steps.last_mut() {
            last.seconds += seconds;
            last.read_bytes = last.read_bytes.saturating_add(moved.read_bytes);
            last.write_bytes = last.write_bytes.saturating_add(moved.write_bytes);
        }
    }

    /// Somebody looked what the job's processes used, which holds for the time since the look before.
    pub(crate) fn used(&mut self, usage: &UsageSignals) {
        if usage.elapsed == Nanos::ZERO {
            return;
        }
        let cores = usage.cpu_ns as f64 / usage.elapsed.0 as f64;
        for step in self.steps.iter_mut().skip(self.unseen) {
            step.cores = Some(cores);
            step.memory_bytes = Some(usage.memory_bytes);
        }
        self.unseen = self.steps.len();
    }

    fn halve(&mut self) {
        self.steps = self.steps.chunks(2).map(joined).collect();
        self.unseen = self.unseen.div_ceil(2);
        self.slices_per_step = self.slices_per_step.saturating_mul(2);
        self.slices_in_last = self.slices_per_step;
    }

    /// The steps up to the last in which it moved something or is known to have computed.
    pub(crate) fn steps(&self) -> &[JobStep] {
        let computed = |step: &JobStep| step.cores.is_some_and(|cores| cores >= COMPUTING_CORES);
        let is_work = |step: &JobStep| step.read_bytes > 0 || step.write_bytes > 0 || computed(step);
        let end = self.steps.iter().rposition(is_work).map_or(0, |last| last + 1);
        &self.steps[..end]
    }

    /// The part of its time for which it kept the disk busy, of the time that others left, 0 to 1.
    pub(crate) fn disk_part(&self) -> f64 {
        let seconds: f64 = self.steps().iter().map(|step| step.seconds).sum();
        if seconds > 0.0 { (self.wanted_seconds / seconds).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Steps as one.
fn joined(steps: &[JobStep]) -> JobStep {
    let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
    let known: Vec<(f64, f64)> = steps.iter().filter_map(|step| Some((step.cores?, step.seconds))).collect();
    let known_seconds: f64 = known.iter().map(|(_, seconds)| seconds).sum();
    let cores = known.iter().map(|(cores, seconds)| cores * seconds).sum::<f64>() / known_seconds;
    JobStep {
        seconds,
        read_bytes: steps.iter().fold(0, |sum: u64, step| sum.saturating_add(step.read_bytes)),
        write_bytes: steps.iter().fold(0, |sum: u64, step| sum.saturating_add(step.write_bytes)),
        cores: (known_seconds > 0.0).then_some(cores),
        memory_bytes: steps.iter().filter_map(|step| step.memory_bytes).max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minerva_model::TenantId;

    fn read(bytes: u64) -> Moved {
        Moved { read_bytes: bytes, part: 0.5, others_part: 0.5, ..Moved::default() }
    }

    fn usage(seconds: u64, cpu_seconds: u64) -> UsageSignals {
        UsageSignals {
            tenant: TenantId(1),
            elapsed: Nanos::from_secs(seconds),
            cpu_ns: Nanos::from_secs(cpu_seconds).0,
            memory_bytes: 7,
            network_bytes: None,
            open_files: 0,
            open_sockets: 0,
            open_file_bytes: 0,
            processes: 1,
            process_read_bytes: 0,
            process_write_bytes: 0,
        }
    }

    #[test]
    fn steps_are_bounded_and_lose_neither_bytes_nor_time() {
        let mut trace = Trace::default();
        trace.slice(1.0, Moved::default());
        assert_eq!(trace.steps(), [], "it begins with the first transfer");
        for slice in 0..10_000 {
            trace.slice(1.0, read(slice + 1));
            assert!(trace.steps.len() <= STEPS_MAX);
        }
        let (seconds, bytes) = trace
            .steps()
            .iter()
            .fold((0.0, 0), |(seconds, bytes), step| (seconds + step.seconds, bytes + step.read_bytes));
        assert_eq!((seconds, bytes), (10_000.0, 10_000 * 10_001 / 2));
        assert!((trace.disk_part() - 1.0).abs() < 1e-9, "all that the other left");
        let widths: Vec<f64> = trace.steps().iter().rev().skip(1).map(|step| step.seconds).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{widths:?}");
    }

    #[test]
    fn what_processes_use_holds_for_the_steps_since_the_look_before() {
        let mut trace = Trace::default();
        (0..3).for_each(|_| trace.slice(1.0, read(1)));
        trace.used(&usage(3, 6));
        trace.slice(1.0, read(1));
        assert_eq!(
            trace.steps().iter().map(|step| step.cores).collect::<Vec<_>>(),
            [Some(2.0), Some(2.0), Some(2.0), None]
        );
        trace.used(&usage(0, 9));
        assert_eq!(trace.steps()[3].cores, None, "a look without time says nothing");
        (0..4).for_each(|_| trace.slice(1.0, Moved::default()));
        assert_eq!(trace.steps().len(), 4, "what comes after the last transfer is not the job's");
    }
}
