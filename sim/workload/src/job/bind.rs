//! Jobs onto a disk: regions that lie on it, processes with seeds of their own, and what schedulers are told of them.

use super::options::{Direction, Options, Promise};
use super::problem::{JobErrors, Problem};
use super::value::{Amount, Extent};
use super::{Job, JobFile, PROCESSES_MAX};
use crate::{Generator, Loop, Pattern, Pause, Plan, Source};
use minerva_blocksched::{Class, Contract, Cost, FlowParameters};
use minerva_model::{Level, Nanos};
use std::collections::BTreeMap;

/// What a process asks of schedulers, in bytes or requests. How much that is in a scheduler's cost units depends on how it
/// charges: [`BoundJob::parameters`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Proportional weight.
    pub weight: u32,
    /// I/O class.
    pub class: Class,
    /// Best-effort level.
    pub level: u8,
    /// Guarantee: rate, burst, delay.
    pub contract: Option<(Amount, Amount, Nanos)>,
    /// mClock's reservation.
    pub reservation: Option<Amount>,
    /// mClock's limit.
    pub limit: Option<Amount>,
    /// Tag of requests that carry none.
    pub tag_default: u8,
    /// The greatest tag that counts.
    pub tag_max: u8,
}

/// One process of a job, on a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundJob {
    /// The job's name, with the number of the process where there are several.
    pub name: String,
    /// Index of its tenant in [`JobFile::tenants`].
    pub tenant: usize,
    /// What schedulers are told.
    pub terms: Terms,
    /// What it does.
    pub plan: Plan,
    /// Its own seed.
    pub seed: u64,
    /// When it starts.
    pub starts_at: Nanos,
    /// When it ends at the latest.
    pub ends_at: Option<Nanos>,
}

/// A tenant: the jobs of one `minerva_tenant`, or one job without that key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTenant {
    /// Its name.
    pub name: String,
    /// Its group's weight in the host's scheduler.
    pub weight: u32,
    /// How far it steps back, where Minerva steers.
    pub level: Level,
    /// The name of the scheduler in the guest, as `minerva_guest_scheduler` says it; the caller knows which there are.
    pub guest_scheduler: Option<String>,
}

impl BoundJob {
    /// The process, at its beginning.
    pub fn source(&self) -> Box<dyn Source> {
        Box::new(Generator::new(self.plan, self.seed))
    }

    /// What a scheduler that charges by `cost` is told.
    pub fn parameters(&self, cost: Cost) -> FlowParameters {
        let units = |amount| units(amount, cost, self.plan.block_bytes);
        let terms = &self.terms;
        FlowParameters {
            weight: terms.weight,
            class: terms.class,
            level: terms.level,
            contract: terms.contract.map(|(rate, burst, delay)| Contract {
                rate_per_second: units(rate),
                burst: units(burst),
                delay,
            }),
            reservation_per_second: terms.reservation.map_or(0.0, units),
            limit_per_second: terms.limit.map_or(f64::INFINITY, units),
            tag_default: terms.tag_default,
            tag_max: terms.tag_max,
            ..FlowParameters::default()
        }
    }
}

/// `amount` in cost units, for a process whose requests have `block_bytes`.
fn units(amount: Amount, cost: Cost, block_bytes: u32) -> f64 {
    let per_request = match cost {
        Cost::PerRequest => 1.0,
        Cost::PerBytes(unit) => f64::from(block_bytes.div_ceil(unit.max(1)).max(1)),
    };
    match amount {
        Amount::Requests(requests) => requests * per_request,
        Amount::Bytes(bytes) => bytes as f64 / f64::from(block_bytes) * per_request,
    }
}

impl JobFile {
    /// The tenants, in the order of their first job. What two jobs of one tenant say of it differently is the later's.
    pub fn tenants(&self) -> Vec<BoundTenant> {
        let mut tenants = Vec::<BoundTenant>::new();
        let mut numbers = BTreeMap::new();
        for job in &self.jobs {
            let index = *numbers.entry(job.tenant()).or_insert_with(|| {
                tenants.push(BoundTenant {
                    name: job.tenant().to_owned(),
                    weight: 100,
                    level: Level::Normal,
                    guest_scheduler: None,
                });
                tenants.len() - 1
            });
            let tenant = &mut tenants[index];
            tenant.weight = job.options.tenant_weight.unwrap_or(tenant.weight);
            tenant.level = job.options.tenant_level.unwrap_or(tenant.level);
            tenant.guest_scheduler = job.options.guest_scheduler.clone().or(tenant.guest_scheduler.take());
        }
        tenants
    }

    /// The processes on a disk of `capacity_bytes`; equal seeds make equal requests.
    pub fn bind(&self, capacity_bytes: u64, seed: u64) -> Result<Vec<BoundJob>, JobErrors> {
        let mut problems = Vec::new();
        let processes = self.processes();
        if processes > PROCESSES_MAX {
            let what = format!("{processes} processes, and at most {PROCESSES_MAX} can be simulated");
            return Err(JobErrors::one(Problem::of_file(&self.origin, what)));
        }
        let tenants = self.tenants();
        let numbers: BTreeMap<&str, usize> =
            tenants.iter().enumerate().map(|(number, tenant)| (tenant.name.as_str(), number)).collect();
        let mut bound = Vec::new();
        for job in &self.jobs {
            let tenant = numbers.get(job.tenant()).copied().unwrap_or_default();
            for process in 0..job.options.processes {
                match job.plan(capacity_bytes, process) {
                    Ok(plan) => bound.push(BoundJob {
                        name: if job.options.processes == 1 {
                            job.name.clone()
                        } else {
                            format!("{}.{process}", job.name)
                        },
                        tenant,
                        terms: job.terms(),
                        plan,
                        // Far apart, so that neighbours do not draw alike.
                        seed: seed ^ (bound.len() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
                        starts_at: job.options.start_delay,
                        ends_at: plan.ends_at,
                    }),
                    Err((key, what)) => {
                        let place = job.options.places.get(key).unwrap_or(&job.place);
                        let what = format!("job `{}`: {what}", job.name);
                        problems.push(Problem::at(&self.origin, place, what, None));
                        // The other processes of this job would only say it again.
                        break;
                    }
                }
            }
        }
        if problems.is_empty() { Ok(bound) } else { Err(JobErrors { problems }) }
    }
}

/// Which key is to blame, and for what.
type Blame = (&'static str, String);

impl Job {
    pub(super) fn tenant(&self) -> &str {
        self.options.tenant.as_deref().unwrap_or(&self.name)
    }

    fn terms(&self) -> Terms {
        let options = &self.options;
        // The kernel's rule for processes that set no I/O priority: (nice + 20) / 5 (ioprio.h, task_nice_ioprio).
        let level = options.level.or(options.nice.map(|nice| ((nice + 20) / 5) as u8));
        Terms {
            weight: options.weight,
            class: options.class.unwrap_or_default(),
            level: level.unwrap_or(FlowParameters::default().level),
            contract: options.promise.map(|Promise { rate, burst, delay }| (rate, burst, delay)),
            reservation: options.reservation,
            limit: options.limit,
            tag_default: options.tag_default,
            tag_max: options.tag_max,
        }
    }

    /// Where its requests lie: first byte and length.
    fn region(&self, capacity: u64, process: u32) -> Result<(u64, u64), Blame> {
        let options = &self.options;
        let block = u64::from(options.block_bytes);
        let bytes = |extent| match extent {
            Extent::Bytes(bytes) => bytes,
            // Parts of the disk begin and end at a block's border, as fio's do.
            Extent::Percent(percent) => (capacity as f64 * percent / 100.0) as u64 / block * block,
        };
        let blame = if options.offset_increment == Extent::Bytes(0) { "offset" } else { "offset_increment" };
        let offset = bytes(options.offset_increment)
            .checked_mul(u64::from(process))
            .and_then(|increment| increment.checked_add(bytes(options.offset)))
            .filter(|offset| *offset < capacity)
            .ok_or_else(|| (blame, format!("process {process} would start past the disk's end at {capacity} bytes")))?;
        let left = capacity - offset;
        let size = options.size.map_or(left, bytes);
        if size > left {
            let past = size - left;
            return Err((
                "size",
                format!("{size} bytes from byte {offset} end {past} bytes past the disk's end at {capacity}"),
            ));
        }
        if size < block {
            return Err(("size", format!("{size} bytes do not hold one block of {block}")));
        }
        Ok((offset, size))
    }

    fn plan(&self, capacity: u64, process: u32) -> Result<Plan, Blame> {
        let options = &self.options;
        let (offset_bytes, region_bytes) = self.region(capacity, process)?;
        if options.time_based && options.runtime.is_none() {
            return Err(("time_based", "without `runtime` it would never end".to_owned()));
        }
        let io_size = options.io_size.map(|io_size| match io_size {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(percent) => (region_bytes as f64 * percent / 100.0) as u64,
        });
        let whole_blocks = region_bytes / u64::from(options.block_bytes) * u64::from(options.block_bytes);
        let rate = self.rate()?;
        let depth = if options.synchronous { 1 } else { options.depth };
        let when = match rate {
            Some(bytes_per_second) if options.poisson => {
                Loop::Open { rate_per_second: bytes_per_second as f64 / f64::from(options.block_bytes) }
            }
            _ => Loop::Closed { depth },
        };
        Ok(Plan {
            pattern: match (options.random, options.zipf) {
                (false, _) => Pattern::Sequential,
                (true, None) => Pattern::Random,
                (true, Some(exponent)) => Pattern::Zipf { exponent },
            },
            when,
            read_percent: match options.direction {
                Direction::Read | Direction::Trim => 100,
                Direction::Write => 0,
                Direction::Mixed => options.read_percent,
            },
            discards: options.direction == Direction::Trim,
            sync_writes: !options.async_writes,
            block_bytes: options.block_bytes,
            offset_bytes,
            region_bytes,
            total_bytes: if options.time_based { None } else { Some(io_size.unwrap_or(whole_blocks)) },
            ends_at: options.runtime.map(|runtime| options.start_delay + runtime),
            pause: (options.think > Nanos::ZERO).then_some(Pause { time: options.think, every: options.think_blocks }),
            rate_bytes_per_second: rate.filter(|_| !options.poisson),
            flush_every_writes: self.flush_every()?,
            tag: options.tag,
        })
    }

    /// Bytes a second. What fio does with rates that are not simulated is an error, not something else.
    fn rate(&self) -> Result<Option<u64>, Blame> {
        let options = &self.options;
        let blame = |key, what: &str| Err((key, what.to_owned()));
        if options.rate.is_some() && options.rate_requests.is_some() {
            return blame("rate_iops", "`rate` and `rate_iops` together are not simulated; give one of them");
        }
        let bytes = |requests: u64| requests.saturating_mul(u64::from(options.block_bytes));
        let rate = options.rate.or(options.rate_requests.map(bytes));
        if !options.poisson {
            return Ok(rate);
        }
        // Arrivals wait for nothing here, so whatever waits would be dropped without a word.
        if rate.is_none() {
            return blame("rate_process", "`poisson` needs `rate` or `rate_iops`");
        }
        if options.direction == Direction::Mixed {
            return blame("rate_process", "`poisson` with reads and writes in one job is not simulated; make two jobs");
        }
        if options.think > Nanos::ZERO {
            return blame("thinktime", "`thinktime` with `rate_process=poisson` is not simulated; leave one out");
        }
        if options.depth > 1 {
            return blame(
                "iodepth",
                "with `rate_process=poisson` requests come whatever is under way; leave `iodepth` out",
            );
        }
        if options.synchronous && options.places.contains_key("ioengine") {
            return blame(
                "ioengine",
                "with `rate_process=poisson` requests wait for none; take an asynchronous engine",
            );
        }
        Ok(rate)
    }

    fn flush_every(&self) -> Result<Option<u32>, Blame> {
        let Options { fsync, fdatasync, sync_each, .. } = &self.options;
        match (*fsync, *fdatasync) {
            _ if *sync_each => Ok(Some(1)),
            (Some(one), Some(other)) if one != other => {
                Err(("fdatasync", "`fsync` and `fdatasync` at different distances are not simulated".to_owned()))
            }
            (one, other) => Ok(one.or(other)),
        }
    }
}
