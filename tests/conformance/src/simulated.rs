//! A job on the simulator.

use crate::Arm;
use crate::guest_offsets::GuestOffsets;
use crate::host::Host;
use crate::hosted_disk::HostedDisk;
use crate::job::{Job, region};
use crate::log::{Entry, Window, arm};
use crate::plan::{plan, seed_of};
use crate::way::RAMP_S;
use anyhow::Context as _;
use minerva_blocksched::{BuildOptions, FlowParameters, Scheduler, SchedulerName};
use minerva_model::Nanos;
use minerva_sim_device::{Media, Profile, profile};
use minerva_sim_workload::{Generator, IoRequest, Plan, Source, Step};
use minerva_sim_world::{ProcessSetup, TenantSetup, World, WorldSetup};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that `minerva-blk` has at a disk at once, which the served arm tells it.
pub(crate) const SERVED_DEPTH: u32 = 32;

/// How long to simulate, and what is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Of each window.
    pub seconds: u64,
    /// How many there are.
    pub windows: u64,
    /// Of the disk, of the host's delays and of the tenants.
    pub seed: u64,
}

/// Who orders the requests of a job.
struct Orderer {
    scheduler: Box<dyn Scheduler>,
    depth: u32,
    /// Groups of the scheduler, each with its weight.
    groups: Vec<u32>,
    /// By tenant of the job: its group, and what the scheduler is told of it.
    flows: Vec<(usize, FlowParameters)>,
}

impl Orderer {
    /// The kernel's elevator, with a cgroup for each tenant.
    fn kernel(job: &Job, is_rotational: bool) -> Self {
        // The kernel's BFQ takes a disk for one that queues until 32 samples say otherwise, and takes a sample only with more than
        // three requests about.
        let build = BuildOptions::for_disk(is_rotational, u32::MAX);
        Self {
            scheduler: job.elevator.scheduler().build(build),
            depth: u32::MAX,
            groups: job.tenants.iter().map(|tenant| tenant.weight).collect(),
            flows: (0..job.tenants.len()).map(|tenant| (tenant, FlowParameters::default())).collect(),
        }
    }

    /// A scheduler in `minerva-blk`, with a disk for each tenant.
    fn served(job: &Job, name: SchedulerName, disk: &Profile) -> Self {
        let build = BuildOptions::for_images(is_rotational(disk), SERVED_DEPTH);
        let tenants = job.tenants.len();
        let starts = (0..tenants).map(|tenant| region(tenants, tenant, disk.capacity_bytes).0).collect();
        let told = |weight| (0, FlowParameters { weight, ..FlowParameters::default() });
        Self {
            scheduler: Box::new(GuestOffsets::new(name.build(build), starts)),
            depth: name.places(build).max(1),
            groups: vec![FlowParameters::default().weight],
            flows: job.tenants.iter().map(|tenant| told(tenant.weight)).collect(),
        }
    }
}

/// Runs `job` under the kernel's elevator in virtual time, after a ramp as long as the real arm's.
pub fn run(job: &Job, host: &Host, time: Time) -> anyhow::Result<Arm> {
    let disk = disk_of(job)?;
    Ok(simulate(job, &disk, Orderer::kernel(job, is_rotational(&disk)), host, time))
}

/// Runs `job` in the same way with its tenants' disks at `minerva-blk`, under one of its schedulers.
pub fn run_served(job: &Job, scheduler: SchedulerName, host: &Host, time: Time) -> anyhow::Result<Arm> {
    let disk = disk_of(job)?;
    Ok(simulate(job, &disk, Orderer::served(job, scheduler, &disk), host, time))
}

fn disk_of(job: &Job) -> anyhow::Result<Profile> {
    profile(job.profile).with_context(|| format!("there is no disk profile `{}`", job.profile))
}

fn is_rotational(disk: &Profile) -> bool {
    matches!(disk.media, Media::Hdd(_))
}

fn simulate(job: &Job, disk: &Profile, orderer: Orderer, host: &Host, time: Time) -> Arm {
    let Time { seconds, windows, seed } = time;
    let logs: Vec<Log> = job.tenants.iter().map(|_| Log::default()).collect();
    let process = |(index, (group, parameters)): (usize, (usize, FlowParameters))| {
        let region = region(job.tenants.len(), index, disk.capacity_bytes);
        // The kernel and the server take direct writes for such that somebody waits for.
        let plan = Plan { sync_writes: true, ..plan(&job.tenants[index], region) };
        ProcessSetup {
            name: index.to_string(),
            tenant: group,
            source: Box::new(Logged {
                source: Generator::new(plan, seed_of(seed, index)),
                under_way: Vec::new(),
                answered: VecDeque::new(),
                wake: host.wake(),
                log: Arc::clone(&logs[index]),
            }),
            starts_at: Nanos::ZERO,
            parameters,
            promise: None,
        }
    };
    let group = |(index, weight): (usize, u32)| TenantSetup { name: index.to_string(), weight, guest: None };
    let mut world = World::new(WorldSetup {
        device: Box::new(HostedDisk::new(disk.build(None, seed), host.clone(), seed)),
        host: orderer.scheduler,
        depth: orderer.depth,
        tenants: orderer.groups.into_iter().enumerate().map(group).collect(),
        processes: orderer.flows.into_iter().enumerate().map(process).collect(),
        engine: None,
        bin: Nanos::SECOND,
    });
    world.run(Nanos::from_secs(RAMP_S + seconds * windows));
    let logs: Vec<Vec<Entry>> =
        logs.iter().map(|log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))).collect();
    let whole = Window { from_ms: RAMP_S * 1000, length_ms: windows * seconds * 1000 };
    arm(&logs, whole, seconds * 1000)
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
