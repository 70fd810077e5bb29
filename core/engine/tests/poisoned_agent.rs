//! An agent that lies about its guest, having told the truth for long: what its lies gain it, and what they cost its neighbours, beside
//! an agent that says nothing. The engine decides, and a fluid disk deals its bandwidth by share.

#![expect(clippy::disallowed_macros, reason = "measured figures are told with --nocapture")]

use minerva_engine::Engine;
use minerva_model::{
    AgentReport, CgroupRef, DeviceId, DeviceSample, EngineConfig, Event, ForecastMode, IoCounters, Mode, Nanos, Origin,
    Sample, Tenant, TenantId, TenantIo, TenantKind, Terms, WaitCounters,
};

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const MEGABYTE: f64 = 1e6;
const DISK_BYTES_PER_SECOND: f64 = 120.0 * MEGABYTE;
const MACHINES: u64 = 4;
/// Until then the first machine works as the others do and its agent tells the truth; afterwards its sessions are large or endless.
const TURNS_AT: u64 = 900;
const SECONDS: u64 = 1_800;

/// What the agent of the first machine says is left of its open files, from the moment when its sessions are no longer drawn.
type Lie = fn(u64) -> u64;

/// Numbers from 0 to 1.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2.0_f64.powi(53)
    }
}

/// A machine that transfers sessions, with pauses between.
struct Machine {
    draws: Draws,
    left: f64,
    pause_seconds: f64,
    began: u64,
    moved: f64,
    /// Seconds that its sessions took which began after the first machine turned.
    took: Vec<f64>,
}

impl Machine {
    fn new(number: u64) -> Self {
        let mut draws = Draws(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let pause_seconds = 20.0 * draws.uniform();
        Self { draws, left: 0.0, pause_seconds, began: 0, moved: 0.0, took: Vec::new() }
    }

    /// A pause goes on, or a session begins: of this size, or of one that is drawn.
    fn begin(&mut self, second: u64, bytes: Option<f64>) {
        if self.left <= 0.0 {
            self.pause_seconds -= 1.0;
            if self.pause_seconds <= 0.0 {
                let drawn = (50.0 + 400.0 * self.draws.uniform()) * MEGABYTE;
                (self.left, self.began) = (bytes.unwrap_or(drawn), second);
            }
        }
    }

    /// Takes what the disk served in a second.
    fn serve(&mut self, second: u64, bytes: f64) {
        self.moved += bytes;
        self.left -= bytes;
        if self.left <= 0.0 && bytes > 0.0 {
            self.pause_seconds = 12.0 + 15.0 * self.draws.uniform();
            if self.began >= TURNS_AT {
                self.took.push((second + 1 - self.began) as f64);
            }
        }
    }
}

fn seen(number: u64) -> Event {
    let tenant = Tenant {
        id: TenantId(number),
        name: format!("vm-{number}"),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: format!("vm-{number}"), inode: number + 1 },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    };
    Event::TenantSeen { tenant, history: Vec::new() }
}

fn report(number: u64, left: u64) -> Event {
    Event::Reported(AgentReport {
        tenant: TenantId(number),
        elapsed: Nanos::SECOND,
        processes: 1,
        cpu_ns: 0,
        resident_bytes: 1 << 30,
        read_bytes: 0,
        write_bytes: 0,
        open_files: 1,
        open_file_bytes: left,
        open_file_bytes_left: left,
        memory_available_bytes: 1 << 30,
        memory_total_bytes: 1 << 31,
        connections: 1,
        network_received_bytes: 0,
        network_sent_bytes: 0,
    })
}

fn sample(machines: &[Machine]) -> Event {
    let counters =
        |bytes: f64| IoCounters { read_bytes: bytes as u64, read_ops: bytes as u64 / 131_072, ..IoCounters::default() };
    let row = |(number, machine): (usize, &Machine)| TenantIo {
        tenant: TenantId(number as u64),
        device: DISK,
        counters: counters(machine.moved),
        wait: None,
        served_ns: None,
    };
    let disk = DeviceSample {
        device: DISK,
        counters: counters(machines.iter().map(|machine| machine.moved).sum()),
        wait: WaitCounters::default(),
        busy_ns: 0,
        in_flight: 0,
        flushes: 0,
    };
    let io = machines.iter().enumerate().map(row).collect();
    Event::Sampled(Box::new(Sample { devices: vec![disk], io, ..Sample::default() }))
}

/// Deals a second of the disk by share, and what one does not need among the others.
fn deal(engine: &Engine, machines: &mut [Machine], second: u64) {
    let share = |number: usize| {
        engine.decision(TenantId(number as u64), DISK).map_or(100.0, |decision| f64::from(decision.share.get()))
    };
    let mut served = vec![0.0; machines.len()];
    let mut bytes_left = DISK_BYTES_PER_SECOND;
    for _ in 0..machines.len() {
        let wants = |number: usize, served: &[f64]| machines[number].left - served[number] > 1.0;
        let all: f64 = (0..machines.len()).filter(|number| wants(*number, &served)).map(share).sum();
        let dealt = bytes_left;
        for number in 0..machines.len() {
            if all > 0.0 && wants(number, &served) {
                let bytes = (dealt * share(number) / all).min(machines[number].left - served[number]);
                served[number] += bytes;
                bytes_left -= bytes;
            }
        }
    }
    machines.iter_mut().zip(served).for_each(|(machine, bytes)| machine.serve(second, bytes));
}

/// What the first machine got after it turned, and the mean seconds of a session of each of the others since. Without a lie its agent says
/// nothing at all from the start.
fn played(lie: Option<Lie>, session_bytes: f64) -> (f64, f64) {
    let mut engine = Engine::new();
    let mut config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
    config.forecast.mode = ForecastMode::On;
    let tell = |engine: &mut Engine, second: u64, event: Event| {
        engine.handle(Nanos::from_secs(second + 1), event);
        while engine.poll_effect().is_some() {}
    };
    tell(&mut engine, 0, Event::Configured(Box::new(config)));
    let mut machines: Vec<Machine> = (0..MACHINES).map(Machine::new).collect();
    (0..MACHINES).for_each(|number| tell(&mut engine, 0, seen(number)));
    let mut before = 0.0;
    for second in 0..SECONDS {
        let turned = second >= TURNS_AT;
        if second == TURNS_AT {
            before = machines[0].moved;
        }
        for (number, machine) in machines.iter_mut().enumerate() {
            machine.begin(second, (turned && number == 0).then_some(session_bytes));
        }
        deal(&engine, &mut machines, second);
        for (number, machine) in machines.iter().enumerate() {
            let said = match lie {
                Some(lie) if turned && number == 0 => lie(second),
                _ => machine.left.max(0.0) as u64,
            };
            if lie.is_some() || number > 0 {
                tell(&mut engine, second, report(number as u64, said));
            }
        }
        tell(&mut engine, second, sample(&machines));
    }
    let took: Vec<f64> = machines[1..].iter().flat_map(|machine| machine.took.iter().copied()).collect();
    (machines[0].moved - before, took.iter().sum::<f64>() / took.len() as f64)
}

#[test]
fn an_agent_that_lies_gains_little_and_costs_its_neighbours_little() {
    let lies: [(&str, Lie); 5] = [
        ("one byte left", |_| 1),
        ("as much as any number holds", |_| u64::MAX),
        ("always as if it began", |_| 300_000_000),
        ("a small and a large number in turns", |second| if second % 2 == 0 { 1 } else { u64::MAX }),
        ("whatever", |second| second.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
    ];
    for (sessions, session_bytes) in [("endless", f64::INFINITY), ("of 2 GB", 2_000.0 * MEGABYTE)] {
        let (without, took_without) = played(None, session_bytes);
        for (what, lie) in lies {
            let (bytes, took) = played(Some(lie), session_bytes);
            let (gain, cost) = (bytes / without, took / took_without);
            println!(
                "sessions {sessions}, says {what}: {gain:.3} of the bytes without an agent, the others' sessions take {cost:.3}"
            );
            assert!(
                gain < 1.1 && cost < 1.1,
                "sessions {sessions}, says {what}: {gain} of its bytes, {cost} of their time"
            );
        }
    }
}
