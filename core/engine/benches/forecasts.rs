//! The figure `forecast-slice`: what forecasts add to a slice of the engine. The same samples go to an engine with forecasts off and to
//! one that makes them, in drawn order, in virtual time. `cargo bench -p minerva-engine --bench forecasts` prints JSON lines. Nothing is
//! known of days here: what their forecasts and fits cost is in the figure `forecast-cost`.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::disallowed_macros, reason = "a figure is printed")]

use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, DeviceId, DeviceSample, EngineConfig, Event, ForecastMode, IoCounters, Mode, Nanos, Origin, Sample,
    Tenant, TenantId, TenantIo, TenantKind, TenantUsage, Terms, WaitCounters,
};
use std::time::{Duration, Instant};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const TENANTS: u64 = 1_200;
/// Tenants that use the disk in a slice; which they are moves slowly over all.
const BUSY: u64 = 200;
/// Tenants whose processes are looked at in a slice.
const LOOKED_AT: u64 = 64;
/// Until the trees were fitted more than once, and those that were measured.
const BEFORE: u64 = 400;
const MEASURED: u64 = 400;
/// A tenth of a core at slices of a second.
const GOAL_MS: f64 = 100.0;

fn main() {
    let mut engines = [ForecastMode::Off, ForecastMode::On].map(engine);
    let mut took = [Vec::new(), Vec::new()];
    let mut world = World { seed: 1, counters: vec![IoCounters::default(); TENANTS as usize], cpu_ns: 0 };
    for slice in 0..BEFORE + MEASURED {
        let sample = world.sample(slice);
        let first = (world.draw() % 2) as usize;
        for index in [first, 1 - first] {
            let spent = spent(&mut engines[index], slice, sample.clone());
            if slice >= BEFORE {
                took[index].push(spent.as_secs_f64() * 1e3);
            }
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let added: Vec<f64> = took[1].iter().zip(&took[0]).map(|(with, without)| with - without).collect();
    let worst = added.iter().copied().fold(0.0, f64::max);
    let what = format!("{TENANTS} tenants of which {BUSY} are busy");
    line(
        mean(&added),
        GOAL_MS,
        &format!("added by forecasts, {what}: mean of {MEASURED} slices; off {:.2} ms", mean(&took[0])),
    );
    line(worst, 1_000.0, &format!("the slice that grew most, {what}: no slice of 1 s is late"));
    let started = Instant::now();
    let snapshot = engines[1].snapshot();
    let spent = started.elapsed().as_secs_f64() * 1e3;
    line(spent, 1_000.0, &format!("a snapshot with forecasts, {:.1} MB, {what}", snapshot.len() as f64 / 1e6));
}

fn line(value: f64, goal: f64, detail: &str) {
    let value = (value * 100.0).round() / 100.0;
    let line = serde_json::json!({
        "id": "forecast-slice", "value": value, "unit": "ms", "goal": goal, "met": value <= goal, "detail": detail,
    });
    println!("{line}");
}

fn spent(engine: &mut Engine, slice: u64, sample: Sample) -> Duration {
    let event = Event::Sampled(Box::new(sample));
    let started = Instant::now();
    engine.handle(Nanos::from_secs(slice + 2), event);
    while engine.poll_effect().is_some() {}
    started.elapsed()
}

fn engine(forecast: ForecastMode) -> Engine {
    let mut engine = Engine::new();
    let mut config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
    config.forecast.mode = forecast;
    engine.handle(Nanos::SECOND, Event::Configured(Box::new(config)));
    for number in 0..TENANTS {
        let tenant = Tenant {
            id: TenantId(number),
            name: format!("job-{}-{number}", ["copy", "scan", "index", "backup"][number as usize % 4]),
            kind: TenantKind::Service,
            cgroup: CgroupRef { path: format!("system.slice/{number}"), inode: 1 + number },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
            origin: Origin::default(),
        };
        engine.handle(Nanos::SECOND, Event::TenantSeen { tenant, history: Vec::new() });
    }
    engine
}

/// Tenants that burst, each with its period.
struct World {
    seed: u64,
    counters: Vec<IoCounters>,
    cpu_ns: u64,
}

impl World {
    /// Knuth's linear congruence: the same numbers in every run.
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    fn sample(&mut self, slice: u64) -> Sample {
        let first = slice / 4 % TENANTS;
        let mut sample = Sample { wall_seconds: Some(slice), ..Sample::default() };
        for number in 0..BUSY {
            let tenant = (first + number * TENANTS / BUSY) % TENANTS;
            let is_on = (slice + tenant) % (10 + tenant % 30) < 6;
            let bytes = self.draw() % if is_on { 10_000_000 } else { 1_000 };
            let counters = &mut self.counters[tenant as usize];
            counters.read_bytes += bytes;
            counters.write_bytes += bytes / 3;
            counters.read_ops += 1 + bytes / 65_536;
            counters.write_ops += 1;
        }
        self.cpu_ns += 20_000_000;
        let wait = None;
        let row = |(number, counters): (usize, &IoCounters)| TenantIo {
            tenant: TenantId(number as u64),
            device: DISK,
            counters: *counters,
            wait,
            served_ns: None,
        };
        sample.io = self.counters.iter().enumerate().map(row).collect();
        let mut looked_at: Vec<u64> =
            (0..LOOKED_AT).map(|number| (first + number * TENANTS / LOOKED_AT) % TENANTS).collect();
        looked_at.sort_unstable();
        sample.usage = looked_at.into_iter().map(|tenant| self.usage(tenant)).collect();
        let mut total = IoCounters::default();
        for counters in &self.counters {
            total.read_bytes += counters.read_bytes;
            total.write_bytes += counters.write_bytes;
            total.read_ops += counters.read_ops;
            total.write_ops += counters.write_ops;
        }
        let wait = WaitCounters::default();
        sample.devices.push(DeviceSample { device: DISK, counters: total, wait, busy_ns: 0, in_flight: 0, flushes: 0 });
        sample
    }

    fn usage(&mut self, tenant: u64) -> TenantUsage {
        TenantUsage {
            tenant: TenantId(tenant),
            cpu_ns: self.cpu_ns,
            memory_bytes: 1_000_000_000,
            network_bytes: None,
            open_files: 20,
            open_sockets: 3,
            open_file_bytes: self.draw() % 100_000_000,
            processes: 2,
            process_read_bytes: 0,
            process_write_bytes: 0,
        }
    }
}
