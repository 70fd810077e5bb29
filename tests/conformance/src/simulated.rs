//! A job on the simulator.

use crate::Arm;
use crate::host::Host;
use crate::hosted_disk::HostedDisk;
use crate::job::{Elevator, Job, TenantJob, region};
use crate::log::{Entry, Window, outcome};
use crate::real::RAMP_S;
use anyhow::Context as _;
use minerva_blocksched::{BuildOptions, FlowParameters, Scheduler, SchedulerName};
use minerva_model::Nanos;
use minerva_sim_device::{Media, profile};
use minerva_sim_workload::{Generator, IoRequest, Loop, Pattern, Plan, Source, Step};
use minerva_sim_world::{ProcessSetup, TenantSetup, World, WorldSetup};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `job` for `windows` times `seconds` of virtual time, after a ramp as long as the real arm's.
pub fn run(job: &Job, host: &Host, seconds: u64, windows: u64, seed: u64) -> anyhow::Result<Arm> {
    let profile = profile(job.profile).with_context(|| format!("there is no disk profile `{}`", job.profile))?;
    let rotational = matches!(profile.media, Media::Hdd(_));
    let disk = HostedDisk::new(profile.build(None, seed), host.clone(), seed);
    let logs: Vec<Log> = job.tenants.iter().map(|_| Log::default()).collect();
    let tenants = job.tenants.iter().enumerate();
    let mut world = World::new(WorldSetup {
        device: Box::new(disk),
        host: scheduler(job.elevator, rotational),
        depth: u32::MAX,
        tenants: tenants
            .clone()
            .map(|(index, tenant)| TenantSetup { name: index.to_string(), weight: tenant.weight, guest: None })
            .collect(),
        processes: tenants
            .map(|(index, tenant)| {
                let plan = plan(tenant, region(job, index, profile.capacity_bytes));
                ProcessSetup {
                    name: index.to_string(),
                    tenant: index,
                    source: Box::new(Logged {
                        source: Generator::new(plan, seed << 8 | index as u64),
                        under_way: Vec::new(),
                        answered: VecDeque::new(),
                        wake: host.wake(),
                        log: Arc::clone(&logs[index]),
                    }),
                    starts_at: Nanos::ZERO,
                    parameters: FlowParameters::default(),
                    promise: None,
                }
            })
            .collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    world.run(Nanos::from_secs(RAMP_S + seconds * windows));
    let logs: Vec<Vec<Entry>> =
        logs.iter().map(|log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))).collect();
    let whole = Window { from_ms: RAMP_S * 1000, length_ms: windows * seconds * 1000 };
    let windows = whole.split(seconds * 1000).map(|window| outcome(&logs, window)).collect();
    Ok(Arm { whole: outcome(&logs, whole), windows })
}

type Log = Arc<Mutex<Vec<Entry>>>;

/// A process whose every request is logged, as fio does it.
struct Logged {
    source: Generator,
    /// Offset and instant of each request under way.
    under_way: Vec<(u64, Nanos)>,
    /// What the block layer has answered, and when the process knows.
    answered: VecDeque<(Nanos, IoRequest)>,
    /// How long the process takes to wake.
    wake: Nanos,
    log: Log,
}

impl Logged {
    fn learn(&mut self, now: Nanos, request: &IoRequest) {
        // Two at the same place are told apart by their order, which is as good as any.
        if let Some(index) = self.under_way.iter().position(|(offset, _)| *offset == request.offset_bytes) {
            let (_, issued) = self.under_way.remove(index);
            let (at_ms, time_ns) = (now.0 / 1_000_000, now.since(issued).0);
            let entry = Entry { at_ms, time_ns, bytes: u64::from(request.length_bytes) };
            self.log.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
        self.source.completed(now, request);
    }
}

impl Source for Logged {
    fn next(&mut self, now: Nanos) -> Step {
        while let Some((at, request)) = self.answered.front().copied().filter(|(at, _)| *at <= now) {
            self.answered.pop_front();
            self.learn(at, &request);
        }
        let step = self.source.next(now);
        match (step, self.answered.front()) {
            (Step::Issue(request), _) => self.under_way.push((request.offset_bytes, now)),
            (Step::Blocked, Some((at, _))) => return Step::At(*at),
            _ => {}
        }
        step
    }

    fn completed(&mut self, now: Nanos, request: &IoRequest) {
        self.answered.push_back((now + self.wake, *request));
    }
}

fn plan(tenant: &TenantJob, (offset_bytes, region_bytes): (u64, u64)) -> Plan {
    Plan {
        pattern: if tenant.random { Pattern::Random } else { Pattern::Sequential },
        when: Loop::Closed { depth: tenant.depth },
        read_percent: if tenant.write { 0 } else { 100 },
        // The kernel takes direct writes for synchronous ones.
        sync_writes: true,
        block_bytes: tenant.block_bytes,
        offset_bytes,
        region_bytes,
        ..Plan::default()
    }
}

fn scheduler(elevator: Elevator, rotational: bool) -> Box<dyn Scheduler> {
    let name = match elevator {
        Elevator::None => SchedulerName::Noop,
        Elevator::Deadline => SchedulerName::MqDeadline,
        Elevator::Bfq => SchedulerName::Bfq,
    };
    // The kernel's BFQ takes a disk for one that queues until 32 samples say otherwise, and takes a sample only with more than
    // three requests about.
    name.build(BuildOptions::for_disk(rotational, u32::MAX))
}
