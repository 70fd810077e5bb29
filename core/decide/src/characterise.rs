//! What a run of a batch job is like: its phases, whether the disk goes with the processor, whether it lives by the disk (Matteussi and
//! Geyer 2018, who read that off plots). The limits are chosen, docs/adr/0028.

use crate::job_trace::Trace;
use minerva_model::{DiskIntensity, JobPhase, JobPhaseKind, JobProfile, JobStep};

/// A step below this part of the busiest steps' rate counts as computing.
const ACTIVE_PART: f64 = 0.05;
/// Slower is computing too, in bytes a second.
const ACTIVE_BYTES_PER_SECOND: f64 = 65_536.0;
/// The rate of the busiest steps is the one that so many steps do not reach, so that one burst of a cache says nothing.
const BUSIEST_PART: f64 = 0.9;
/// A step that reads, or writes, this part of its bytes does only that.
const ONE_WAY: f64 = 0.8;
/// A shorter phase, as part of the whole, is taken as its neighbour's.
const PHASE_PART_MIN: f64 = 0.03;
const INTENSIVE: f64 = 0.6;
const MODERATE: f64 = 0.25;

/// What a run is like; nothing if it moved nothing.
pub(crate) fn profile(trace: &Trace) -> Option<JobProfile> {
    let steps = trace.steps();
    let total = |bytes: fn(&JobStep) -> u64| steps.iter().map(bytes).fold(0, u64::saturating_add);
    let disk_part = trace.disk_part();
    (!steps.is_empty()).then(|| JobProfile {
        seconds: steps.iter().map(|step| step.seconds).sum(),
        read_bytes: total(|step| step.read_bytes),
        write_bytes: total(|step| step.write_bytes),
        steps: steps.to_vec(),
        phases: phases(steps),
        cpu_correlation: correlation(steps.iter().filter_map(|step| Some((rate(step), step.cores?)))),
        memory_correlation: correlation(steps.iter().filter_map(|step| Some((rate(step), step.memory_bytes? as f64)))),
        disk_part,
        intensity: intensity(disk_part),
    })
}

pub(crate) fn intensity(disk_part: f64) -> DiskIntensity {
    match disk_part {
        part if part >= INTENSIVE => DiskIntensity::Intensive,
        part if part >= MODERATE => DiskIntensity::Moderate,
        _ => DiskIntensity::Light,
    }
}

fn rate(step: &JobStep) -> f64 {
    step.read_bytes.saturating_add(step.write_bytes) as f64 / step.seconds.max(f64::MIN_POSITIVE)
}

/// The phases, in the order of time.
pub(crate) fn phases(steps: &[JobStep]) -> Vec<JobPhase> {
    let mut rates: Vec<f64> = steps.iter().map(rate).collect();
    rates.sort_by(f64::total_cmp);
    let busiest = rates.get((rates.len() as f64 * BUSIEST_PART) as usize).or(rates.last()).copied().unwrap_or(0.0);
    let active = f64::max(ACTIVE_PART * busiest, ACTIVE_BYTES_PER_SECOND);
    let mut runs: Vec<(JobPhaseKind, usize)> = Vec::new();
    for step in steps {
        let kind = kind(step, active);
        match runs.last_mut() {
            Some((last, length)) if *last == kind => *length += 1,
            _ => runs.push((kind, 1)),
        }
    }
    let runs = smoothed(runs, (steps.len() as f64 * PHASE_PART_MIN).ceil() as usize);
    let mut rest = steps;
    let phase = |(kind, length): &(JobPhaseKind, usize)| {
        let (its, after) = rest.split_at((*length).min(rest.len()));
        rest = after;
        let seconds: f64 = its.iter().map(|step| step.seconds).sum();
        let per_second = |bytes: fn(&JobStep) -> u64| {
            its.iter().map(bytes).fold(0, u64::saturating_add) as f64 / seconds.max(f64::MIN_POSITIVE)
        };
        JobPhase {
            kind: *kind,
            seconds,
            read_bytes_per_second: per_second(|step| step.read_bytes),
            write_bytes_per_second: per_second(|step| step.write_bytes),
        }
    };
    runs.iter().map(phase).collect()
}

fn kind(step: &JobStep, active: f64) -> JobPhaseKind {
    if rate(step) < active {
        return JobPhaseKind::Compute;
    }
    let reads = step.read_bytes as f64 / (step.read_bytes as f64 + step.write_bytes as f64);
    match reads {
        reads if reads >= ONE_WAY => JobPhaseKind::Read,
        reads if reads <= 1.0 - ONE_WAY => JobPhaseKind::Write,
        _ => JobPhaseKind::Shuffle,
    }
}

/// What a step of a kind does with the disk: reads, writes.
const fn moves(kind: JobPhaseKind) -> (bool, bool) {
    match kind {
        JobPhaseKind::Read => (true, false),
        JobPhaseKind::Write => (false, true),
        JobPhaseKind::Shuffle => (true, true),
        JobPhaseKind::Compute => (false, false),
    }
}

/// A single step that does nothing but what is done before or after it: that of one began in the middle of the step, or the disk stalled.
/// Any other is a phase, however short.
fn is_of_neighbours(runs: &[(JobPhaseKind, usize)], at: usize) -> bool {
    let beside = [at.checked_sub(1), Some(at + 1)].map(|at| at.and_then(|at| runs.get(at)));
    let done = beside.into_iter().flatten().map(|(kind, _)| moves(*kind));
    let (reads, writes) = done.fold((false, false), |all, one| (all.0 | one.0, all.1 | one.1));
    let its = moves(runs[at].0);
    runs[at].1 == 1 && its.0 <= reads && its.1 <= writes
}

/// The shortest run below the least length, or of its neighbours, becomes its longer neighbour's, until there is none.
fn smoothed(mut runs: Vec<(JobPhaseKind, usize)>, least: usize) -> Vec<(JobPhaseKind, usize)> {
    loop {
        let is_none = |at: &usize| runs.len() > 1 && (runs[*at].1 < least || is_of_neighbours(&runs, *at));
        let Some(at) = (0..runs.len()).filter(is_none).min_by_key(|at| runs[*at].1) else { return runs };
        let length = |at: Option<usize>| at.and_then(|at| runs.get(at)).map_or(0, |run| run.1);
        let (before, after) = (at.checked_sub(1), Some(at + 1));
        let into = if length(before) >= length(after) { before.unwrap_or(at + 1) } else { at + 1 };
        runs[at].0 = runs[into].0;
        runs.dedup_by(|next, before| {
            let same = next.0 == before.0;
            before.1 += if same { next.1 } else { 0 };
            same
        });
    }
}

/// Pearson's; nothing where one of the two does not vary.
fn correlation(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let count = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / count, y + pair.1 / count));
    let sum = |of: fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    let (xx, yy, xy) = (sum(|x, _| x * x), sum(|_, y| y * y), sum(|x, y| x * y));
    let varies = |square: f64, mean: f64| square > 1e-12 * count * mean * mean && square > 0.0;
    (pairs.len() > 2 && varies(xx, x) && varies(yy, y)).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minerva_model::JobPhaseKind::{Compute, Read, Shuffle, Write};
    use proptest::prelude::*;

    const MB: u64 = 1_000_000;

    fn step(read: u64, write: u64, cores: f64) -> JobStep {
        JobStep {
            seconds: 1.0,
            read_bytes: read * MB,
            write_bytes: write * MB,
            cores: Some(cores),
            memory_bytes: Some(1),
        }
    }

    fn kinds(steps: &[JobStep]) -> Vec<(JobPhaseKind, f64)> {
        phases(steps).iter().map(|phase| (phase.kind, phase.seconds)).collect()
    }

    #[test]
    fn a_sort_reads_shuffles_and_writes() {
        let mut steps = vec![step(80, 0, 0.4); 20];
        steps.extend(vec![step(40, 45, 0.9); 15]);
        steps.extend(vec![step(1, 90, 0.3); 25]);
        // A stall, and a burst of the cache's.
        steps[5] = step(0, 0, 0.1);
        steps[50] = step(60, 2, 0.3);
        assert_eq!(kinds(&steps), [(Read, 20.0), (Shuffle, 15.0), (Write, 25.0)]);
        let phases = phases(&steps);
        assert_eq!((phases[0].read_bytes_per_second, phases[0].write_bytes_per_second), (76.0 * 1e6, 0.0));
    }

    #[test]
    fn k_means_computes_between_its_scans_and_goes_against_the_processor() {
        let steps: Vec<JobStep> =
            (0..3).flat_map(|_| [vec![step(70, 0, 0.2); 10], vec![step(0, 0, 1.9); 30]].concat()).collect();
        assert_eq!(
            kinds(&steps),
            [(Read, 10.0), (Compute, 30.0), (Read, 10.0), (Compute, 30.0), (Read, 10.0), (Compute, 30.0)]
        );
        let found = correlation(steps.iter().map(|step| (rate(step), step.cores.unwrap())));
        assert!(found.is_some_and(|found| (found + 1.0).abs() < 1e-9), "{found:?}");
        assert_eq!(correlation(steps.iter().map(|step| (rate(step), 1.0))), None, "memory does not vary");
        assert_eq!(
            [0.7, 0.3, 0.1].map(intensity),
            [DiskIntensity::Intensive, DiskIntensity::Moderate, DiskIntensity::Light]
        );
    }

    #[test]
    fn a_phase_of_one_step_is_told_unless_its_neighbours_explain_it() {
        let (read, write, idle) = (step(80, 0, 0.2), step(0, 80, 0.2), step(0, 0, 0.9));
        let mixed = step(40, 40, 0.5);
        // One who reads has begun to write in the middle of a step.
        assert_eq!(kinds(&[vec![read; 4], vec![mixed], vec![write; 3]].concat()), [(Read, 5.0), (Write, 3.0)]);
        // Neither reads nor computing writes.
        let shuffles = [vec![read; 2], vec![mixed], vec![idle; 3], vec![write; 2]].concat();
        assert_eq!(kinds(&shuffles), [(Read, 2.0), (Shuffle, 1.0), (Compute, 3.0), (Write, 2.0)]);
        let bursts = [vec![read], vec![idle; 3], vec![write], vec![idle; 3], vec![write]].concat();
        assert_eq!(
            kinds(&bursts),
            [(Read, 1.0), (Compute, 3.0), (Write, 1.0), (Compute, 3.0), (Write, 1.0)],
            "short bursts between stretches of computing"
        );
        // A stall.
        assert_eq!(kinds(&[vec![read; 5], vec![idle], vec![read; 5]].concat()), [(Read, 11.0)]);
    }

    #[test]
    fn a_run_that_ends_by_computing_has_a_phase_of_it_where_its_processor_is_seen() {
        let run = |cores| {
            let mut trace = Trace::default();
            let slice = |trace: &mut Trace, read_bytes, cores| {
                let moved = crate::job_trace::Moved { read_bytes, part: 0.5, ..Default::default() };
                trace.slice(1.0, moved);
                trace.used(&usage(cores));
            };
            (0..5).for_each(|_| slice(&mut trace, 80 * MB, 0.5));
            // What it writes at its end is written in the last part of a slice, which nobody sees.
            (0..3).for_each(|_| slice(&mut trace, 0, cores));
            let found = profile(&trace).unwrap();
            (found.seconds, found.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>())
        };
        assert_eq!(run(1.0), (8.0, vec![Read, Compute]));
        assert_eq!(run(0.05), (5.0, vec![Read]), "it only rests");
    }

    fn usage(cores: f64) -> minerva_model::UsageSignals {
        minerva_model::UsageSignals {
            tenant: minerva_model::TenantId(1),
            elapsed: minerva_model::Nanos::SECOND,
            cpu_ns: (cores * 1e9) as u64,
            memory_bytes: 1,
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
    fn nothing_is_said_of_nothing() {
        assert_eq!(profile(&Trace::default()), None);
        assert_eq!(phases(&[]), []);
        assert_eq!(kinds(&[step(0, 0, 0.0)]), [(Compute, 1.0)]);
    }

    proptest! {
        #[test]
        fn phases_span_all_steps_alternate_and_keep_the_bytes(
            moved in prop::collection::vec((0u64..200, 0u64..200), 1..120),
        ) {
            let steps: Vec<JobStep> = moved.iter().map(|(read, write)| step(*read, *write, 1.0)).collect();
            let found = phases(&steps);
            prop_assert_eq!(found.iter().map(|phase| phase.seconds).sum::<f64>(), steps.len() as f64);
            prop_assert!(found.windows(2).all(|pair| pair[0].kind != pair[1].kind));
            let read: f64 = found.iter().map(|phase| phase.read_bytes_per_second * phase.seconds).sum();
            prop_assert!((read - moved.iter().map(|(read, _)| (read * MB) as f64).sum::<f64>()).abs() < 1.0);
        }
    }
}
