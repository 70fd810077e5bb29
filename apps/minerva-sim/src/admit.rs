//! `minerva-sim admit`: whether a disk can keep the contracts of a job file, and by how much not.
//!
//! How long the disk takes is measured on its model, where the jobs read and write: the time of a unit in a row, and what a
//! jump from one job's region to another's adds to it.

use crate::cli::AdmitArguments;
use crate::every;
use crate::experiment::client::is_rotational;
use crate::given::judge_htbs;
use crate::scene::{Loaded, read_profile};
use crate::scheduler::{HtbsArguments, Name, UNIT_BYTES};
use crate::text::read_text;
use anyhow::bail;
use minerva_blocksched::{
    Admission, Applicant, BuildOptions, Capacity, Cost, Feasibility, HtbsOptions, Kind, ServiceTimes, admit,
};
use minerva_model::Nanos;
use minerva_sim_device::{JUMPS, Kind as DeviceKind, Profile, ROW, Request, Site, measure};
use minerva_sim_workload::job::{BoundJob, FILE_BYTES_MAX, JobFile, parse};
use minerva_sim_workload::{Generator, Loop, Pattern, Plan, Source, Step};

const COST: Cost = Cost::PerBytes(UNIT_BYTES);

pub(crate) fn run(arguments: &AdmitArguments) -> anyhow::Result<()> {
    judge_htbs(arguments.htbs, &[arguments.scheduler])?;
    let profile = read_profile(&arguments.profile)?;
    let path = arguments.job.display().to_string();
    let file: JobFile = parse(&read_text(&arguments.job, FILE_BYTES_MAX)?, &path)?;
    let mut jobs = file.bind(profile.capacity_bytes, arguments.seed)?;
    if let Some(every) = arguments.every {
        every::buy(&mut jobs, every)?;
    }
    let name = arguments.scheduler;
    if name.entry().discipline.is_none() {
        bail!("{} keeps no contracts: ask for pclock or htbs with --scheduler", name.as_str());
    }
    let Some(judged) = judge(&profile, &jobs, name, arguments.htbs, arguments.seed) else {
        bail!("{path} has no contracts: give jobs `minerva_contract=RATE,BURST,DELAY`, such as 8800KB/s,64k,100ms");
    };
    let bought = arguments.every.map(|every| (every, every::contracts(&jobs)));
    if arguments.json {
        let mut answer = judged.json();
        if let Some((_, contracts)) = bought {
            answer["contracts"] = contracts.into_iter().collect();
        }
        println!("{answer}");
        return Ok(());
    }
    judged.print(&profile, name);
    if let Some((every, contracts)) = bought {
        println!("contracts needed to have those rates in every {}:", every::text(every));
        contracts.iter().for_each(|(job, contract)| println!("  [{job}] minerva_contract={contract}"));
    }
    Ok(())
}

/// Tells standard error when the contracts of a run are not likely to be kept.
pub(crate) fn warn(loaded: &Loaded, name: Name, htbs: HtbsArguments, seed: u64) {
    let judged = judge(loaded.profile(), loaded.jobs(), name, htbs, seed);
    if let Some(judged) = judged.filter(|judged| judged.admission.feasibility > Feasibility::Likely) {
        eprintln!("contracts: {} (`minerva-sim admit` says more)", judged.sentence());
    }
}

/// An admission, and what it was made of.
pub(crate) struct Judged {
    names: Vec<String>,
    capacity: Capacity,
    pub(crate) admission: Admission,
}

impl Judged {
    fn sentence(&self) -> String {
        self.admission.sentence(|contract| self.names[contract].clone())
    }

    fn print(&self, profile: &Profile, name: Name) {
        println!("{}", self.sentence());
        let Capacity { mean, greatest, .. } = self.capacity;
        println!(
            "{} contracts under {} on {}: {:.0} % of the disk in the long run",
            self.names.len(),
            name.as_str(),
            profile.name,
            100.0 * self.admission.utilisation
        );
        println!(
            "measured on the model: {UNIT_BYTES} bytes in a row take {:.3} ms (at most {:.3}), a seek adds {:.1} ms \
             (at most {:.1})",
            mean.unit_ns / 1e6,
            greatest.unit_ns / 1e6,
            mean.seek.0 as f64 / 1e6,
            greatest.seek.0 as f64 / 1e6
        );
    }

    fn json(&self) -> serde_json::Value {
        let tightest = self.admission.tightest;
        serde_json::json!({
            "feasibility": self.admission.feasibility.as_str(),
            "sentence": self.sentence(),
            "utilisation": self.admission.utilisation,
            "contract": tightest.map(|tightest| self.names[tightest.contract].clone()),
            "interval_ms": tightest.map(|tightest| tightest.interval.0 as f64 / 1e6),
            "margin_ms": tightest.map(|tightest| tightest.margin_ns() / 1e6),
        })
    }
}

/// Judges the contracts of jobs; none when there are none, or the scheduler does not know them.
pub(crate) fn judge(
    profile: &Profile,
    jobs: &[BoundJob],
    name: Name,
    htbs: HtbsArguments,
    seed: u64,
) -> Option<Judged> {
    let discipline = name.entry().discipline?;
    let (with, without): (Vec<&BoundJob>, Vec<&BoundJob>) = jobs.iter().partition(|job| job.terms.contract.is_some());
    if with.is_empty() {
        return None;
    }
    let background_units_max = without.iter().map(|job| block_units(&job.plan)).max().unwrap_or(0);
    let measured = measure(profile, &sites(jobs, name, seed), UNIT_BYTES, depth(profile, jobs, name), seed);
    let times = |unit_ns, seek| ServiceTimes { unit_ns, request: Nanos::ZERO, seek };
    let capacity = Capacity {
        greatest: times(measured.unit_ns_max, measured.seek_max),
        mean: times(measured.unit_ns_mean, measured.seek_mean),
        background_units_max,
    };
    let units_ns = measured.unit_ns_least.into_iter().zip(measured.unit_ns_own);
    let measured = jobs.iter().zip(units_ns.zip(measured.flushes));
    let applicants: Vec<Applicant> =
        measured.filter_map(|(job, (units_ns, flush))| applicant(job, name, htbs, units_ns, flush)).collect();
    let admission = admit(&applicants, &capacity, discipline);
    Some(Judged { names: with.iter().map(|job| job.name.clone()).collect(), capacity, admission })
}

/// Requests that the disk has at once at most: as many as the scheduler gives it, and as the jobs have.
fn depth(profile: &Profile, jobs: &[BoundJob], name: Name) -> u32 {
    let of_job = |job: &BoundJob| match job.plan.when {
        Loop::Closed { depth } => depth,
        Loop::Open { .. } => u32::MAX,
    };
    let asked = jobs.iter().map(of_job).fold(0, u32::saturating_add);
    name.depth(BuildOptions::for_disk(is_rotational(profile), profile.queue_depth)).min(asked)
}

fn block_units(plan: &Plan) -> u64 {
    u64::from(plan.block_bytes.div_ceil(UNIT_BYTES).max(1))
}

/// Requests of a job that are under way while it is served and nobody else's are: HTBS gives the disk to no other flow as long as
/// one that reads on, or whose writes are waited for, has something there.
fn alone(job: &BoundJob, name: Name) -> Option<u32> {
    let waited_for = job.plan.sync_writes || job.plan.read_percent == 100;
    match job.plan.when {
        Loop::Closed { depth } if name == Name::Htbs && job.plan.pattern == Pattern::Sequential && waited_for => {
            Some(depth)
        }
        Loop::Closed { .. } | Loop::Open { .. } => None,
    }
}

fn applicant(
    job: &BoundJob,
    name: Name,
    htbs: HtbsArguments,
    (unit_least_ns, unit_alone_ns): (f64, f64),
    flush: Nanos,
) -> Option<Applicant> {
    let contract = job.parameters(COST).contract?;
    let block_units = block_units(&job.plan);
    let wait_max = htbs.wait_max.unwrap_or(HtbsOptions::default().wait_max);
    let thinks = job.plan.pause.map_or(Nanos::ZERO, |pause| pause.time);
    // HTBS keeps the disk for whoever reads on and asks at once, for what the contract earns in a delay.
    let keeps = alone(job, name).is_some() && thinks <= wait_max;
    let earned = contract.rate_per_second * contract.delay.as_secs_f64();
    let (row_units, wait) =
        if keeps { (earned.max(block_units as f64), thinks) } else { (block_units as f64, Nanos::ZERO) };
    // The part of a flush that falls to each of its writes.
    let wait = wait + Nanos(flush.0 / u64::from(job.plan.flush_every_writes.unwrap_or(1).max(1)));
    Some(Applicant {
        contract,
        request_units_min: block_units,
        request_units_max: block_units,
        row_units,
        wait,
        unit_least_ns,
        unit_alone_ns,
    })
}

/// Where each job uses the disk.
fn sites(jobs: &[BoundJob], name: Name, seed: u64) -> Vec<Site> {
    let site = |(index, job): (usize, &BoundJob)| {
        let rows = [0, 1].map(|end| {
            let row_bytes = (ROW + 1) * u64::from(job.plan.block_bytes);
            let skip_bytes = end * job.plan.region_bytes.saturating_sub(row_bytes);
            let plan = Plan {
                offset_bytes: job.plan.offset_bytes + skip_bytes,
                region_bytes: job.plan.region_bytes - skip_bytes,
                ..job.plan
            };
            OffsetSequence::new(&plan, Pattern::Sequential, seed).take(ROW as usize + 1).collect()
        });
        let seed = seed + index as u64;
        Site {
            block_bytes: job.plan.block_bytes,
            rows,
            jumps: OffsetSequence::new(&job.plan, Pattern::Random, seed).take(JUMPS as usize).collect(),
            durable: job
                .plan
                .flush_every_writes
                .and_then(|_| OffsetSequence::new(&job.plan, Pattern::Sequential, seed).next()),
            row_depth: alone(job, name).unwrap_or(u32::MAX),
        }
    };
    jobs.iter().enumerate().map(site).collect()
}

/// Requests in a job's region, one by one and without pauses.
struct OffsetSequence(Generator);

impl OffsetSequence {
    fn new(plan: &Plan, pattern: Pattern, seed: u64) -> Self {
        let plan = Plan {
            read_percent: plan.read_percent,
            block_bytes: plan.block_bytes,
            offset_bytes: plan.offset_bytes,
            region_bytes: plan.region_bytes,
            pattern,
            ..Plan::default()
        };
        Self(Generator::new(plan, seed))
    }
}

impl Iterator for OffsetSequence {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let Step::Issue(request) = self.0.next(Nanos::ZERO) else { return None };
        self.0.completed(Nanos::ZERO, &request);
        let kind = if request.kind == Kind::Read { DeviceKind::Read } else { DeviceKind::Write };
        Some(Request { tag: 0, kind, offset_bytes: request.offset_bytes, length_bytes: request.length_bytes })
    }
}
