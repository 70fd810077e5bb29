//! The jobs, as data. Both arms read the same list; adding a job is adding a row.

use minerva_blocksched::SchedulerName;
use std::fmt;

/// A disk that seeks.
pub const HDD: &str = "sata7200-80g";
/// One that does not.
pub const SSD: &str = "sata-ssd";
/// Another that seeks, in no job of the suite.
pub const FAST_HDD: &str = "sas10k-300g";
/// All of them.
pub const PROFILES: [&str; 3] = [HDD, FAST_HDD, SSD];

/// Who orders requests in the kernel. Each is modelled by a scheduler of the catalogue, which `minerva-blk` has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elevator {
    /// Nobody.
    None,
    /// mq-deadline.
    Deadline,
    /// BFQ, which alone looks at weights.
    Bfq,
}

impl Elevator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Deadline, Self::Bfq];

    /// The scheduler of the catalogue that does the same.
    pub const fn scheduler(self) -> SchedulerName {
        match self {
            Self::None => SchedulerName::Noop,
            Self::Deadline => SchedulerName::MqDeadline,
            Self::Bfq => SchedulerName::Bfq,
        }
    }

    /// The kernel's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Deadline => "mq-deadline",
            Self::Bfq => "bfq",
        }
    }
}

/// What a tenant does, for as long as the job lasts, without a pause between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantJob {
    /// Weight of its cgroup, 1 to 1,000.
    pub weight: u32,
    /// Anywhere in its region, or one block behind the other.
    pub random: bool,
    /// Writes, not reads.
    pub write: bool,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Requests outstanding at once.
    pub depth: u32,
}

impl fmt::Display for TenantJob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.random { "rand" } else { "seq" };
        let direction = if self.write { "write" } else { "read" };
        write!(out, "{order}{direction} {}k x{} w{}", self.block_bytes >> 10, self.depth, self.weight)
    }
}

/// One job: a disk, an elevator and one to four tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Profile of the disk.
    pub profile: &'static str,
    /// Who orders requests.
    pub elevator: Elevator,
    /// One process each, in a cgroup of its own.
    pub tenants: Vec<TenantJob>,
}

impl fmt::Display for Job {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenants: Vec<String> = self.tenants.iter().map(ToString::to_string).collect();
        write!(out, "{} {}: {}", self.profile, self.elevator.as_str(), tenants.join(" | "))
    }
}

const K: u32 = 1 << 10;

const fn reader(random: bool, block_bytes: u32, depth: u32) -> TenantJob {
    TenantJob { weight: 100, random, write: false, block_bytes, depth }
}

fn weighted(tenant: TenantJob, weights: &[u32]) -> Vec<TenantJob> {
    weights.iter().map(|weight| TenantJob { weight: *weight, ..tenant }).collect()
}

/// The suite, shortest first: its first [`QUICK`] jobs are the quick one.
pub fn jobs() -> Vec<Job> {
    let writer = |random, block_bytes, depth| TenantJob { write: true, ..reader(random, block_bytes, depth) };
    let mut jobs = Vec::new();
    let mut add = |profile, elevator, tenants: Vec<TenantJob>| jobs.push(Job { profile, elevator, tenants });
    add(HDD, Elevator::Bfq, weighted(reader(false, 256 * K, 1), &[800, 100]));
    add(HDD, Elevator::None, vec![reader(true, 4 * K, 1), reader(false, 64 * K, 1)]);
    add(HDD, Elevator::Deadline, weighted(reader(true, 16 * K, 4), &[100, 100]));
    add(SSD, Elevator::Bfq, weighted(reader(true, 256 * K, 4), &[200, 100]));
    for weights in [[100, 100], [200, 100], [800, 100]] {
        add(HDD, Elevator::Bfq, weighted(reader(true, 16 * K, 1), &weights));
        add(HDD, Elevator::Bfq, weighted(reader(true, 16 * K, 8), &weights));
        add(HDD, Elevator::Bfq, weighted(reader(false, 64 * K, 1), &weights));
        add(SSD, Elevator::Bfq, weighted(reader(false, 256 * K, 4), &weights));
    }
    for elevator in Elevator::ALL {
        add(HDD, elevator, vec![reader(false, 64 * K, 1)]);
        add(HDD, elevator, vec![reader(true, 4 * K, 8)]);
        add(HDD, elevator, vec![writer(false, 64 * K, 1), writer(true, 64 * K, 1)]);
        add(SSD, elevator, vec![reader(true, 64 * K, 2), writer(true, 64 * K, 2)]);
    }
    for elevator in Elevator::ALL {
        add(HDD, elevator, weighted(reader(true, 16 * K, 2), &[100; 4]));
    }
    add(HDD, Elevator::Bfq, weighted(reader(false, 256 * K, 1), &[400, 200, 100, 100]));
    jobs
}

/// Jobs that were held out while the models were made: other sizes, depths, weights, mixtures, and another disk. Their results
/// were looked at since and models changed by them, so they tell what still holds and no longer what nobody fitted: that is
/// [`crate::draw`]'s.
pub fn once_held_out() -> Vec<Job> {
    let heavy = |tenant, weight| TenantJob { weight, ..tenant };
    let write = |tenant| TenantJob { write: true, ..tenant };
    let job = |profile, elevator, tenants: Vec<TenantJob>| Job { profile, elevator, tenants };
    let (none, deadline, bfq) = (Elevator::None, Elevator::Deadline, Elevator::Bfq);
    vec![
        job(HDD, bfq, weighted(reader(false, 128 * K, 1), &[500, 100])),
        job(HDD, bfq, weighted(reader(true, 32 * K, 4), &[300, 100])),
        job(HDD, bfq, vec![heavy(reader(true, 16 * K, 4), 400), reader(false, 128 * K, 1)]),
        job(HDD, bfq, vec![heavy(write(reader(true, 32 * K, 2)), 300), reader(false, 64 * K, 1)]),
        job(FAST_HDD, bfq, weighted(reader(true, 8 * K, 1), &[1000, 250])),
        job(FAST_HDD, bfq, weighted(reader(false, 512 * K, 1), &[300, 200, 100])),
        job(FAST_HDD, deadline, vec![reader(false, 128 * K, 1), reader(true, 32 * K, 2)]),
        job(FAST_HDD, none, vec![write(reader(false, 256 * K, 2)), reader(true, 16 * K, 4)]),
        job(SSD, bfq, weighted(reader(true, 4 * K, 1), &[800, 100])),
        job(SSD, bfq, weighted(reader(true, 16 * K, 8), &[300, 100])),
        job(SSD, bfq, vec![heavy(reader(true, 16 * K, 2), 500), write(reader(true, 128 * K, 4))]),
        job(SSD, bfq, weighted(reader(false, 1024 * K, 2), &[300, 100])),
        job(SSD, none, vec![reader(true, 4 * K, 4), reader(true, 4 * K, 1)]),
        job(SSD, deadline, vec![reader(true, 128 * K, 4), write(reader(false, 128 * K, 4))]),
    ]
}

/// How many of [`jobs`] the quick suite takes.
pub const QUICK: usize = 4;

/// Where the requests of one tenant of so many lie: start and length in bytes. Each has the outer part of its own equal part of
/// the disk.
pub(crate) fn region(tenants: usize, tenant: usize, capacity_bytes: u64) -> (u64, u64) {
    const ALIGNMENT: u64 = 1 << 20;
    let part = capacity_bytes / tenants as u64 / ALIGNMENT * ALIGNMENT;
    (part * tenant as u64, (part / 4 / ALIGNMENT * ALIGNMENT).max(ALIGNMENT))
}

#[cfg(test)]
mod tests {
    use super::{Elevator, QUICK, jobs, once_held_out, region};

    #[test]
    fn no_job_is_twice_in_the_lists() {
        let jobs: Vec<String> = jobs().iter().chain(&once_held_out()).map(ToString::to_string).collect();
        let distinct: std::collections::BTreeSet<_> = jobs.iter().collect();
        assert_eq!(distinct.len(), jobs.len());
    }

    #[test]
    fn the_suite_covers_what_it_promises() {
        let jobs = jobs();
        assert!(jobs.len() > QUICK);
        for elevator in Elevator::ALL {
            let of_it = || jobs.iter().filter(move |job| job.elevator == elevator).flat_map(|job| &job.tenants);
            assert!(of_it().any(|tenant| tenant.random) && of_it().any(|tenant| !tenant.random));
            assert!(of_it().any(|tenant| tenant.write) && of_it().any(|tenant| tenant.depth > 1));
        }
        for job in jobs.iter().chain(&once_held_out()) {
            assert!((1..=4).contains(&job.tenants.len()), "{job}");
            let (start, length) = region(job.tenants.len(), job.tenants.len() - 1, 80 << 30);
            assert!(start + length <= 80 << 30, "{job}");
        }
    }
}
