//! A process with a guarantee, what it does over time, and whether the guarantee was kept.

use crate::scheduler::Name;
use minerva_blocksched::{FlowParameters, Scheduler};
use minerva_model::Nanos;
use minerva_sim_device::{Media, Profile};
use minerva_sim_workload::{Generator, IoRequest, Plan, Source, Step};
use minerva_sim_world::{ProcessSetup, Report, TenantSetup, World, WorldSetup};

/// What a client does from an instant on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) from: Nanos,
    pub(crate) plan: Plan,
}

/// What a guarantee means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// This many bytes in every second.
    EverySecond,
    /// The contract itself: in any interval t at least rate * (t - delay).
    ServiceCurve,
    /// No contract, but something in every second.
    Something,
}

/// A process with a guarantee.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    /// What it does, one after the other.
    pub(crate) parts: Vec<Part>,
    /// What its contract gives; 0 without one.
    pub(crate) bytes_per_second: f64,
    pub(crate) delay: Nanos,
    pub(crate) promise: Promise,
    /// The seconds in which the promise is looked at, first to last: those in which it asks all the time.
    pub(crate) judged_s: (usize, usize),
}

impl Client {
    fn block_bytes(&self) -> u32 {
        self.parts.last().map_or(4096, |part| part.plan.block_bytes)
    }

    /// Without a promise it has no contract, and takes what it gets.
    pub(crate) fn is_promised(&self) -> bool {
        self.bytes_per_second > 0.0
    }

    /// The rate of the contract that keeps the promise. A contract of rate rho and delay delta gives a flow that never stops
    /// asking at least rho * (t - delta) in any interval t, and a request that straddles the end of a second counts in the
    /// next one; so a promise for every second needs a little more than its rate.
    pub(crate) fn contract_rate(&self) -> f64 {
        match self.promise {
            Promise::ServiceCurve | Promise::Something => self.bytes_per_second,
            Promise::EverySecond => {
                let part = (1.0 - self.delay.as_secs_f64()).max(0.1);
                (self.bytes_per_second + f64::from(self.block_bytes())) / part
            }
        }
    }
}

/// One generator after the other.
struct Script {
    parts: Vec<(Nanos, Generator)>,
    current: usize,
}

impl Source for Script {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            let Some((from, generator)) = self.parts.get_mut(self.current) else { return Step::Finished };
            if now < *from {
                return Step::At(*from);
            }
            match generator.next(now) {
                Step::Finished => self.current += 1,
                step => return step,
            }
        }
    }

    fn completed(&mut self, now: Nanos, request: &IoRequest) {
        if let Some((_, generator)) = self.parts.get_mut(self.current) {
            generator.completed(now, request);
        }
    }
}

/// Runs clients on one disk, each in a tenant of its own.
pub(crate) fn run(
    profile: &Profile,
    name: Name,
    host: Box<dyn Scheduler>,
    clients: &[Client],
    seed: u64,
    until: Nanos,
) -> Report {
    let tenants = clients.iter().map(|client| TenantSetup { name: client.name.clone(), weight: 100, guest: None });
    let processes = clients.iter().enumerate().map(|(index, client)| {
        let block_bytes = client.block_bytes();
        let parts = client.parts.iter().enumerate().map(|(part_index, part)| {
            (part.from, Generator::new(part.plan, seed << 16 | (index << 8 | part_index) as u64))
        });
        let rate = client.contract_rate();
        let contract = name.contract(rate, f64::from(block_bytes), client.delay, block_bytes);
        ProcessSetup {
            name: client.name.clone(),
            tenant: index,
            source: Box::new(Script { parts: parts.collect(), current: 0 }),
            starts_at: Nanos::ZERO,
            parameters: FlowParameters {
                contract: client.is_promised().then_some(contract),
                ..FlowParameters::default()
            },
            promise: None,
        }
    });
    let mut world = World::new(WorldSetup {
        device: profile.build(None, seed),
        host,
        depth: 1,
        tenants: tenants.collect(),
        processes: processes.collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    world.run(until);
    world.report()
}

/// Whether a disk of this profile seeks.
pub(crate) fn is_rotational(profile: &Profile) -> bool {
    matches!(profile.media, Media::Hdd(_))
}

/// How a guarantee fared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GuaranteeRecord {
    /// Intervals looked at.
    pub(crate) intervals: usize,
    /// Intervals in which less than promised was served.
    pub(crate) missed: usize,
    /// The worst second, in bytes.
    pub(crate) least_bytes: u64,
    /// The mean, in bytes a second.
    pub(crate) mean_bytes: f64,
}

/// Looks at every judged second of a client, or at every interval of whole seconds among them.
pub(crate) fn judge(report: &Report, clients: &[Client]) -> Vec<GuaranteeRecord> {
    clients.iter().zip(&report.processes).map(|(client, process)| judge_one(client, &process.bins_bytes)).collect()
}

fn judge_one(client: &Client, bins_bytes: &[u64]) -> GuaranteeRecord {
    let (first, last) = client.judged_s;
    // Nothing promised, nothing judged.
    let is_judged = client.is_promised() || client.promise == Promise::Something;
    let (first, last) = if is_judged { (first, last) } else { (1, 0) };
    let bins: Vec<u64> = (first..=last).map(|second| bins_bytes.get(second).copied().unwrap_or(0)).collect();
    let (intervals, missed) = match client.promise {
        Promise::EverySecond => {
            (bins.len(), bins.iter().filter(|bytes| (**bytes as f64) < client.bytes_per_second).count())
        }
        Promise::Something => (bins.len(), bins.iter().filter(|bytes| **bytes == 0).count()),
        Promise::ServiceCurve => {
            let delay_s = client.delay.as_secs_f64();
            let mut counts = (0, 0);
            for from in 0..bins.len() {
                let mut sum = 0;
                for (index, bytes) in bins[from..].iter().enumerate() {
                    sum += bytes;
                    // A request that straddles the end of the interval counts in the next one.
                    let promised =
                        client.bytes_per_second * ((index + 1) as f64 - delay_s) - f64::from(client.block_bytes());
                    // Nothing is promised of an interval as short as the delay, and nothing can be missed in it.
                    if promised > 0.0 {
                        counts.0 += 1;
                        counts.1 += usize::from((sum as f64) < promised);
                    }
                }
            }
            counts
        }
    };
    GuaranteeRecord {
        intervals,
        missed,
        least_bytes: bins.iter().copied().min().unwrap_or(0),
        mean_bytes: bins.iter().sum::<u64>() as f64 / bins.len().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, Part, Promise, judge_one};
    use minerva_model::Nanos;
    use minerva_sim_workload::Plan;

    #[test]
    fn intervals_of_which_nothing_is_promised_are_not_counted() {
        let plan = Plan { block_bytes: 4096, ..Plan::default() };
        let client = |delay_ms| Client {
            name: "reader".to_owned(),
            parts: vec![Part { from: Nanos::ZERO, plan }],
            bytes_per_second: 1e6,
            delay: Nanos::from_millis(delay_ms),
            promise: Promise::ServiceCurve,
            judged_s: (0, 3),
        };
        // Of four seconds nothing is served in the second one. A delay of 2.4 s promises something of three seconds on: two
        // intervals of three, and one of four.
        let bins = [1_000_000, 0, 1_000_000, 1_000_000];
        let judged = |delay_ms| judge_one(&client(delay_ms), &bins);
        assert_eq!((judged(2_400).intervals, judged(2_400).missed), (3, 0));
        assert_eq!((judged(150).intervals, judged(150).missed), (10, 6));
    }
}
