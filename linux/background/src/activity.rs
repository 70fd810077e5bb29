//! Whether the processes of a command do anything: of a command nothing else is known.

use crate::processor_use::processor_time;
use minerva_model::Nanos;
use std::fs;
use std::path::Path;

/// Less is what a process uses that waits and now and then looks whether it must go on waiting.
const PROCESSOR_LEAST: Nanos = Nanos::from_millis(10);

/// What a group had used when its processes last did anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    last: Option<(Nanos, u64)>,
}

impl Activity {
    /// Whether they did anything since the last call: used a processor, beside `worker` that its worker used itself, or made a request of any
    /// disk. Nothing where nobody counts a group's processor time: then nobody knows.
    pub(crate) fn look(&mut self, unified: &Path, io: &Path, worker: Nanos) -> Option<bool> {
        let now = (processor_time(unified)?.since(worker), requests(io));
        let did = self.last.is_none_or(|(processor, requests)| {
            // Who has another worker begins anew.
            now.0 >= processor + PROCESSOR_LEAST || now.0 + PROCESSOR_LEAST < processor || now.1 != requests
        });
        if did {
            self.last = Some(now);
        }
        Some(did)
    }
}

/// Requests that a group ever made, of all disks: `io.stat`, or what either layer of v1 counts.
fn requests(group: &Path) -> u64 {
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
    let of_v2 = |word: &str| word.strip_prefix("rios=").or_else(|| word.strip_prefix("wios=")).map_or(0, number);
    let unified: u64 = read("io.stat").split_whitespace().map(of_v2).sum();
    let of_v1 = |layer: &str| {
        let text = read(&format!("{layer}.io_serviced_recursive"));
        text.lines().find_map(|line| line.strip_prefix("Total ")).map_or(0, number)
    };
    unified + of_v1("blkio.throttle") + of_v1("blkio.bfq")
}

#[cfg(test)]
mod tests {
    use super::Activity;
    use minerva_model::Nanos;
    use std::fs;

    #[test]
    fn who_uses_neither_a_processor_nor_a_disk_does_nothing_and_its_worker_does_not_count() {
        let group = tempfile::tempdir().unwrap();
        let mut activity = Activity::default();
        let mut look = |used_us: u64, worker_us: u64, requests: u64| {
            fs::write(group.path().join("cpu.stat"), format!("usage_usec {used_us}\n")).unwrap();
            fs::write(group.path().join("io.stat"), format!("8:0 rbytes=1 wbytes=2 rios={requests} wios=3\n")).unwrap();
            activity.look(group.path(), group.path(), Nanos(worker_us * 1000)).unwrap()
        };
        assert!(look(50_000, 1_000, 7), "nothing is known of before");
        assert!(!look(58_000, 9_000, 7), "its worker looked whether it has ended");
        assert!(!look(62_000, 10_000, 7), "three milliseconds");
        assert!(look(70_000, 11_000, 7), "ten, and it was seen nothing of in between");
        assert!(!look(71_000, 12_000, 7));
        assert!(look(71_000, 12_000, 8), "it reads");
        assert!(look(5_000, 1_000, 8), "another run of it");
        let without = tempfile::tempdir().unwrap();
        assert_eq!(Activity::default().look(without.path(), without.path(), Nanos::ZERO), None, "nobody counts");
    }

    #[test]
    fn requests_of_both_layers_of_v1_count() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("blkio.bfq.io_serviced_recursive"), "8:0 Read 3\n8:0 Total 5\nTotal 5\n").unwrap();
        fs::write(group.path().join("blkio.throttle.io_serviced_recursive"), "Total 2\n").unwrap();
        assert_eq!(super::requests(group.path()), 7);
    }
}
