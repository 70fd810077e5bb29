//! Processes: what each did between two looks.

use super::connections::Connections;
use super::{FILES_MAX, PROCESSES_MAX, files};
use minerva_api::v1;
use procfs::process::{Process, all_processes};
use std::collections::BTreeMap;

/// Processes whose open files are looked at, at most: the busiest. It bounds what a report costs on a crowded machine.
const LOOKED_INTO_MAX: usize = 1024;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// All processes at one moment.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<Key, Counters>);

/// A number is used again; with the moment of its start, in ticks since the machine's, it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: i32,
    start_ticks: u64,
}

/// What a process has done since its start.
#[derive(Clone, Debug)]
struct Counters {
    name: String,
    cpu_ticks: u64,
    resident_bytes: u64,
    /// Read and written; absent where the agent may not look.
    io_bytes: Option<(u64, u64)>,
}

impl Processes {
    pub(super) fn look() -> Self {
        // A process that ends while it is looked at is left out.
        let seen = all_processes().into_iter().flatten().filter_map(Result::ok);
        Self(seen.filter_map(|process| counters(&process)).collect())
    }

    /// The busiest first.
    pub(super) fn since(&self, before: &Self, connections: &mut Connections) -> Vec<v1::ProcessReport> {
        let mut reports: Vec<v1::ProcessReport> =
            self.0.iter().map(|(key, now)| difference(*key, now, before.0.get(key))).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(busyness(report)));
        let mut kept = Vec::new();
        for mut report in reports.into_iter().take(LOOKED_INTO_MAX) {
            if kept.len() == PROCESSES_MAX {
                break;
            }
            let Ok(process) = i32::try_from(report.pid).map_err(drop).and_then(|pid| Process::new(pid).map_err(drop))
            else {
                continue;
            };
            let opened = files::opened(&process);
            report.connections = connections.of(&process, &opened.sockets);
            report.files = opened.files;
            report.files.sort_by_key(|file| std::cmp::Reverse(file.size_bytes));
            report.files.truncate(FILES_MAX);
            if busyness(&report) > (0, 0) || !report.files.is_empty() || report.connections > 0 {
                kept.push(report);
            }
        }
        kept
    }
}

/// First who moves data, then who computes.
fn busyness(report: &v1::ProcessReport) -> (u64, u64) {
    let moved = report.read_bytes.unwrap_or(0).saturating_add(report.write_bytes.unwrap_or(0));
    (moved, report.cpu_ns)
}

fn counters(process: &Process) -> Option<(Key, Counters)> {
    let stat = process.stat().ok()?;
    let io = process.io().ok();
    let counters = Counters {
        cpu_ticks: stat.utime.saturating_add(stat.stime),
        resident_bytes: stat.rss.saturating_mul(procfs::page_size()),
        io_bytes: io.map(|io| (io.read_bytes, io.write_bytes)),
        name: stat.comm,
    };
    Some((Key { pid: stat.pid, start_ticks: stat.starttime }, counters))
}

/// A process that was not there before began since, so that all it did counts.
fn difference(key: Key, now: &Counters, before: Option<&Counters>) -> v1::ProcessReport {
    let cpu_ticks = now.cpu_ticks.saturating_sub(before.map_or(0, |before| before.cpu_ticks));
    let (read_before, write_before) = before.and_then(|before| before.io_bytes).unwrap_or_default();
    v1::ProcessReport {
        pid: key.pid.unsigned_abs(),
        name: now.name.clone(),
        cpu_ns: nanos_of_ticks(cpu_ticks),
        resident_bytes: now.resident_bytes,
        read_bytes: now.io_bytes.map(|(read, _)| read.saturating_sub(read_before)),
        write_bytes: now.io_bytes.map(|(_, write)| write.saturating_sub(write_before)),
        files: Vec::new(),
        connections: 0,
    }
}

fn nanos_of_ticks(ticks: u64) -> u64 {
    let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND) / u128::from(procfs::ticks_per_second().max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// Since the first process of this machine, or of this container, started.
pub(super) fn uptime_ns() -> u64 {
    let Ok(now) = rustix_now_ns() else { return 0 };
    let first = Process::new(1).and_then(|process| process.stat());
    now.saturating_sub(first.map_or(0, |first| nanos_of_ticks(first.starttime)))
}

/// The clock in which the kernel tells when a process started.
fn rustix_now_ns() -> Result<u64, std::num::TryFromIntError> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Ok(u64::try_from(now.tv_sec)? * NANOS_PER_SECOND + u64::try_from(now.tv_nsec)?)
}

#[cfg(test)]
mod tests {
    use super::{Counters, Key, difference, nanos_of_ticks};

    fn counters(cpu_ticks: u64, io_bytes: Option<(u64, u64)>) -> Counters {
        Counters { name: "a".to_owned(), cpu_ticks, resident_bytes: 7, io_bytes }
    }

    #[test]
    fn counters_of_a_new_process_count_whole() {
        let key = Key { pid: 5, start_ticks: 9 };
        let now = counters(100, Some((30, 40)));
        let report = difference(key, &now, None);
        assert_eq!((report.cpu_ns, report.read_bytes, report.write_bytes), (nanos_of_ticks(100), Some(30), Some(40)));
        let report = difference(key, &now, Some(&counters(60, Some((10, 40)))));
        assert_eq!((report.cpu_ns, report.read_bytes, report.write_bytes), (nanos_of_ticks(40), Some(20), Some(0)));
    }

    #[test]
    fn what_may_not_be_read_is_absent_and_not_nothing() {
        let report = difference(Key { pid: 5, start_ticks: 9 }, &counters(1, None), None);
        assert_eq!((report.read_bytes, report.write_bytes), (None, None));
    }
}
