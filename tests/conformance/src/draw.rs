//! Jobs that nobody has seen: drawn anew by each run, so that no model can have been made to fit them.
//!
//! | what | drawn from |
//! |---|---|
//! | disk | [`PROFILES`], each as often |
//! | elevator | BFQ, which alone looks at weights, half of the time; `none` and `mq-deadline` a quarter each |
//! | tenants | two, or one time in four three |
//! | access | random or sequential as often; one in four writes |
//! | block | 4 KiB to 1 MiB, the powers of two |
//! | depth | 1 to 8 |
//! | weights | under BFQ the lightest [`LIGHTEST`], the others once to ten times that, in halves; elsewhere all the same |
//!
//! Half of the jobs under BFQ have tenants that are alike but for their weight, as the share of each is then known without a
//! model. What is in the lists of [`crate::job`] was seen, and is drawn again.

use crate::job::{Elevator, Job, PROFILES, TenantJob, jobs, once_held_out};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

/// The elevator of a job is drawn from these, each as often.
const ELEVATORS: [Elevator; 4] = [Elevator::None, Elevator::Deadline, Elevator::Bfq, Elevator::Bfq];
/// So many jobs are drawn unless another number is asked for.
pub const COUNT: usize = 14;
/// Bytes of a block, smallest and largest, as powers of two.
const BLOCK_BITS: std::ops::RangeInclusive<u32> = 12..=20;
const DEPTH: std::ops::RangeInclusive<u32> = 1..=8;
/// The weight of the lightest tenant.
const LIGHTEST: u32 = 100;
/// The others' weight, in halves of the lightest's.
const RATIO_HALVES: std::ops::RangeInclusive<u32> = 2..=20;

/// Draws `count` jobs, no two alike and none of them seen before. The same for the same seed, on every machine.
pub fn draw(seed: u64, count: usize) -> Vec<Job> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut known: BTreeSet<String> = jobs().iter().chain(&once_held_out()).map(ToString::to_string).collect();
    std::iter::repeat_with(|| job(&mut random)).filter(|job| known.insert(job.to_string())).take(count).collect()
}

fn job(random: &mut Pcg64Mcg) -> Job {
    let profile = PROFILES[random.random_range(0..PROFILES.len())];
    let elevator = ELEVATORS[random.random_range(0..ELEVATORS.len())];
    let weighed = elevator == Elevator::Bfq;
    let count = if random.random_range(0..4) == 0 { 3 } else { 2 };
    let mut tenants: Vec<TenantJob> = (0..count).map(|_| tenant(random)).collect();
    if weighed && random.random() {
        tenants = vec![tenants[0]; count];
    }
    if weighed {
        // Which of them is the lightest is drawn too: the tenants were.
        for tenant in tenants.iter_mut().skip(1) {
            tenant.weight = LIGHTEST * random.random_range(RATIO_HALVES) / 2;
        }
    }
    Job { profile, elevator, tenants }
}

fn tenant(random: &mut Pcg64Mcg) -> TenantJob {
    TenantJob {
        weight: LIGHTEST,
        random: random.random(),
        write: random.random_range(0..4) == 0,
        block_bytes: 1 << random.random_range(BLOCK_BITS),
        depth: random.random_range(DEPTH),
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BITS, COUNT, DEPTH, LIGHTEST, RATIO_HALVES, draw};
    use crate::job::{Elevator, Job, PROFILES, TenantJob, jobs, once_held_out};
    use std::collections::BTreeSet;

    fn many() -> Vec<Job> {
        (0..200).flat_map(|seed| draw(seed, COUNT)).collect()
    }

    #[test]
    fn a_seed_repeats_its_jobs_and_another_draws_others() {
        for seed in [0, 1, 1_795_260_941, u64::MAX] {
            assert_eq!(draw(seed, COUNT), draw(seed, COUNT), "seed {seed}");
            // A shorter list is the beginning of a longer one, so that a few of a seed's jobs can be looked at.
            assert_eq!(draw(seed, 3), draw(seed, COUNT)[..3], "seed {seed}");
            let (one, other) = (draw(seed, COUNT), draw(seed.wrapping_add(1), COUNT));
            let common = one.iter().filter(|job| other.contains(job)).count();
            assert!(common * 4 < COUNT, "seed {seed}: {common} jobs of the next seed too");
        }
    }

    #[test]
    fn every_job_drawn_is_within_the_ranges_and_was_not_seen() {
        let seen: BTreeSet<String> = jobs().iter().chain(&once_held_out()).map(ToString::to_string).collect();
        for job in many() {
            assert!(!seen.contains(&job.to_string()), "{job}");
            assert!(PROFILES.contains(&job.profile) && (2..=3).contains(&job.tenants.len()), "{job}");
            for TenantJob { weight, block_bytes, depth, .. } in &job.tenants {
                assert!(block_bytes.is_power_of_two() && BLOCK_BITS.contains(&block_bytes.ilog2()), "{job}");
                assert!(DEPTH.contains(depth), "{job}");
                assert!(RATIO_HALVES.contains(&(weight * 2 / LIGHTEST)) && weight * 2 % LIGHTEST == 0, "{job}");
                assert!(job.elevator == Elevator::Bfq || *weight == LIGHTEST, "{job}");
            }
            assert!(job.tenants.iter().any(|tenant| tenant.weight == LIGHTEST), "{job}");
        }
        for seed in 0..200 {
            let distinct: BTreeSet<String> = draw(seed, COUNT).iter().map(ToString::to_string).collect();
            assert_eq!(distinct.len(), COUNT, "seed {seed}");
        }
    }

    /// A generator that is stuck would be within every range.
    #[test]
    fn all_of_each_range_is_drawn() {
        let jobs = many();
        let pairs: BTreeSet<(&str, &str)> = jobs.iter().map(|job| (job.profile, job.elevator.as_str())).collect();
        assert_eq!(pairs.len(), PROFILES.len() * Elevator::ALL.len());
        let tenants = || jobs.iter().flat_map(|job| &job.tenants);
        let kinds: BTreeSet<(bool, bool)> = tenants().map(|tenant| (tenant.random, tenant.write)).collect();
        let blocks: BTreeSet<u32> = tenants().map(|tenant| tenant.block_bytes).collect();
        let depths: BTreeSet<u32> = tenants().map(|tenant| tenant.depth).collect();
        let weights: BTreeSet<u32> = tenants().map(|tenant| tenant.weight).collect();
        let counts = (kinds.len(), blocks.len(), depths.len(), weights.len());
        assert_eq!(counts, (4, BLOCK_BITS.count(), DEPTH.count(), RATIO_HALVES.count()));
        let alike = |job: &&Job| job.tenants.iter().all(|one| TenantJob { weight: LIGHTEST, ..*one } == job.tenants[0]);
        let (bfq, same) = (
            jobs.iter().filter(|job| job.elevator == Elevator::Bfq).count(),
            jobs.iter().filter(|job| job.elevator == Elevator::Bfq).filter(alike).count(),
        );
        assert!(same * 3 > bfq && same < bfq, "{same} of {bfq}");
    }
}
