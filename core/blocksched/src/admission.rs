//! Whether a set of contracts can be kept, and by how much not.
//!
//! A contract (sigma, rho, delta) lets a flow ask for sigma + rho * t in any interval t and have each request served within
//! delta. Whether a disk can do that for all flows at once is a question of demand: within any interval t, the work that
//! comes and is due inside it must fit into t. For leaky buckets it is enough to look at t equal to each delta, and at the
//! long run.
//!
//! * Under earliest deadline first (pClock) flow i asks for sigma_i + rho_i * (t - delta_i) within t >= delta_i, and one
//!   request that is under way cannot be stopped.
//! * Under turns (HTBS) whole buckets can go before a request that is due earlier: sigma_i + rho_i * (t + 2 delta_i) and one
//!   request beyond the bucket, and after each request the disk may be kept idle for its flow. What is proven for turns is
//!   therefore far less than what they achieve; [`Feasibility::Likely`] tells the two apart.
//!
//! Seeks are charged by the row: what a flow is served between two seeks. Its greatest times decide what is proven, its mean
//! times what is likely, and the least time of each flow's own requests, without any seek, what is impossible.

use crate::Contract;
use minerva_model::Nanos;
use std::fmt;

/// How long the disk takes. A request costs `request + units * unit`, and a `seek` when it does not go on where the last
/// one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceTimes {
    /// Nanoseconds a cost unit.
    pub unit_ns: f64,
    /// Every request.
    pub request: Nanos,
    /// A jump: arm and rotation.
    pub seek: Nanos,
}

/// A disk, as far as contracts are concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Never longer than this.
    pub greatest: ServiceTimes,
    /// On average.
    pub mean: ServiceTimes,
    /// The largest request of flows without a contract, in units; 0 when there are none. One of them may be under way.
    pub background_units_max: u64,
}

/// A flow that wants a contract.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applicant {
    /// What it wants.
    pub contract: Contract,
    /// Its smallest request, in units, at least 1.
    pub request_units_min: u64,
    /// Its largest request. The burst has to hold it, or no request is ever within the contract.
    pub request_units_max: u64,
    /// Units that it is served between two seeks, at least a request: more only for a flow that reads on and asks at once,
    /// under a scheduler that keeps the disk for it.
    pub row_units: f64,
    /// How long the disk is kept idle for it after a request; 0 where it is not waited for.
    pub wait: Nanos,
    /// What a unit of it takes at least, in nanoseconds, under any scheduler: its own, since a mean over flows would refute
    /// a reader for the writer beside it.
    pub unit_least_ns: f64,
    /// What a unit of it takes on average, in nanoseconds, where the scheduler gives the disk nobody else's requests while this flow is
    /// served, and that is longer than a unit takes with all that the disk could have; otherwise 0.
    pub unit_alone_ns: f64,
}

/// What the scheduler does with deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// The earliest deadline goes first, request by request: pClock.
    EarliestDeadline,
    /// Flows are served in turns, as long as their buckets last: HTBS.
    Turns,
}

/// How a set of contracts stands, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feasibility {
    /// Kept whatever the flows do, if no request takes longer than was said.
    Kept,
    /// Not proven, but it fits in the mean: the long run is below capacity, and so is every delay under earliest deadline.
    Likely,
    /// Neither fits nor is refuted.
    Doubtful,
    /// No scheduler can keep it: flows that take what their contracts give them ask for more than the disk can do.
    Impossible,
}

impl Feasibility {
    /// In one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Likely => "likely",
            Self::Doubtful => "doubtful",
            Self::Impossible => "impossible",
        }
    }
}

/// Where the disk's time is scarcest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tightest {
    /// Index of the contract.
    pub contract: usize,
    /// The interval: that contract's delay, or a second of the long run when `long_run` is set.
    pub interval: Nanos,
    /// It is the long run that is too much, whatever the delays.
    pub long_run: bool,
    /// Work in that interval, in nanoseconds of the disk's time, what may be under way at its start included.
    pub work_ns: f64,
}

impl Tightest {
    /// What is left of the interval; negative by how much is missing.
    pub fn margin_ns(&self) -> f64 {
        self.interval.0 as f64 - self.work_ns
    }
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// How the set stands.
    pub feasibility: Feasibility,
    /// The disk's time that the contracts take in the long run by the mean times, as a part of all.
    pub utilisation: f64,
    /// The interval that decided: for [`Feasibility::Kept`] the tightest of those that were proven, otherwise the worst of
    /// those that failed. None without contracts.
    pub tightest: Option<Tightest>,
    /// A contract whose burst does not hold its largest request: its requests are never within it.
    pub burst_too_small: Option<usize>,
}

impl Admission {
    /// What to tell a person; `name` says what contracts are called.
    pub fn sentence(&self, name: impl Fn(usize) -> String) -> String {
        if let Some(contract) = self.burst_too_small {
            return format!(
                "doubtful: the burst of `{}` does not hold one of its requests, so none is ever within the contract; raise \
                 the burst",
                name(contract)
            );
        }
        let Some(tightest) = self.tightest else { return "kept: there are no contracts".to_owned() };
        let (work, interval) = (Millis(tightest.work_ns), Millis(tightest.interval.0 as f64));
        let margin = Millis(tightest.margin_ns().abs());
        let place = if tightest.long_run {
            format!("the contracts take {work} of the disk in a second of {interval}")
        } else {
            format!("within the delay of `{}`, {interval}, up to {work} of work are due", name(tightest.contract))
        };
        match self.feasibility {
            Feasibility::Kept => format!("kept: {place}, {margin} are left"),
            Feasibility::Likely => {
                format!("likely, not proven: {place} in the worst case, {margin} too much, but it fits on average")
            }
            Feasibility::Doubtful => format!("doubtful: {place}, {margin} too much"),
            Feasibility::Impossible => format!("impossible under any scheduler: {place}, {margin} too much"),
        }
    }
}

/// Milliseconds, for people.
struct Millis(f64);

impl fmt::Display for Millis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} ms", self.0 / 1e6)
    }
}

/// Judges a set of contracts.
pub fn admit(applicants: &[Applicant], capacity: &Capacity, discipline: Discipline) -> Admission {
    let burst_too_small = applicants.iter().position(|flow| flow.contract.burst < flow.request_units_max as f64);
    let utilisation = applicants.iter().map(|flow| busy_part(flow, &capacity.mean)).sum();
    let admission = |feasibility, tightest| Admission { feasibility, utilisation, tightest, burst_too_small };
    let least = worst(applicants, least_part, |j| least_work_ns(applicants, j));
    if let Some(refuted) = least.filter(|tightest| tightest.margin_ns() < 0.0) {
        return admission(Feasibility::Impossible, Some(refuted));
    }
    let work_ns =
        |times: &ServiceTimes, discipline, contract| work_ns(applicants, capacity, times, discipline, contract);
    let greatest = &capacity.greatest;
    let proof = worst(applicants, |flow| busy_part(flow, greatest), |j| work_ns(greatest, discipline, j));
    let failed = |tightest: &Tightest| tightest.margin_ns() < 0.0;
    if burst_too_small.is_none() && !proof.as_ref().is_some_and(failed) {
        return admission(Feasibility::Kept, proof);
    }
    let mean = worst(
        applicants,
        |flow| busy_part(flow, &capacity.mean),
        |j| work_ns(&capacity.mean, Discipline::EarliestDeadline, j),
    );
    match mean.filter(failed) {
        None if burst_too_small.is_none() => admission(Feasibility::Likely, proof),
        refuted => admission(Feasibility::Doubtful, refuted.or(proof)),
    }
}

/// The interval with the least left of it: the long run, or the delay of a contract.
fn worst(
    applicants: &[Applicant],
    part: impl Fn(&Applicant) -> f64,
    work_ns: impl Fn(usize) -> f64,
) -> Option<Tightest> {
    let long_run = Tightest {
        contract: heaviest(applicants, &part)?,
        interval: Nanos::SECOND,
        long_run: true,
        work_ns: 1e9 * applicants.iter().map(&part).sum::<f64>(),
    };
    let delays = applicants.iter().enumerate().map(|(contract, flow)| Tightest {
        contract,
        interval: flow.contract.delay,
        long_run: false,
        work_ns: work_ns(contract),
    });
    let left = |tightest: &Tightest| tightest.margin_ns() / (tightest.interval.0 as f64).max(1.0);
    // Below capacity the long run is no interval that anybody waits for.
    let long_run = Some(long_run).filter(|tightest| tightest.margin_ns() < 0.0);
    delays.chain(long_run).min_by(|one, other| left(one).total_cmp(&left(other)))
}

fn heaviest(applicants: &[Applicant], part: impl Fn(&Applicant) -> f64) -> Option<usize> {
    (0..applicants.len()).max_by(|one, other| part(&applicants[*one]).total_cmp(&part(&applicants[*other])))
}

/// The disk's time for a unit of a flow, its part of requests, seeks and waits included.
fn per_unit_ns(flow: &Applicant, times: &ServiceTimes) -> f64 {
    let each = (times.request.0 + flow.wait.0) as f64 / flow.request_units_min.max(1) as f64;
    unit_ns(flow, times) + each + times.seek.0 as f64 / row_units(flow)
}

fn unit_ns(flow: &Applicant, times: &ServiceTimes) -> f64 {
    times.unit_ns.max(flow.unit_alone_ns)
}

fn row_units(flow: &Applicant) -> f64 {
    flow.row_units.max(flow.request_units_min.max(1) as f64)
}

/// The part of the disk's time that a flow takes in the long run.
fn busy_part(flow: &Applicant, times: &ServiceTimes) -> f64 {
    flow.contract.rate_per_second * per_unit_ns(flow, times) / 1e9
}

/// Work that can go before the end of a request's delay, and what may be under way when it comes.
fn work_ns(
    applicants: &[Applicant],
    capacity: &Capacity,
    times: &ServiceTimes,
    discipline: Discipline,
    contract: usize,
) -> f64 {
    let interval_s = applicants[contract].contract.delay.as_secs_f64();
    let asked_ns = |flow: &Applicant| {
        let Contract { rate_per_second, burst, delay } = flow.contract;
        let delay_s = delay.as_secs_f64();
        let units = match discipline {
            Discipline::EarliestDeadline if delay_s > interval_s => return 0.0,
            Discipline::EarliestDeadline => burst + rate_per_second * (interval_s - delay_s),
            Discipline::Turns => burst + rate_per_second * (interval_s + 2.0 * delay_s) + flow.request_units_max as f64,
        };
        // A row longer than a request may be cut once more at its beginning.
        let first_seek = if row_units(flow) > flow.request_units_min.max(1) as f64 { times.seek.0 as f64 } else { 0.0 };
        units * per_unit_ns(flow, times) + first_seek
    };
    applicants.iter().map(asked_ns).sum::<f64>() + under_way_ns(applicants, capacity, times)
}

/// The longest request, which cannot be stopped, and the longest wait.
fn under_way_ns(applicants: &[Applicant], capacity: &Capacity, times: &ServiceTimes) -> f64 {
    let background_ns = capacity.background_units_max as f64 * times.unit_ns;
    let longest_ns = applicants.iter().map(|flow| flow.request_units_max as f64 * unit_ns(flow, times));
    let wait = applicants.iter().map(|flow| flow.wait).max().unwrap_or_default();
    longest_ns.fold(background_ns, f64::max) + (times.request + times.seek + wait).0 as f64
}

/// What a flow needs at least of the disk in the long run, as a part of it: no seek, no wait.
fn least_part(flow: &Applicant) -> f64 {
    flow.contract.rate_per_second * flow.unit_least_ns / 1e9
}

/// The least work of any scheduler within a contract's delay when all flows come at once with all they may: whole requests,
/// the largest, without a seek.
fn least_work_ns(applicants: &[Applicant], contract: usize) -> f64 {
    let interval_s = applicants[contract].contract.delay.as_secs_f64();
    let asked_ns = |flow: &Applicant| {
        let Contract { rate_per_second, burst, delay } = flow.contract;
        let left_s = interval_s - delay.as_secs_f64();
        if left_s < 0.0 {
            return 0.0;
        }
        let request_units = flow.request_units_max.max(1) as f64;
        let requests = ((burst + rate_per_second * left_s) / request_units).floor();
        requests * request_units * flow.unit_least_ns
    };
    applicants.iter().map(asked_ns).sum()
}
