//! What one slice costs the engine: a sample in, effects out, every answer taken in. Reading the kernel, writing to it and
//! building the sample are not in it.
//!
//! `cargo bench -p minerva-engine` compares with the run before. With `MINERVA_FIGURE=1` it prints the figure `tick-cost` as
//! JSON lines instead.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::disallowed_macros, reason = "a figure is printed")]

use criterion::{BenchmarkId, Criterion, Throughput};
use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, CgroupVersion, Device, DeviceFacts, DeviceId, DeviceSample, Effect, EngineConfig, Event,
    ForecastSettings, IoCounters, JobSettings, KnobFile, KnobTarget, Mode, Nanos, Outcome, Sample, Tenant, TenantId,
    TenantIo, TenantKind, WaitCounters, WriteId,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const DISKS: u32 = 4;
/// The design's budget, at the tenants that it is for.
const BUDGET_MS: f64 = 5.0;
const BUDGET_TENANTS: u64 = 1_200;
const SIZES: [u64; 3] = [10, BUDGET_TENANTS, 10_000];
/// Of the tenants of the budget so many are batch jobs.
const JOBS: [u64; 2] = [20, BUDGET_TENANTS];
/// Slices before the measurement: first weights are written, averages have settled.
const WARM_UP: usize = 20;

/// How many of the tenants use the disks in a slice.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    AllActive,
    /// One in twenty, others each time.
    MostlyIdle,
}

/// Tenants whose rates differ by orders of magnitude and jitter from slice to slice, and weight files that obey.
struct World {
    engine: Engine,
    load: Load,
    /// Batch jobs keep their disks busy all the time, so that they go one before the other.
    has_jobs: bool,
    now: Nanos,
    seed: u64,
    sample: Sample,
    files: BTreeMap<(KnobTarget, KnobFile, DeviceId), String>,
}

impl World {
    /// The first so many tenants are batch jobs, every other one of a declared size.
    fn new(tenants: u64, load: Load, jobs: u64) -> Self {
        let mut engine = Engine::new();
        let now = Nanos::SECOND;
        // What forecasts add is the figure `forecast-slice`.
        let mut config =
            EngineConfig { mode: Mode::Enforce, forecast: ForecastSettings::absent(), ..EngineConfig::default() };
        config.makespan.jobs = (0..jobs).map(job).collect();
        engine.handle(now, Event::Configured(Box::new(config)));
        let mut sample = Sample::default();
        for disk in disks() {
            engine.handle(now, Event::DeviceSeen(device(disk)));
            let (counters, wait) = (IoCounters::default(), WaitCounters::default());
            sample.devices.push(DeviceSample { device: disk, counters, wait, busy_ns: 0, in_flight: 0, flushes: 0 });
        }
        for number in 0..tenants {
            engine.handle(now, Event::TenantSeen { tenant: tenant(number), history: Vec::new() });
            let (counters, wait) = (IoCounters::default(), Some(WaitCounters::default()));
            sample.io.extend(disks().map(|device| TenantIo {
                tenant: TenantId(number),
                device,
                counters,
                wait,
                served_ns: None,
            }));
        }
        let mut world = Self { engine, load, has_jobs: jobs > 0, now, seed: 1, sample, files: BTreeMap::new() };
        for _ in 0..WARM_UP {
            world.tick();
        }
        world
    }

    /// A slice; the time that the engine took.
    fn tick(&mut self) -> Duration {
        self.advance();
        let event = Event::Sampled(Box::new(self.sample.clone()));
        let started = Instant::now();
        self.engine.handle(self.now, event);
        let mut took = started.elapsed();
        loop {
            let started = Instant::now();
            let effects: Vec<Effect> = std::iter::from_fn(|| self.engine.poll_effect()).collect();
            took += started.elapsed();
            if effects.is_empty() {
                return took;
            }
            let answers: Vec<(WriteId, Outcome)> =
                effects.into_iter().filter_map(|effect| self.answer(effect)).collect();
            let started = Instant::now();
            for (id, outcome) in answers {
                self.engine.handle(self.now, Event::Answered { id, outcome });
            }
            took += started.elapsed();
        }
    }

    fn answer(&mut self, effect: Effect) -> Option<(WriteId, Outcome)> {
        let (id, key, written) = match effect {
            Effect::Inspect(inspection) => {
                (inspection.id, (inspection.target, inspection.file, inspection.device), None)
            }
            Effect::Write(write) => (write.id, (write.target, write.file, write.device), Some(write.text)),
            _ => return None,
        };
        let file = self.files.entry(key).or_insert_with(|| "default 100\n".to_owned());
        if let Some(text) = written {
            *file = format!("default 100\n{text}\n");
        }
        Some((id, Outcome::Text(file.clone())))
    }

    fn advance(&mut self) {
        self.now += Nanos::SECOND;
        if self.has_jobs {
            self.sample.devices.iter_mut().for_each(|disk| disk.busy_ns += Nanos::SECOND.0);
        }
        for row in 0..self.sample.io.len() {
            let (dice, tenant) = (self.dice(), self.sample.io[row].tenant.0);
            if self.load == Load::MostlyIdle && !(self.now.0 / Nanos::SECOND.0 + tenant).is_multiple_of(20) {
                continue;
            }
            let bytes = (1_000 << (tenant % 12)) * (64 + dice % 64);
            let counters = &mut self.sample.io[row].counters;
            counters.read_bytes += bytes;
            counters.read_ops += 1 + bytes / 65_536;
            let disk = row % DISKS as usize;
            self.sample.devices[disk].counters.read_bytes += bytes;
            self.sample.devices[disk].counters.read_ops += 1 + bytes / 65_536;
        }
    }

    /// Knuth's linear congruence: the same numbers in every run.
    fn dice(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }
}

fn job(number: u64) -> (String, JobSettings) {
    let bytes = number.is_multiple_of(2).then_some(1 << (30 + number % 10));
    (tenant(number).name, JobSettings { name: format!("job-{number}"), bytes })
}

fn disks() -> impl Iterator<Item = DeviceId> {
    (0..DISKS).map(|number| DeviceId { major: 8, minor: number * 16 })
}

fn device(id: DeviceId) -> Device {
    let facts = DeviceFacts {
        cgroup: CgroupVersion::V2,
        controller_enabled: true,
        writeback_attributed: true,
        elevator: Some("bfq".to_owned()),
        elevators_available: vec!["bfq".to_owned()],
        bfq_low_latency: Some(false),
        bfq_strict_guarantees: None,
        iocost_available: true,
        iocost_enabled: false,
        iocost_model_guessed: false,
        throttle_available: true,
        multi_queue: true,
        rotational: true,
        stacked_on: Vec::new(),
        size_bytes: 4_000_000_000_000,
        back_end_forced: None,
    };
    Device { id, name: format!("sd{}", id.minor), facts }
}

fn tenant(number: u64) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: format!("vm-{number}"),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: format!("machine.slice/vm-{number}.scope"), inode: 1_000 + number },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: minerva_model::Terms::default(),
        origin: minerva_model::Origin::default(),
    }
}

fn criterion_benches() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let mut group = criterion.benchmark_group("tick");
    for (name, load) in [("all-active", Load::AllActive), ("mostly-idle", Load::MostlyIdle)] {
        for tenants in SIZES {
            let mut world = World::new(tenants, load, 0);
            group.bench_function(BenchmarkId::new(name, tenants), |bencher| {
                bencher.iter_custom(|count| (0..count).map(|_| world.tick()).sum());
            });
        }
    }
    for jobs in JOBS {
        let mut world = World::new(BUDGET_TENANTS, Load::AllActive, jobs);
        group.bench_function(BenchmarkId::new("jobs", jobs), |bencher| {
            bencher.iter_custom(|count| (0..count).map(|_| world.tick()).sum());
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("snapshot");
    for tenants in SIZES {
        let engine = World::new(tenants, Load::AllActive, 0).engine;
        group.throughput(Throughput::Bytes(engine.snapshot().len() as u64));
        group.bench_function(BenchmarkId::from_parameter(tenants), |bencher| bencher.iter(|| engine.snapshot()));
    }
    group.finish();
    criterion.final_summary();
}

/// One line a size, all tenants active, against the budget in proportion to the tenants; and with batch jobs among them.
fn figure() {
    for tenants in SIZES {
        let (mean, worst) = measure(tenants, Load::AllActive, 0);
        let (idle_mean, _) = measure(tenants, Load::MostlyIdle, 0);
        let detail = format!(
            "{tenants} tenants on {DISKS} disks, all active, enforcing: mean of 40 ticks; worst {worst:.2} ms; with one in \
             twenty active {idle_mean:.2} ms"
        );
        print_line(tenants, mean, &detail);
    }
    for jobs in JOBS {
        let (mean, worst) = measure(BUDGET_TENANTS, Load::AllActive, jobs);
        let detail = format!(
            "{BUDGET_TENANTS} tenants on {DISKS} busy disks, {jobs} of them batch jobs that go one before the other on each: mean of 40 \
             ticks; worst {worst:.2} ms"
        );
        print_line(BUDGET_TENANTS, mean, &detail);
    }
}

fn print_line(tenants: u64, mean: f64, detail: &str) {
    let goal = BUDGET_MS * (tenants as f64 / BUDGET_TENANTS as f64).max(1.0);
    let line = serde_json::json!({
        "id": "tick-cost", "value": (mean * 1e3).round() / 1e3, "unit": "ms", "goal": (goal * 10.0).round() / 10.0,
        "met": mean <= goal, "detail": detail,
    });
    println!("{line}");
}

/// Mean and worst tick, in milliseconds.
fn measure(tenants: u64, load: Load, jobs: u64) -> (f64, f64) {
    let mut world = World::new(tenants, load, jobs);
    let ticks: Vec<f64> = (0..40).map(|_| world.tick().as_secs_f64() * 1e3).collect();
    (ticks.iter().sum::<f64>() / ticks.len() as f64, ticks.iter().copied().fold(0.0, f64::max))
}

fn main() {
    match std::env::var_os("MINERVA_FIGURE") {
        Some(_) => figure(),
        None => criterion_benches(),
    }
}
