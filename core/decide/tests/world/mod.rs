//! A fluid disk that deals its bandwidth out by share, slice by slice, under a decider: work-conserving, and with jitter when
//! asked for.

use minerva_decide::{DecideInput, Decided, Decider};
use minerva_model::{
    AccessKind, CgroupRef, Deadline, Decision, DeviceId, DeviceSignals, Effect, EngineConfig, Grant, Granted,
    IoCounters, IoSignals, Mode, Nanos, Operation, Outlook, RequestId, Signals, Tenant, TenantId, TenantKind,
    TenantRequest, Wish,
};
use std::collections::BTreeMap;

pub(crate) const DISK: DeviceId = DeviceId { major: 7, minor: 0 };
/// Steps of a second: who ends within a slice leaves the rest of it to the others.
const STEPS: u32 = 20;

/// One tenant and what it has to move, in bytes.
pub(crate) struct Job {
    pub(crate) left: f64,
    /// It waits for its call.
    pub(crate) held: bool,
    pub(crate) done_at: Option<f64>,
    pub(crate) released_at: Option<Nanos>,
    moved: f64,
    share: f64,
}

pub(crate) struct World {
    pub(crate) decider: Decider,
    pub(crate) jobs: Vec<Job>,
    pub(crate) now: Nanos,
    pub(crate) bytes_per_second: f64,
    pub(crate) effects: Vec<Effect>,
    signals: Signals,
    seed: u64,
    jitter: f64,
    names: u32,
}

impl World {
    pub(crate) fn new(config: &EngineConfig, bytes_per_second: f64, sizes: &[f64], seed: u64, jitter: f64) -> Self {
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &EngineConfig { mode: Mode::Enforce, ..config.clone() });
        decider.device_seen(DISK);
        for number in 0..sizes.len() as u64 {
            let tenant = Tenant {
                id: TenantId(number),
                name: format!("vm-{number}"),
                kind: TenantKind::VirtualMachine,
                cgroup: CgroupRef { path: format!("t/{number}"), inode: number + 1 },
                group: None,
                weight_percent: 100,
                excluded: false,
                job: None,
                terms: minerva_model::Terms::default(),
                origin: minerva_model::Origin::default(),
            };
            decider.tenant_seen(Nanos::ZERO, &tenant, &[]);
        }
        let job =
            |left: &f64| Job { left: *left, held: false, done_at: None, released_at: None, moved: 0.0, share: 100.0 };
        Self {
            decider,
            jobs: sizes.iter().map(job).collect(),
            now: Nanos::ZERO,
            bytes_per_second,
            effects: Vec::new(),
            signals: Signals::default(),
            seed,
            jitter,
            names: 0,
        }
    }

    pub(crate) fn ask(&mut self, tenant: usize, wish: Wish) -> RequestId {
        self.names += 1;
        let id = RequestId(format!("request-{}", self.names));
        let request = TenantRequest { id: id.clone(), tenant: TenantId(tenant as u64), wish };
        let (effects, news) = self.decider.requested(self.now, &request, &self.signals);
        self.obey(&news);
        for effect in effects {
            self.take(effect);
        }
        id
    }

    /// Asks when to begin; the job is held until it is told.
    pub(crate) fn coordinate(&mut self, tenant: usize, deadline: Option<Deadline>) -> RequestId {
        self.jobs[tenant].held = true;
        let bytes = self.jobs[tenant].left as u64;
        let operation = Operation { device: DISK, access: AccessKind::SequentialRead, bytes, deadline };
        self.ask(tenant, Wish::Coordinate(operation.into()))
    }

    fn obey(&mut self, news: &[Decision]) {
        for decision in news {
            self.jobs[decision.tenant.0 as usize].share = f64::from(decision.share.get());
        }
    }

    fn take(&mut self, effect: Effect) {
        let release = |world: &mut Self, tenant: TenantId| {
            let now = world.now;
            let job = &mut world.jobs[tenant.0 as usize];
            if std::mem::take(&mut job.held) {
                job.released_at = Some(now);
            }
        };
        match &effect {
            Effect::Granted(Granted { tenant, grant: Grant::Now, .. }) => release(self, *tenant),
            Effect::Ready { tenant, .. } => release(self, *tenant),
            _ => {}
        }
        self.effects.push(effect);
    }

    fn random(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// One slice. `finish` names the operation of a job that ends, to be told as finished.
    pub(crate) fn slice(&mut self, operations: &BTreeMap<usize, RequestId>) {
        let factors: Vec<f64> =
            (0..self.jobs.len()).map(|_| 1.0 - self.jitter / 2.0 + self.jitter * self.random()).collect();
        let start = self.now;
        let before: Vec<f64> = self.jobs.iter().map(|job| job.moved).collect();
        for step in 1..=STEPS {
            let mut ended = Vec::new();
            let claim =
                |(job, factor): (&Job, &f64)| if job.held || job.left <= 0.0 { 0.0 } else { job.share * factor };
            let claims: Vec<f64> = self.jobs.iter().zip(&factors).map(claim).collect();
            let sum: f64 = claims.iter().sum();
            let bytes = self.bytes_per_second / f64::from(STEPS);
            for (index, (job, claim)) in
                self.jobs.iter_mut().zip(&claims).enumerate().filter(|(_, (_, claim))| **claim > 0.0)
            {
                let part = (bytes * claim / sum).min(job.left);
                job.left -= part;
                job.moved += part;
                if job.left <= 0.5 {
                    job.left = 0.0;
                    job.done_at = Some(start.as_secs_f64() + f64::from(step) / f64::from(STEPS));
                    ended.push(index);
                }
            }
            self.now = start + Nanos(Nanos::SECOND.0 * u64::from(step) / u64::from(STEPS));
            for index in ended {
                if let Some(id) = operations.get(&index) {
                    self.ask(index, Wish::Finish(id.clone()));
                }
            }
        }
        self.signals = self.signals_since(&before);
        let input = DecideInput { signals: &self.signals, outlook: Outlook::default() };
        let Decided { effects, decisions, .. } = self.decider.slice(self.now, input);
        for effect in effects {
            if let Effect::Ledger(entry) = &effect {
                self.decider.committed(self.now, entry.number, true, None);
            }
            self.take(effect);
        }
        self.obey(&decisions);
    }

    fn signals_since(&self, before: &[f64]) -> Signals {
        let mut total = IoCounters::default();
        let mut io = Vec::new();
        for (index, (job, before)) in self.jobs.iter().zip(before).enumerate() {
            let read_bytes = (job.moved - before) as u64;
            let read_ops = read_bytes.div_ceil(65_536);
            total.read_bytes += read_bytes;
            total.read_ops += read_ops;
            let transferred = IoCounters { read_bytes, read_ops, ..IoCounters::default() };
            let (tenant, active) = (TenantId(index as u64), read_ops > 0);
            io.push(IoSignals {
                tenant,
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred,
                latency: None,
                active,
                served: None,
                disk_time: Nanos((transferred.read_bytes as f64 / self.bytes_per_second * 1e9) as u64),
            });
        }
        let busy = total.read_bytes as f64 / self.bytes_per_second * 1e3;
        let device = DeviceSignals {
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: total,
            busy_permille: (busy.round() as u32).min(1_000),
            read_latency: None,
            write_latency: None,
            contention: io.iter().filter(|row| row.active).count() as u32,
            unattributed_bytes: 0,
            flushes: 0,
        };
        Signals { devices: vec![device], io, ..Signals::default() }
    }
}
