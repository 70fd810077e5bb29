//! Malensek et al. 2016, Fig. 3-c: a word count beside an ingest on 75 hosts, as flows of bytes with the real engine on each host. What
//! is assumed stands in docs/adr/0016.
//!
//! | file | what |
//! |---|---|
//! | `cluster` | what is assumed, as numbers |
//! | `vm` | what a VM does: steps of the job, or data that come in |
//! | `draw` | when and how much, drawn |
//! | `host` | disks and processors dealt among the VMs of a host, and its engine |

mod cluster;
mod draw;
mod host;
mod vm;

pub(crate) use cluster::Cluster;

use crate::experiment::arm::Arm;
use crate::median::median;
use host::{Host, Stage};

/// Who deals the disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dealing {
    /// An engine on each host, or nobody.
    By(Arm),
    /// Whenever a VM of the job asks, only those of the job are served: no steering of disks could give the job more.
    JobFirst,
}

impl Dealing {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::By(arm) => arm.name(),
            Self::JobFirst => "the job first",
        }
    }
}

/// What came of one run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// From launch to the end of the last reduce.
    pub(crate) job_s: f64,
    /// Mean time of a map task.
    pub(crate) task_s: f64,
    /// From launch until all is on the disks.
    pub(crate) ingest_s: f64,
    /// For each disk after how long its ingest was held back, if it ever was.
    pub(crate) detected_s: Vec<Option<f64>>,
}

impl Outcome {
    /// The part of disks on which the ingest was held back within so many seconds.
    pub(crate) fn detected_within(&self, seconds: f64) -> f64 {
        let count = self.detected_s.iter().filter(|at| at.is_some_and(|at| at <= seconds)).count();
        count as f64 / self.detected_s.len().max(1) as f64
    }

    /// The median over the disks; endless where half of them never did.
    pub(crate) fn detected_median(&self) -> f64 {
        // Also where there is no disk.
        let middle = median(self.detected_s.iter().map(|at| at.unwrap_or(f64::INFINITY)));
        if middle.is_nan() { f64::INFINITY } else { middle }
    }
}

/// Runs the cluster on so many threads; what is drawn depends on the seed, not on who deals or the threads.
pub(crate) fn run(cluster: &Cluster, dealing: Dealing, seed: u64, threads: usize) -> Outcome {
    let mut hosts: Vec<Host> = (0..cluster.hosts()).map(|number| Host::new(cluster, number, dealing, seed)).collect();
    let each = |hosts: &mut [Host], stage: Stage| {
        let length = hosts.len().div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            for part in hosts.chunks_mut(length) {
                scope.spawn(move || part.iter_mut().for_each(|host| host.run(stage)));
            }
        });
    };
    each(&mut hosts, Stage::Maps);
    let barrier = hosts.iter().map(Host::maps_ended_s).fold(0.0, f64::max);
    each(&mut hosts, Stage::Rest { reduces_from_s: barrier });
    let (tasks, seconds) = hosts.iter().map(Host::tasks).fold((0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    Outcome {
        job_s: hosts.iter().map(Host::job_s).fold(0.0, f64::max),
        task_s: seconds / f64::from(tasks.max(1)),
        ingest_s: hosts.iter().map(Host::ingest_s).fold(0.0, f64::max),
        detected_s: hosts.iter().flat_map(Host::detected_s).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Cluster, Dealing, run};
    use crate::experiment::arm::Arm;

    /// Two hosts, a tenth of the data.
    fn small() -> Cluster {
        Cluster { e5620_hosts: 1, e3_hosts: 1, map_tasks: 3, ingest_bytes: 1.7e9, ..Cluster::default() }
    }

    #[test]
    fn a_run_repeats_on_any_number_of_threads_and_takes_as_long_as_bytes_and_cores_ask() {
        let cluster = small();
        let [one, two] = [1, 2].map(|threads| run(&cluster, Dealing::By(Arm::Equal), 7, threads));
        assert_eq!((one.job_s, one.task_s, one.ingest_s), (two.job_s, two.task_s, two.ingest_s));
        // 234 MB/s come in for eight VMs, and 1.7 GB each.
        assert!(one.ingest_s > 1.7e9 * 8.0 / 234e6 && one.ingest_s < 200.0, "{}", one.ingest_s);
        // Alone a task reads for 1.4 s and counts for 5.7 s at least.
        assert!(one.task_s > 7.0 && one.task_s < 60.0, "{}", one.task_s);
        assert!(one.job_s > 3.0 * 7.0 && one.detected_s.iter().all(Option::is_none), "nobody steers");
    }

    #[test]
    fn history_holds_the_ingest_back() {
        let outcome = run(&small(), Dealing::By(Arm::History), 7, 2);
        assert!(outcome.detected_s.iter().any(Option::is_some), "{:?}", outcome.detected_s);
        assert!(outcome.detected_median() >= 0.0 && outcome.detected_within(f64::MAX) > 0.0);
    }

    #[test]
    fn nobody_gives_the_job_more_than_who_always_lets_it_go_first() {
        let cluster = small();
        let of = |dealing| run(&cluster, dealing, 7, 2);
        let first = of(Dealing::JobFirst);
        for arm in [Arm::Equal, Arm::History, Arm::Forecasts] {
            let outcome = of(Dealing::By(arm));
            assert!(first.job_s <= outcome.job_s && first.task_s <= outcome.task_s, "{}: {outcome:?}", arm.name());
        }
        // With cores without end the disks alone would bound it.
        let fast = Cluster { core_bytes_per_second: 1e12, ..cluster };
        assert!(run(&fast, Dealing::JobFirst, 7, 2).task_s < 0.7 * first.task_s);
    }
}
