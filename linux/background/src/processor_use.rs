//! How much of the host's processors others than background work use, and whether they wait for one: `/proc/stat`, `/proc/pressure/cpu`, and
//! `cpu.stat` and `cpu.pressure` of the work's groups.
//!
//! What nobody counts is nothing: without pressure accounting nobody is seen to wait, and without the unified hierarchy what work uses is taken
//! for others', so that it is confined to fewer.

use minerva_model::{Nanos, ProcessorUse};
use std::fs;
use std::path::Path;

/// `USER_HZ` of every Linux architecture: the unit of `/proc/stat` (proc(5)).
const TICKS_PER_SECOND: u64 = 100;

/// Counters at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    busy: Nanos,
    waited: Nanos,
}

/// The last reading.
#[derive(Debug, Default)]
pub(crate) struct HostProcessors {
    last: Option<(Nanos, Counted, Counted)>,
}

impl HostProcessors {
    /// What was seen since the last call, with work in `groups`; without how many are available, which depends on the group.
    pub(crate) fn look<'a>(&mut self, now: Nanos, proc: &Path, groups: impl Iterator<Item = &'a Path>) -> ProcessorUse {
        let host = Counted { busy: busy(&read(&proc.join("stat"))), waited: waited(&read(&proc.join("pressure/cpu"))) };
        let work = groups.map(of_group).fold(Counted::default(), |sum, group| Counted {
            busy: sum.busy + group.busy,
            // Two that wait at once are counted twice: then others are seen to wait less, and their use still counts.
            waited: sum.waited + group.waited,
        });
        let Some((at, host_before, work_before)) = self.last.replace((now, host, work)) else {
            return ProcessorUse::default();
        };
        // Groups that end take their counts along.
        let others = |host: Nanos, host_before: Nanos, work: Nanos, work_before: Nanos| {
            Nanos(host.since(host_before).0.saturating_sub(work.since(work_before).0))
        };
        ProcessorUse {
            available: 0,
            elapsed: now.since(at),
            others: others(host.busy, host_before.busy, work.busy, work_before.busy),
            others_waited: others(host.waited, host_before.waited, work.waited, work_before.waited),
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn of_group(group: &Path) -> Counted {
    Counted { busy: processor_time(group).unwrap_or_default(), waited: waited(&read(&group.join("cpu.pressure"))) }
}

/// Processor time that a group of the unified hierarchy ever used; nothing in another, where nobody counts it.
pub(crate) fn processor_time(group: &Path) -> Option<Nanos> {
    let text = read(&group.join("cpu.stat"));
    let microseconds = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse::<u64>().ok())?;
    Some(Nanos(microseconds.saturating_mul(1000)))
}

/// Of "cpu  user nice system idle iowait irq softirq steal …" all but idle, iowait and steal.
fn busy(text: &str) -> Nanos {
    let numbers = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = numbers.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|index| ticks.get(*index)).sum();
    Nanos(busy.saturating_mul(1_000_000_000 / TICKS_PER_SECOND))
}

/// Of "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" the total, in microseconds.
fn waited(text: &str) -> Nanos {
    let some = text.lines().find_map(|line| line.strip_prefix("some ")).unwrap_or_default();
    let total = some.split(' ').find_map(|word| word.strip_prefix("total=")?.parse::<u64>().ok()).unwrap_or(0);
    Nanos(total.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::HostProcessors;
    use minerva_model::{Nanos, ProcessorUse};
    use std::fs;

    #[test]
    fn what_work_uses_and_waits_for_is_not_the_others() {
        let root = tempfile::tempdir().unwrap();
        let (proc, group) = (root.path().join("proc"), root.path().join("group"));
        fs::create_dir_all(proc.join("pressure")).unwrap();
        fs::create_dir(&group).unwrap();
        let write = |host_ticks: u64, host_waited: u64, work_us: u64, work_waited: u64| {
            fs::write(proc.join("stat"), format!("cpu  {host_ticks} 0 0 999 7 0 0 5 0 0\ncpu0 1 2\n")).unwrap();
            let pressure = |total: u64| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull total=9\n");
            fs::write(proc.join("pressure/cpu"), pressure(host_waited)).unwrap();
            fs::write(group.join("cpu.stat"), format!("usage_usec {work_us}\nuser_usec 1\n")).unwrap();
            fs::write(group.join("cpu.pressure"), pressure(work_waited)).unwrap();
        };
        let mut host = HostProcessors::default();
        let mut look = |second: u64| host.look(Nanos::from_secs(second), &proc, [group.as_path()].into_iter());
        write(100, 1_000, 500_000, 0);
        assert_eq!(look(1), ProcessorUse::default(), "nothing to compare with");
        write(300, 401_000, 1_100_000, 300_000);
        let expected = ProcessorUse {
            available: 0,
            elapsed: Nanos::SECOND,
            others: Nanos::from_millis(1_400),
            others_waited: Nanos::from_millis(100),
        };
        assert_eq!(look(2), expected);
        write(310, 401_000, 0, 0);
        assert_eq!(look(3).others, Nanos::from_millis(100), "the group is gone");
    }
}
