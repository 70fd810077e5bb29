//! A job from its description, as reports and records have it: `sas10k-300g bfq: seqread 128k x1 w500 | randwrite 4k x8 w100`.

use crate::job::{Elevator, Job, PROFILES, TenantJob};
use anyhow::{Context as _, ensure};
use std::str::FromStr;

/// Most tenants of a job.
const TENANTS_MAX: usize = 4;
/// Largest block, in KiB. No larger request reaches a disk in one piece.
const BLOCK_KIB_MAX: u32 = 1024;
/// Most requests outstanding at once.
const DEPTH_MAX: u32 = 256;
/// Greatest weight of BFQ (`Documentation/block/bfq-iosched.rst`).
const WEIGHT_MAX: u32 = 1000;

impl FromStr for Job {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let form = "write a job like `sata-ssd bfq: randread 4k x1 w800 | seqwrite 64k x2 w100`";
        let (place, tenants) = text.split_once(':').context(form)?;
        let (profile, elevator) = place.trim().split_once(' ').context(form)?;
        let profile = PROFILES.into_iter().find(|known| *known == profile);
        let profile = profile.with_context(|| format!("the disk is one of {}", PROFILES.join(", ")))?;
        let elevator = Elevator::ALL.into_iter().find(|known| known.as_str() == elevator.trim());
        let elevator = elevator.context("the elevator is one of none, mq-deadline, bfq")?;
        let tenants: Vec<TenantJob> = tenants.split('|').map(str::parse).collect::<anyhow::Result<_>>()?;
        ensure!(tenants.len() <= TENANTS_MAX, "a job has at most {TENANTS_MAX} tenants");
        Ok(Self { profile, elevator, tenants })
    }
}

impl FromStr for TenantJob {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let form = || format!("write a tenant like `randread 4k x1 w800`, not `{}`", text.trim());
        let words: Vec<&str> = text.split_whitespace().collect();
        let [access, block, depth, weight] = words[..] else { anyhow::bail!(form()) };
        let (random, write) = match access {
            "randread" => (true, false),
            "randwrite" => (true, true),
            "seqread" => (false, false),
            "seqwrite" => (false, true),
            _ => anyhow::bail!(form()),
        };
        let number = |digits: Option<&str>, most: u32| -> anyhow::Result<u32> {
            let number = digits.and_then(|digits| digits.parse().ok()).with_context(form)?;
            ensure!((1..=most).contains(&number), "{number} is not within 1 and {most}: {}", form());
            Ok(number)
        };
        Ok(Self {
            weight: number(weight.strip_prefix('w'), WEIGHT_MAX)?,
            random,
            write,
            block_bytes: number(block.strip_suffix('k'), BLOCK_KIB_MAX)? << 10,
            depth: number(depth.strip_prefix('x'), DEPTH_MAX)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::draw::{COUNT, draw};
    use crate::job::{Job, jobs, once_held_out};

    #[test]
    fn every_job_is_what_its_description_says() {
        let drawn = (0..200).flat_map(|seed| draw(seed, COUNT));
        for job in jobs().into_iter().chain(once_held_out()).chain(drawn) {
            assert_eq!(job.to_string().parse::<Job>().unwrap(), job, "{job}");
        }
    }

    #[test]
    fn what_is_no_job_is_refused_with_the_reason() {
        let table = [
            ("", "write a job like"),
            ("sata-ssd: randread 4k x1 w1", "write a job like"),
            ("floppy bfq: randread 4k x1 w1", "sata7200-80g, sas10k-300g, sata-ssd"),
            ("sata-ssd cfq: randread 4k x1 w1", "mq-deadline"),
            ("sata-ssd bfq:", "write a tenant like"),
            ("sata-ssd bfq: randread 4k x1", "write a tenant like"),
            ("sata-ssd bfq: trim 4k x1 w1", "write a tenant like"),
            ("sata-ssd bfq: randread 4096 x1 w1", "write a tenant like"),
            ("sata-ssd bfq: randread 0k x1 w1", "within 1 and 1024"),
            ("sata-ssd bfq: randread 4194304k x1 w1", "within 1 and 1024"),
            ("sata-ssd bfq: randread 4k x0 w1", "within 1 and 256"),
            ("sata-ssd bfq: randread 4k x1 w1001", "within 1 and 1000"),
            (
                "sata-ssd bfq: seqread 4k x1 w1|seqread 4k x1 w1|seqread 4k x1 w1|seqread 4k x1 w1|seqread 4k x1 w1",
                "at most 4",
            ),
        ];
        for (text, part) in table {
            let error = text.parse::<Job>().unwrap_err();
            assert!(format!("{error:#}").contains(part), "{text}: {error:#}");
        }
    }
}
