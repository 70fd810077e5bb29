//! Whether the processes of a command do anything: of a command nothing else is known.
//!
//! One that only looks again and again whether something has come uses a processor and makes a request now and then, so what counts is what
//! its processes do in ten seconds of running: see [`WINDOW`].

use crate::processes::{Processes, Used};
use crate::processor_use::processor_time;
use minerva_model::Nanos;
use std::fs;
use std::path::Path;

/// What is done in so long counts together. Only time counts in which they were let run.
const WINDOW: Nanos = Nanos::from_secs(10);
/// In a window: a twentieth of a processor. A shell that starts `sleep 1` in a loop uses a two-hundredth.
const PROCESSOR_LEAST: Nanos = Nanos::from_millis(500);
/// In a window: one request a second, of whatever disk.
const REQUESTS_LEAST: u64 = 10;
/// In a window, read from or to be written to a disk: more than lines in a log, of which each dirties a page of 4 KiB at most.
const BYTES_LEAST: u64 = 256 << 10;
/// In a window, so many looks at which some process had what it needs but for a processor, and of all looks at least half.
const RUNNABLE_LOOKS_LEAST: u32 = 5;

/// What a group's processes had used, and how often they were seen to want a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    ran: Nanos,
    processor: Nanos,
    requests: u64,
    bytes: u64,
    looks: u32,
    runnable: u32,
    /// For how long they had been let run at the last look: one at processes that are stopped tells nothing.
    looked_at: Nanos,
}

/// What was seen of a group since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    begun: Option<Window>,
}

/// Where a group is, in the hierarchy by which its processes are stopped and in that of the disk controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupPaths<'a> {
    pub(crate) freezer: &'a Path,
    pub(crate) io: &'a Path,
}

impl Activity {
    /// Whether they did enough since the last call that was answered with yes, or since the window began; `worker` is the processor time that
    /// the group's worker used itself, and `ran` for how long they were let run in all. Nothing where nobody can tell.
    pub(crate) fn look(&mut self, group: GroupPaths<'_>, proc: &Path, (worker, ran): (Nanos, Nanos)) -> Option<bool> {
        let processes = Processes::of_group(group.freezer)?;
        let Used { processor, bytes, is_runnable } = processes.used(proc);
        // Where the kernel counts a group's processor time it counts that of processes that have ended, too.
        let processor = processor_time(group.freezer).unwrap_or(processor).since(worker);
        let requests = requests(group.io);
        let now = Window { ran, processor, requests, bytes, looks: 0, runnable: 0, looked_at: ran };
        let Some(begun) = &mut self.begun else {
            self.begun = Some(now);
            return Some(true);
        };
        let ran_since = ran > begun.looked_at;
        begun.looked_at = ran;
        begun.looks += u32::from(ran_since);
        begun.runnable += u32::from(ran_since && is_runnable);
        let does = begun.does(&now);
        if does || now.ran.since(begun.ran) >= WINDOW {
            self.begun = Some(now);
        }
        Some(does)
    }
}

impl Window {
    fn does(&self, now: &Self) -> bool {
        // Who has another worker begins anew, with less than there was.
        let is_another = now.requests < self.requests || now.processor + PROCESSOR_LEAST < self.processor;
        is_another
            || now.processor.since(self.processor) >= PROCESSOR_LEAST
            || now.requests - self.requests >= REQUESTS_LEAST
            || now.bytes.saturating_sub(self.bytes) >= BYTES_LEAST
            || (self.runnable >= RUNNABLE_LOOKS_LEAST && self.runnable * 2 >= self.looks)
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
mod real_tests;

#[cfg(test)]
mod tests {
    use super::{Activity, GroupPaths};
    use minerva_model::Nanos;
    use std::fs;
    use std::path::Path;

    /// A group of one process, in a hierarchy that counts processor time or not, looked at once a second.
    struct Group {
        root: tempfile::TempDir,
        is_unified: bool,
        activity: Activity,
        second: u64,
        used_us: u64,
        requests: u64,
        written: u64,
        state: char,
    }

    impl Group {
        fn new(is_unified: bool) -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("proc/7")).unwrap();
            fs::create_dir(root.path().join("group")).unwrap();
            fs::write(root.path().join("group/cgroup.procs"), "7\n").unwrap();
            let activity = Activity::default();
            Self { root, is_unified, activity, second: 0, used_us: 0, requests: 0, written: 0, state: 'S' }
        }

        /// Seconds in each of which it uses so much; how many of them it was seen to do something in.
        fn seconds(&mut self, count: u64, (used_us, requests, written): (u64, u64, u64)) -> u64 {
            let (group, proc) = (self.root.path().join("group"), self.root.path().join("proc"));
            let mut does = 0;
            for _ in 0..count {
                self.second += 1;
                (self.used_us, self.requests) = (self.used_us + used_us, self.requests + requests);
                self.written += written;
                if self.is_unified {
                    fs::write(group.join("cpu.stat"), format!("usage_usec {}\n", self.used_us)).unwrap();
                    let io = format!("8:0 rbytes=1 wbytes=2 rios={} wios=3\n", self.requests);
                    fs::write(group.join("io.stat"), io).unwrap();
                } else {
                    let io = format!("8:0 Read 3\nTotal {}\n", self.requests);
                    fs::write(group.join("blkio.bfq.io_serviced_recursive"), io).unwrap();
                }
                let stat = format!(
                    "7 (a (b) c) {} 1 7 7 0 -1 0 0 0 0 0 {} 1 0 0 20 0 1 0 5\n",
                    self.state,
                    self.used_us / 10_000
                );
                fs::write(proc.join("7/stat"), stat).unwrap();
                let io = format!("rchar: 99999\nread_bytes: 0\nwrite_bytes: {}\n", self.written);
                fs::write(proc.join("7/io"), io).unwrap();
                let ran = Nanos::from_secs(self.second);
                let paths = GroupPaths { freezer: &group, io: &group };
                does += u64::from(self.activity.look(paths, &proc, (Nanos::ZERO, ran)).unwrap());
            }
            does
        }
    }

    #[test]
    fn who_looks_again_and_again_whether_it_must_go_on_waiting_does_nothing_in_either_hierarchy() {
        for is_unified in [true, false] {
            let mut group = Group::new(is_unified);
            assert_eq!(group.seconds(1, (0, 0, 0)), 1, "nothing is known of before");
            assert_eq!(group.seconds(600, (0, 0, 0)), 0, "it sleeps");
            // `while ! test -e there; do sleep 1; done`, on a slow machine, and with a line in a log each second.
            assert_eq!(group.seconds(600, (10_000, 0, 4096)), 0);
            // It polls ten times a second and its log is written back now and then.
            assert_eq!(group.seconds(600, (40_000, 0, 8192)), 0);
            assert_eq!(group.seconds(1, (0, 5, 0)), 0, "five requests");
            let slow = group.seconds(60, (0, 2, 0));
            assert!((9..=12).contains(&slow), "two requests a second get on in each five: {slow}");
            let computes = group.seconds(60, (100_000, 0, 0));
            assert!((9..=12).contains(&computes), "a tenth of a processor: {computes}");
            assert!(group.seconds(60, (0, 0, 100_000)) >= 15, "it fills the page cache, which the kernel writes");
            // Bursts of work between long waits.
            assert_eq!(group.seconds(300, (0, 0, 0)), 0);
            assert!(group.seconds(3, (900_000, 0, 0)) >= 2);
        }
    }

    #[test]
    fn who_wants_a_processor_and_gets_none_gets_on_and_who_hangs_in_the_kernel_does_not() {
        let mut group = Group::new(false);
        group.seconds(1, (0, 0, 0));
        group.state = 'R';
        assert!(group.seconds(60, (10_000, 0, 0)) >= 6, "the host leaves it a hundredth");
        group.state = 'S';
        group.seconds(20, (0, 0, 0));
        group.state = 'R';
        assert_eq!(group.seconds(1, (10_000, 0, 0)), 0, "seen to look once");
        group.state = 'D';
        group.seconds(20, (0, 0, 0));
        assert_eq!(group.seconds(600, (0, 0, 0)), 0, "a server that is away, or a broken disk");
    }

    #[test]
    fn its_worker_does_not_count_and_another_worker_begins_anew() {
        let root = tempfile::tempdir().unwrap();
        let mut activity = Activity::default();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        let mut look = |second: u64, used_us: u64, worker_us: u64| {
            fs::write(root.path().join("cpu.stat"), format!("usage_usec {used_us}\n")).unwrap();
            let paths = GroupPaths { freezer: root.path(), io: root.path() };
            let times = (Nanos(worker_us * 1000), Nanos::from_secs(second));
            activity.look(paths, Path::new("/proc"), times).unwrap()
        };
        assert!(look(1, 5_000_000, 0));
        assert!(!look(2, 5_900_000, 900_000), "it looked whether its command has ended");
        assert!(look(3, 7_000_000, 900_000));
        assert!(look(4, 5_000, 1_000), "another run of it");
        assert!(!look(5, 6_000, 2_000));
        let without = tempfile::tempdir().unwrap();
        let nowhere = without.path().join("gone");
        let paths = GroupPaths { freezer: &nowhere, io: &nowhere };
        assert_eq!(Activity::default().look(paths, Path::new("/proc"), (Nanos::ZERO, Nanos::ZERO)), None);
    }

    #[test]
    fn requests_of_both_layers_of_v1_count() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("blkio.bfq.io_serviced_recursive"), "8:0 Read 3\n8:0 Total 5\nTotal 5\n").unwrap();
        fs::write(group.path().join("blkio.throttle.io_serviced_recursive"), "Total 2\n").unwrap();
        assert_eq!(super::requests(group.path()), 7);
    }
}
