//! Matteussi and Geyer 2018: jobs that share a disk, all at once or the shortest first, with the engine in the loop.

use crate::experiment::client::is_rotational;
use minerva_blocksched::{Bfq, BfqOptions, FlowParameters};
use minerva_model::{EngineConfig, JobSettings, MakespanSettings, Nanos};
use minerva_sim_device::Profile;
use minerva_sim_workload::{Generator, Pause, Plan};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, TenantSetup, World, WorldSetup};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const BLOCK_BYTES: u32 = 512 * 1024;
const HORIZON: Nanos = Nanos::from_secs(100_000);
/// When all start: the engine has seen the disk, as a daemon that runs has, and a slice is half over.
const BEGIN: Nanos = Nanos::from_millis(2_500);

/// A job: a program that reads so much, one request after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    pub(crate) bytes: u64,
    /// Computing after each request.
    pub(crate) think_us: u64,
}

const fn reads(name: &'static str, gigabytes_tenth: u64, think_us: u64) -> Job {
    Job { name, bytes: gigabytes_tenth * 100_000_000, think_us }
}

/// The paper's three, with their sizes; K-means computes in between.
pub(crate) const HETEROGENEOUS: [Job; 3] =
    [reads("terasort, 20 GB", 200, 0), reads("sort, 1.1 GB", 11, 0), reads("k-means, 3 GB", 30, 2_000)];
/// One program with four workloads; the paper gives no sizes.
pub(crate) const HOMOGENEOUS: [Job; 4] =
    [reads("sort, 8 GB", 80, 0), reads("sort, 4 GB", 40, 0), reads("sort, 2 GB", 20, 0), reads("sort, 1 GB", 10, 0)];

/// The same, of which each takes a few slices: what matters is how soon the next goes first.
pub(crate) const SHORT: [Job; 4] = [
    reads("sort, 400 MB", 4, 0),
    reads("sort, 200 MB", 2, 0),
    Job { name: "sort, 100 MB", bytes: 100_000_000, think_us: 0 },
    Job { name: "sort, 50 MB", bytes: 50_000_000, think_us: 0 },
];

/// Of a drawn mix: how many jobs, how many bytes each reads, and for how long those that compute do so after a request.
const DRAWN_NAMES: [&str; 6] = ["job 1", "job 2", "job 3", "job 4", "job 5", "job 6"];
const DRAWN_JOBS_MIN: usize = 3;
const DRAWN_BYTES: (f64, f64) = (0.3e9, 20e9);
const DRAWN_THINK_US: std::ops::Range<u64> = 200..2_000;

/// A mix that nothing was chosen by: three to six jobs whose sizes are alike on a scale of magnitudes, of which a third computes.
pub(crate) fn drawn(seed: u64) -> Vec<Job> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x6a6f_6273);
    let count = random.random_range(DRAWN_JOBS_MIN..=DRAWN_NAMES.len());
    let mut job = |name: &'static str| {
        let bytes = random.random_range(DRAWN_BYTES.0.ln()..DRAWN_BYTES.1.ln()).exp() as u64;
        let think_us = if random.random_range(0..3) == 0 { random.random_range(DRAWN_THINK_US) } else { 0 };
        Job { name, bytes, think_us }
    };
    DRAWN_NAMES[..count].iter().map(|name| job(name)).collect()
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// BFQ with equal weights.
    Equal,
    /// The engine without jobs: past use only.
    Fennel,
    /// The engine, told every job and its size.
    Sizes,
    /// The engine, told the jobs but not their sizes.
    NoSizes,
    /// The engine, told sizes, but the largest job says that it is one byte.
    Lie,
}

impl Arm {
    pub(crate) const ALL: [Self; 5] = [Self::Equal, Self::Fennel, Self::Sizes, Self::NoSizes, Self::Lie];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal weights",
            Self::Fennel => "past use only",
            Self::Sizes => "shortest first, sizes",
            Self::NoSizes => "shortest first, no sizes",
            Self::Lie => "the largest says 1 byte",
        }
    }

    fn config(self, jobs: &[Job]) -> Option<EngineConfig> {
        let largest = jobs.iter().map(|job| job.bytes).max();
        let settings = |job: &Job| JobSettings {
            name: job.name.to_owned(),
            bytes: match self {
                Self::NoSizes => None,
                Self::Lie if Some(job.bytes) == largest => Some(1),
                _ => Some(job.bytes),
            },
        };
        let makespan = match self {
            Self::Equal => return None,
            Self::Fennel => MakespanSettings::default(),
            Self::Sizes | Self::NoSizes | Self::Lie => {
                let jobs = jobs.iter().map(|job| (job.name.to_owned(), settings(job))).collect();
                MakespanSettings { jobs, ..MakespanSettings::default() }
            }
        };
        Some(EngineConfig { makespan, ..EngineConfig::default() })
    }
}

/// Seconds that each job takes when all start together.
pub(crate) fn run(profile: &Profile, jobs: &[Job], arm: Arm, seed: u64) -> Vec<f64> {
    run_some(profile, jobs, |_| true, (arm, seed))
}

/// Seconds that each job takes alone, where its data lie beside the others': a disk is faster at its rim.
pub(crate) fn alone(profile: &Profile, jobs: &[Job], seed: u64) -> Vec<f64> {
    (0..jobs.len()).flat_map(|only| run_some(profile, jobs, |job| job == only, (Arm::Equal, seed))).collect()
}

/// Seconds that some of the jobs take.
fn run_some(profile: &Profile, jobs: &[Job], runs: impl Fn(usize) -> bool, (arm, seed): (Arm, u64)) -> Vec<f64> {
    let part = profile.capacity_bytes / jobs.len() as u64 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    let processes = jobs.iter().enumerate().filter(|(index, _)| runs(*index)).map(|(index, job)| {
        let plan = Plan {
            block_bytes: BLOCK_BYTES,
            offset_bytes: part * index as u64,
            region_bytes: part,
            total_bytes: Some(job.bytes),
            pause: (job.think_us > 0).then(|| Pause { time: Nanos::from_micros(job.think_us), every: 1 }),
            ..Plan::default()
        };
        ProcessSetup {
            name: job.name.to_owned(),
            tenant: index,
            source: Box::new(Generator::new(plan, seed << 8 | index as u64)),
            starts_at: BEGIN,
            parameters: FlowParameters::default(),
            promise: None,
        }
    });
    let tenant = |job: &Job| TenantSetup { name: job.name.to_owned(), weight: 100, guest: None };
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions::default())),
        depth: 1,
        tenants: jobs.iter().map(tenant).collect(),
        processes: processes.collect(),
        engine: arm.config(jobs).map(|config| EngineSetup {
            config,
            rotational: is_rotational(profile),
            outlook: OutlookSource::default(),
        }),
        bin: Nanos::SECOND,
    });
    world.run(HORIZON);
    let finished = |finished_s: Option<f64>| finished_s.map_or(f64::INFINITY, |at| at - BEGIN.as_secs_f64());
    world.report().processes.iter().map(|process| finished(process.finished_s)).collect()
}

/// Completion times if jobs run one after the other, the shortest first: the least possible mean where nothing overlaps.
pub(crate) fn optimum(alone: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..alone.len()).collect();
    order.sort_by(|a, b| alone[*a].total_cmp(&alone[*b]));
    let (mut times, mut now) = (vec![0.0; alone.len()], 0.0);
    for job in order {
        now += alone[job];
        times[job] = now;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_few_slices_gain_after_the_first_too() {
        let profile = minerva_sim_device::profile("sas10k-300g").expect("built in");
        let [equal, ours] = [Arm::Equal, Arm::Sizes].map(|arm| run(&profile, &SHORT, arm, 1));
        let sooner: Vec<f64> = ours.iter().zip(&equal).map(|(ours, equal)| 1.0 - ours / equal).collect();
        // The longest is first in the list. Who is the shortest after half a slice is chance, as rates are.
        assert!(sooner[1..3].iter().all(|part| *part > 0.15), "{equal:?} {ours:?} {sooner:?}");
        let sum = |times: &[f64]| times.iter().sum::<f64>();
        assert!(sooner[0] > -0.03 && sum(&ours) < 0.9 * sum(&equal), "{equal:?} {ours:?} {sooner:?}");
    }

    #[test]
    fn with_sizes_most_of_what_one_after_the_other_gains_is_gained_and_nobody_is_done_late() {
        let profile = minerva_sim_device::profile("sas10k-300g").expect("built in");
        let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7_301);
        println!("seed {seed}; PROPTEST_RNG_SEED sets another");
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let gain = |jobs: &[Job]| {
            let [equal, ours] = [Arm::Equal, Arm::Sizes].map(|arm| run(&profile, jobs, arm, seed));
            let best = mean(&optimum(&alone(&profile, jobs, seed)));
            let later = ours.iter().zip(&equal).map(|(ours, equal)| ours / equal).fold(0.0, f64::max);
            assert!(later < 1.05, "seed {seed}: {equal:?} {ours:?}");
            (mean(&equal) - mean(&ours)) / (mean(&equal) - best)
        };
        let alike = gain(&HOMOGENEOUS);
        assert!(alike > 0.85, "seed {seed}: {alike}");
        let mut gains = [0, 1, 2, 3, 4].map(|mix| gain(&drawn(seed.wrapping_mul(5).wrapping_add(mix))));
        gains.sort_unstable_by(f64::total_cmp);
        assert!(gains[2] > 0.7, "seed {seed}: {gains:?}");
    }

    #[test]
    fn a_job_that_computes_between_its_requests_goes_first_though_the_disk_is_idle_meanwhile() {
        let profile = minerva_sim_device::profile("sas10k-300g").expect("built in");
        // The one that computes is shorter. Beside it a longer one that computes too, or one that does not.
        for think_us in [0, 1_500] {
            let jobs = [reads("short", 30, 2_000), reads("long", 60, think_us)];
            let alone = alone(&profile, &jobs, 1);
            let ours = run(&profile, &jobs, Arm::Sizes, 1);
            assert!(ours[0] < 1.3 * alone[0], "{think_us}: {ours:?} {alone:?}");
        }
    }

    #[test]
    fn the_optimum_is_each_after_the_shorter_ones() {
        assert_eq!(optimum(&[5.0, 1.0, 3.0]), [9.0, 1.0, 4.0]);
    }
}
