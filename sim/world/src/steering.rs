//! Minerva's engine over a simulated host: the same events and effects as in `minervad`, answered by a virtual kernel that
//! has one cgroup a tenant with `io.bfq.weight`. A host may have several disks; each tenant uses one.

use crate::setup::EngineSetup;
use crate::supposed::Supposed;
use crate::throttle::Caps;
use minerva_blocksched::Kind;
use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSample, Effect, EngineConfig, Event, IoCounters,
    KnobFile, KnobTarget, Level, LevelClaims, Mode, Nanos, Outcome, Sample, Tenant, TenantId, TenantIo, TenantKind,
    TenantUsage, WaitCounters,
};
use minerva_sim_workload::{IoRequest, ProcessUsage, UnderWay};

/// The disks of a host, by number.
const fn device(disk: usize) -> DeviceId {
    DeviceId { major: 8, minor: disk as u32 }
}

/// The default of `io.bfq.weight`.
const DEFAULT_WEIGHT: u32 = 100;

/// A virtual kernel's disks.
#[derive(Clone, Debug)]
pub struct Disks<'a> {
    /// The scheduler of each.
    pub elevator: &'a str,
    /// How large each is.
    pub size_bytes: u64,
    /// The number of each tenant's disk, from 0; tenants beyond its end use disk 0.
    pub of_tenants: &'a [usize],
}

/// The engine and the weights it set.
#[derive(Debug)]
pub struct Steering {
    engine: Engine,
    next_slice: Nanos,
    /// The number of each tenant's disk.
    disks: Vec<usize>,
    /// Each tenant's line in its `io.bfq.weight`, if there is one.
    weights: Vec<Option<u32>>,
    /// Its line in its `io.max`.
    caps: Vec<Caps>,
    supposed: Supposed,
}

/// What a tenant has transferred so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Cumulative.
    pub io: IoCounters,
    /// It has used the disk, so that the kernel has a line for it.
    pub seen: bool,
}

impl Counters {
    /// A request of the tenant is done.
    pub(crate) fn note(&mut self, io: &IoRequest) {
        let bytes = u64::from(io.length_bytes);
        self.seen = true;
        match io.kind {
            Kind::Read => {
                self.io.read_bytes += bytes;
                self.io.read_ops += 1;
            }
            Kind::Write | Kind::Flush => {
                self.io.write_bytes += bytes;
                self.io.write_ops += 1;
            }
            // The kernel counts them apart too (`dbytes` of io.stat), and Minerva does not read that.
            Kind::Discard => {}
        }
    }
}

impl Steering {
    /// An engine over the disks of a host. Outlooks other than the engine's own are for hosts of one disk.
    pub fn new(setup: EngineSetup, host: &Disks<'_>, tenants: &[String]) -> Self {
        let Disks { elevator, size_bytes, of_tenants } = *host;
        let disks: Vec<usize> = (0..tenants.len()).map(|index| of_tenants.get(index).copied().unwrap_or(0)).collect();
        let EngineSetup { config, rotational, outlook } = setup;
        let config = EngineConfig { mode: Mode::Enforce, ..config };
        // The reading that the engine wants at the very start would find nothing; simulations have begun a slice later ever since.
        let next_slice = config.observe.slice;
        let supposed = Supposed::new(outlook, tenants.len());
        let weights = vec![None; tenants.len()];
        let caps = vec![[None; 2]; tenants.len()];
        let mut steering = Self { engine: Engine::new(), next_slice, disks, weights, caps, supposed };
        let facts = facts(elevator, rotational, size_bytes);
        steering.handle(Nanos::ZERO, Event::Configured(Box::new(config)));
        for disk in 0..=steering.disks.iter().copied().max().unwrap_or(0) {
            let name = if disk == 0 { "sim".to_owned() } else { format!("sim{disk}") };
            steering.handle(Nanos::ZERO, Event::DeviceSeen(Device { id: device(disk), name, facts: facts.clone() }));
        }
        for (index, name) in tenants.iter().enumerate() {
            let tenant = Tenant {
                id: TenantId(index as u64),
                name: name.clone(),
                kind: TenantKind::VirtualMachine,
                cgroup: CgroupRef { path: name.clone(), inode: index as u64 + 1 },
                group: None,
                weight_percent: 100,
                excluded: false,
                job: None,
                terms: minerva_model::Terms::default(),
                origin: minerva_model::Origin::default(),
            };
            steering.handle(Nanos::ZERO, Event::TenantSeen { tenant, history: Vec::new() });
        }
        steering
    }

    /// A tenant steps back, from now on.
    pub fn set_level(&mut self, now: Nanos, tenant: usize, level: Level) {
        let claims = LevelClaims { held: vec![level], ..LevelClaims::default() };
        self.handle(now, Event::LevelClaimsChanged { tenant: TenantId(tenant as u64), claims });
    }

    /// Each tenant's caps, reads and writes in bytes a second.
    pub(crate) fn caps(&self) -> &[Caps] {
        &self.caps
    }

    /// The instant of the next slice.
    pub fn next_slice(&self) -> Nanos {
        self.next_slice
    }

    /// A slice ends: reads the counters, and what tenants use besides the disk, into the engine and returns the (tenant, weight)
    /// pairs that it changed. `busy` is for how long each disk had a request so far.
    pub fn slice(
        &mut self,
        now: Nanos,
        busy: &[Nanos],
        tenants: &[Counters],
        usage: &[Option<ProcessUsage>],
    ) -> Vec<(usize, u32)> {
        let mut totals = vec![IoCounters::default(); busy.len()];
        let mut io = Vec::new();
        for (index, counters) in tenants.iter().enumerate().filter(|(_, counters)| counters.seen) {
            let Some(total) = self.disks.get(index).and_then(|disk| totals.get_mut(*disk)) else { continue };
            total.read_bytes += counters.io.read_bytes;
            total.write_bytes += counters.io.write_bytes;
            total.read_ops += counters.io.read_ops;
            total.write_ops += counters.io.write_ops;
            let (tenant, counters) = (TenantId(index as u64), counters.io);
            let device = device(self.disks[index]);
            io.push(TenantIo { tenant, device, counters, wait: None, served_ns: None });
        }
        let disk = |(disk, (counters, busy)): (usize, (IoCounters, &Nanos))| {
            let (device, wait) = (device(disk), WaitCounters::default());
            DeviceSample { device, counters, wait, busy_ns: busy.0, in_flight: 0, flushes: 0 }
        };
        let devices = totals.into_iter().zip(busy).enumerate().map(disk).collect();
        let before = self.weights.clone();
        let sessions: Vec<Option<UnderWay>> =
            usage.iter().map(|usage| usage.and_then(|usage| usage.under_way)).collect();
        if let Some(outlook) = self.supposed.outlook(now, device(0), &sessions) {
            self.engine.suppose(outlook);
        }
        let seen = usage.iter().enumerate().filter_map(|(index, usage)| Some(tenant_usage(index, (*usage)?)));
        let sample = Sample { devices, io, usage: seen.collect(), ..Sample::default() };
        self.handle(now, Event::Sampled(Box::new(sample)));
        self.next_slice = self.engine.next_wakeup().map_or(Nanos(u64::MAX), |(at, _)| at);
        let changed = self.weights.iter().zip(&before).enumerate().filter(|(_, (after, before))| after != before);
        changed.map(|(index, (after, _))| (index, after.unwrap_or(DEFAULT_WEIGHT))).collect()
    }

    /// Turns the crank until nothing is left to do.
    fn handle(&mut self, now: Nanos, event: Event) {
        self.engine.handle(now, event);
        while let Some(effect) = self.engine.poll_effect() {
            let (id, target, file, text) = match effect {
                Effect::Inspect(inspection) => (inspection.id, inspection.target, inspection.file, None),
                Effect::Write(write) => (write.id, write.target, write.file, Some(write.text)),
                // There is no store that could lose it.
                Effect::Ledger(entry) => {
                    self.engine.handle(now, Event::Committed { entry: entry.number, fresh: true, known: None });
                    continue;
                }
                // For people, for a store that is never read, and for tenants that ask: here is none of them. Named one by one, so
                // that an effect which is new must be thought of here.
                Effect::LetGo(_)
                | Effect::Watch(_)
                | Effect::Decided(_)
                | Effect::Remember(_)
                | Effect::Found(_)
                | Effect::Granted(_)
                | Effect::Refused(_)
                | Effect::MigrationCounted(_)
                | Effect::Ready { .. }
                | Effect::Declare(_)
                | Effect::Background(_)
                | Effect::BackgroundLearnt { .. }
                | Effect::BackgroundCalibrated { .. }
                | Effect::Learnt(_)
                | Effect::KeepModel(_)
                | Effect::JobEnded(_) => continue,
            };
            let outcome = self.answer(&target, file, text.as_deref());
            self.engine.handle(now, Event::Answered { id, outcome });
        }
    }

    /// The virtual kernel: one weight line a tenant, and one of limits.
    fn answer(&mut self, target: &KnobTarget, file: KnobFile, text: Option<&str>) -> Outcome {
        let KnobTarget::Cgroup { tenant: Some(tenant), .. } = target else { return Outcome::Vanished };
        let index = tenant.0 as usize;
        let Some(disk) = self.disks.get(index) else { return Outcome::Vanished };
        let own = device(*disk);
        let value = text.and_then(|text| text.split_once(' ')).filter(|(id, _)| id.parse() == Ok(own));
        let value = value.map(|(_, value)| value);
        match file {
            KnobFile::IoMax => limits(own, &mut self.caps[index], value),
            KnobFile::BfqWeight => weight_line(own, &mut self.weights[index], value),
            // The virtual host has no other. Named one by one, so that a knob which is new must be thought of here.
            KnobFile::BfqV1Weight
            | KnobFile::BfqV1WeightDevice
            | KnobFile::IoWeight
            | KnobFile::ThrottleReadBps
            | KnobFile::ThrottleWriteBps
            | KnobFile::IoCostQos
            | KnobFile::Elevator
            | KnobFile::BfqLowLatency
            | KnobFile::BfqStrictGuarantees
            | KnobFile::ServerWeight => Outcome::Vanished,
        }
    }
}

/// `io.bfq.weight` of one tenant, after a write where there is one.
fn weight_line(device: DeviceId, weight: &mut Option<u32>, value: Option<&str>) -> Outcome {
    if let Some(value) = value {
        *weight = value.parse().ok();
    }
    let line = weight.map_or(String::new(), |weight| format!("{device} {weight}\n"));
    Outcome::Text(format!("default {DEFAULT_WEIGHT}\n{line}"))
}

/// What the virtual kernel says of a disk.
fn facts(elevator: &str, rotational: bool, size_bytes: u64) -> DeviceFacts {
    DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: Some(elevator.to_owned()),
        elevators_available: vec![elevator.to_owned()],
        // BFQ's model has no such heuristics.
        bfq_low_latency: (elevator == "bfq").then_some(false),
        bfq_strict_guarantees: None,
        iocost_available: false,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        rotational,
        stacked_on: Vec::new(),
        size_bytes,
        back_end_forced: None,
    }
}

/// `io.max` of one tenant, after a write where there is one: the kernel leaves what a write does not name.
fn limits(device: DeviceId, caps: &mut Caps, value: Option<&str>) -> Outcome {
    for (key, limit) in value.into_iter().flat_map(str::split_ascii_whitespace).filter_map(|word| word.split_once('='))
    {
        match key {
            "rbps" => caps[0] = limit.parse().ok(),
            "wbps" => caps[1] = limit.parse().ok(),
            _ => {}
        }
    }
    if *caps == [None; 2] {
        return Outcome::Text(String::new());
    }
    let [read, write] = caps.map(|cap| cap.map_or_else(|| "max".to_owned(), |cap| cap.to_string()));
    Outcome::Text(format!("{device} rbps={read} wbps={write} riops=max wiops=max\n"))
}

/// A tenant's processes as the kernel shows them.
fn tenant_usage(index: usize, usage: ProcessUsage) -> TenantUsage {
    TenantUsage {
        tenant: TenantId(index as u64),
        cpu_ns: usage.cpu_ns,
        memory_bytes: usage.memory_bytes,
        network_bytes: None,
        open_files: usage.open_files,
        open_sockets: usage.open_sockets,
        open_file_bytes: usage.open_file_bytes,
        processes: 1,
        process_read_bytes: 0,
        process_write_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, Disks, Steering};
    use crate::OutlookSource;
    use crate::setup::EngineSetup;
    use minerva_model::{EngineConfig, IoCounters, Nanos};

    /// Weights that are set for a heavy tenant and a newcomer over some slices.
    fn changes(elevator: &str) -> usize {
        let setup =
            EngineSetup { config: EngineConfig::default(), rotational: true, outlook: OutlookSource::default() };
        let tenants = ["heavy".to_owned(), "light".to_owned()];
        let host = Disks { elevator, size_bytes: 1 << 40, of_tenants: &[] };
        let mut steering = Steering::new(setup, &host, &tenants);
        let read = |bytes| Counters {
            io: IoCounters { read_bytes: bytes, read_ops: bytes / 4096, ..IoCounters::default() },
            seen: true,
        };
        let slices = 1..30u64;
        slices
            .map(|slice| {
                let (now, counters) = (Nanos::from_secs(slice), [read(slice * 50_000_000), read(slice * 1_000_000)]);
                steering.slice(now, &[now], &counters, &[None, None]).len()
            })
            .sum()
    }

    #[test]
    fn a_slice_ends_when_the_engine_asks_for_it() {
        let mut config = EngineConfig::default();
        config.observe.slice = Nanos::from_millis(250);
        let setup = EngineSetup { config, rotational: true, outlook: OutlookSource::default() };
        let host = Disks { elevator: "bfq", size_bytes: 1 << 40, of_tenants: &[] };
        let mut steering = Steering::new(setup, &host, &["only".to_owned()]);
        let ends = [(); 3].map(|()| {
            let now = steering.next_slice();
            steering.slice(now, &[now], &[Counters::default()], &[None]);
            now
        });
        assert_eq!(ends, [250, 500, 750].map(Nanos::from_millis));
    }

    #[test]
    fn weights_are_set_only_where_the_scheduler_reads_them() {
        assert!(changes("bfq") > 0);
        assert_eq!((changes("noop"), changes("mq-deadline")), (0, 0));
    }
}
