//! Minerva's engine over a simulated host: the same events and effects as in `minervad`, answered by a virtual kernel that
//! has one cgroup a tenant with `io.bfq.weight`.

use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSample, Effect, EngineConfig, Event, IoCounters,
    KnobTarget, Mode, Nanos, Outcome, Sample, Tenant, TenantId, TenantIo, TenantKind, WaitCounters,
};

/// The one disk of a world.
const DEVICE: DeviceId = DeviceId { major: 8, minor: 0 };
/// The default of `io.bfq.weight`.
const DEFAULT_WEIGHT: u32 = 100;

/// The engine and the weights it set.
#[derive(Debug)]
pub(crate) struct Steering {
    engine: Engine,
    slice: Nanos,
    next_slice: Nanos,
    /// Each tenant's line in its `io.bfq.weight`, if there is one.
    weights: Vec<Option<u32>>,
}

/// What a tenant has transferred so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) io: IoCounters,
    pub(crate) seen: bool,
}

impl Steering {
    pub(crate) fn new(config: EngineConfig, size_bytes: u64, tenants: &[String]) -> Self {
        let config = EngineConfig { mode: Mode::Enforce, ..config };
        let slice = config.observe.slice;
        let mut steering = Self { engine: Engine::new(), slice, next_slice: slice, weights: vec![None; tenants.len()] };
        let facts = DeviceFacts {
            cgroup: CgroupVersion::V2,
            controller_enabled: true,
            writeback_attributed: true,
            elevator: Some("bfq".to_owned()),
            elevators_available: vec!["bfq".to_owned()],
            bfq_low_latency: Some(false),
            iocost_available: false,
            iocost_enabled: false,
            throttle_available: true,
            rotational: true,
            stacked_on: Vec::new(),
            size_bytes,
            back_end_forced: None,
        };
        steering.handle(Nanos::ZERO, Event::Configured(Box::new(config)));
        steering.handle(Nanos::ZERO, Event::DeviceSeen(Device { id: DEVICE, name: "sim".to_owned(), facts }));
        for (index, name) in tenants.iter().enumerate() {
            let tenant = Tenant {
                id: TenantId(index as u64),
                name: name.clone(),
                kind: TenantKind::VirtualMachine,
                cgroup: CgroupRef { path: name.clone(), inode: index as u64 + 1 },
                group: None,
                weight_percent: 100,
                excluded: false,
                role: minerva_model::Role::default(),
            };
            steering.handle(Nanos::ZERO, Event::TenantSeen { tenant, history: Vec::new() });
        }
        steering
    }

    /// The instant of the next slice.
    pub(crate) fn next_slice(&self) -> Nanos {
        self.next_slice
    }

    /// A slice ends: reads the counters into the engine and returns the (tenant, weight) pairs that it changed.
    pub(crate) fn slice(&mut self, now: Nanos, tenants: &[Counters]) -> Vec<(usize, u32)> {
        let mut total = IoCounters::default();
        let mut io = Vec::new();
        for (index, counters) in tenants.iter().enumerate().filter(|(_, counters)| counters.seen) {
            total.read_bytes += counters.io.read_bytes;
            total.write_bytes += counters.io.write_bytes;
            total.read_ops += counters.io.read_ops;
            total.write_ops += counters.io.write_ops;
            io.push(TenantIo { tenant: TenantId(index as u64), device: DEVICE, counters: counters.io, wait: None });
        }
        let device = DeviceSample {
            device: DEVICE,
            counters: total,
            wait: WaitCounters::default(),
            busy_ns: now.0,
            in_flight: 0,
        };
        self.next_slice = now + self.slice;
        let before = self.weights.clone();
        self.handle(now, Event::Sampled(Box::new(Sample { devices: vec![device], io, ..Sample::default() })));
        let changed = self.weights.iter().zip(&before).enumerate().filter(|(_, (after, before))| after != before);
        changed.map(|(index, (after, _))| (index, after.unwrap_or(DEFAULT_WEIGHT))).collect()
    }

    /// Turns the crank until nothing is left to do.
    fn handle(&mut self, now: Nanos, event: Event) {
        self.engine.handle(now, event);
        while let Some(effect) = self.engine.poll_effect() {
            let (id, target, text) = match effect {
                Effect::Inspect(inspection) => (inspection.id, inspection.target, None),
                Effect::Write(write) => (write.id, write.target, Some(write.text)),
                _ => continue,
            };
            let outcome = self.answer(&target, text.as_deref());
            self.engine.handle(now, Event::Answered { id, outcome });
        }
    }

    /// The virtual kernel: one weight line a tenant.
    fn answer(&mut self, target: &KnobTarget, text: Option<&str>) -> Outcome {
        let KnobTarget::Cgroup { tenant: Some(tenant), .. } = target else { return Outcome::Vanished };
        let Some(weight) = self.weights.get_mut(tenant.0 as usize) else { return Outcome::Vanished };
        if let Some((device, value)) = text.and_then(|text| text.split_once(' '))
            && device.parse() == Ok(DEVICE)
        {
            *weight = value.parse().ok();
        }
        let line = weight.map_or(String::new(), |weight| format!("{DEVICE} {weight}\n"));
        Outcome::Text(format!("default {DEFAULT_WEIGHT}\n{line}"))
    }
}
