//! A disk that deals its bandwidth by share, work-conserving, under a decider that is told what is foreseen.

use minerva_decide::{DecideInput, Decider};
use minerva_model::{
    CgroupRef, DeviceId, EngineConfig, Forecast, Horizon, Interval, IoCounters, IoSignals, Nanos, Origin, Outlook,
    Signals, Tenant, TenantId, TenantKind, Terms,
};

pub(crate) const DISK: DeviceId = DeviceId { major: 7, minor: 0 };
const BYTES_PER_SECOND: f64 = 100e6;
/// Steps of a second: who ends within a slice leaves the rest of it to the others.
const STEPS: u32 = 20;

pub(crate) struct Job {
    pub(crate) left: f64,
    pub(crate) moved: f64,
    /// When it last had nothing left, in seconds.
    pub(crate) done_at: Option<f64>,
}

pub(crate) struct Fluid {
    pub(crate) jobs: Vec<Job>,
    pub(crate) now: Nanos,
    pub(crate) decider: Decider,
}

pub(crate) fn tenant(id: usize) -> Tenant {
    Tenant {
        id: TenantId(id as u64),
        name: format!("vm-{id}"),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: format!("t/{id}"), inode: id as u64 + 1 },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    }
}

pub(crate) fn forecast(tenant: u64, horizon: Horizon, value: f64, skill: f64, made_at: Nanos) -> Forecast {
    let read_bytes = Interval { value, lower: value / 2.0, upper: value * 2.0, coverage_permille: 800 };
    let (tenant, write_bytes) = (TenantId(tenant), Interval::default());
    let (busy_permille, is_naive) = (1_000, false);
    Forecast { tenant, device: DISK, horizon, read_bytes, write_bytes, busy_permille, skill, is_naive, made_at }
}

impl Fluid {
    pub(crate) fn new(sizes: &[f64]) -> Self {
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &EngineConfig::default());
        for id in 0..sizes.len() {
            decider.tenant_seen(Nanos::ZERO, &tenant(id), &[]);
        }
        let jobs = sizes.iter().map(|left| Job { left: *left, moved: 0.0, done_at: None }).collect();
        Self { jobs, now: Nanos::ZERO, decider }
    }

    /// The end of the slice that begins now.
    pub(crate) fn next(&self) -> Nanos {
        self.now + Nanos::SECOND
    }

    /// One slice by the shares that stand, then the next shares by what is foreseen.
    pub(crate) fn slice(&mut self, outlook: Outlook) {
        let before: Vec<f64> = self.jobs.iter().map(|job| job.moved).collect();
        let share = |id: usize| {
            let decision = self.decider.decision(TenantId(id as u64), DISK);
            decision.map_or(100.0, |decision| f64::from(decision.share.get()))
        };
        let shares: Vec<f64> = (0..self.jobs.len()).map(share).collect();
        for step in 1..=STEPS {
            let busy = self.jobs.iter().zip(&shares).filter(|(job, _)| job.left > 0.0);
            let sum: f64 = busy.map(|(_, share)| share).sum();
            for (job, share) in self.jobs.iter_mut().zip(&shares).filter(|(job, _)| job.left > 0.0) {
                let part = (BYTES_PER_SECOND / f64::from(STEPS) * share / sum).min(job.left);
                job.left -= part;
                job.moved += part;
                if job.left <= 0.5 {
                    job.left = 0.0;
                    job.done_at = Some(self.now.as_secs_f64() + f64::from(step) / f64::from(STEPS));
                }
            }
        }
        self.now += Nanos::SECOND;
        let row = |(id, (job, before)): (usize, (&Job, &f64))| {
            let read_bytes = (job.moved - before) as u64;
            let transferred = IoCounters { read_bytes, read_ops: read_bytes.div_ceil(65_536), ..IoCounters::default() };
            let (tenant, active) = (TenantId(id as u64), read_bytes > 0);
            IoSignals {
                tenant,
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred,
                latency: None,
                active,
                served: None,
                disk_time: Nanos::ZERO,
            }
        };
        let io = self.jobs.iter().zip(&before).enumerate().map(row).collect();
        let signals = Signals { io, ..Signals::default() };
        self.decider.slice(self.now, DecideInput { signals: &signals, outlook });
    }
}
