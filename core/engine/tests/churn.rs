//! Tenants come and go for ever, and what is kept of them does not grow: counted in bytes that are allocated and not freed.

mod disk;

use disk::{DISK, bfq_disk};
use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, DeviceSample, Effect, EngineConfig, EntryNumber, Event, ForecastSettings, IoCounters, Level, Lifetime,
    Mode, Nanos, Origin, Outcome, Recalled, RequestId, Sample, Tenant, TenantId, TenantIo, TenantKind, TenantRequest,
    Terms, WaitCounters, Wish,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Tenants that come in one slice, and are gone in the next but one.
const COMERS: u64 = 500;
/// In all a million.
const SLICES: u64 = 1_000_000 / COMERS;
/// By then everything that has a bound of its own has come near it.
const WARM_UP: u64 = SLICES / 10;
/// What may be allocated more at the end: less than a byte in ten tenants.
const GROWTH_BYTES_MAX: i64 = 64 << 10;

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates on its own.
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: usize, sign: i64) {
    // A thread that is ending has no counter any more, and nothing of it is counted.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get() + sign * bytes as i64));
}

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Every fourth is of a group that a user made, every fourth of an operator's group.
fn tenant(number: u64) -> Tenant {
    let delegated = CgroupRef { path: format!("user-{}", number % 7), inode: 1 + number % 7 };
    Tenant {
        id: TenantId(number),
        name: format!("tenant-{number}"),
        kind: TenantKind::Container,
        cgroup: CgroupRef { path: format!("some.slice/tenant-{number}.scope"), inode: 100 + number },
        group: (number % 4 == 1).then(|| format!("group-{}", number % 28)),
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from: (number % 4 == 2).then_some(delegated), ..Origin::default() },
    }
}

/// Does what the engine wants, as a kernel and a store that never fail.
fn serve(engine: &mut Engine, now: Nanos) {
    while let Some(effect) = engine.poll_effect() {
        let answer = match effect {
            Effect::Inspect(inspection) => {
                Event::Answered { id: inspection.id, outcome: Outcome::Text("default 100\n".to_owned()) }
            }
            Effect::Write(write) => {
                Event::Answered { id: write.id, outcome: Outcome::Text(format!("default 100\n{}\n", write.text)) }
            }
            Effect::Ledger(entry) => {
                let entry: EntryNumber = entry.number;
                Event::Committed { entry, fresh: true, known: None }
            }
            _ => continue,
        };
        engine.handle(now, answer);
    }
}

fn sample(slice: u64, there: std::ops::Range<u64>) -> Sample {
    let reads = |bytes: u64| IoCounters { read_bytes: bytes, read_ops: bytes >> 12, ..IoCounters::default() };
    let row = |number: u64| {
        let slices = slice - number / COMERS;
        TenantIo {
            tenant: TenantId(number),
            device: DISK,
            counters: reads((1 + slices) * ((1 + number % 16) << 16)),
            wait: None,
            served_ns: None,
        }
    };
    let device = DeviceSample {
        device: DISK,
        counters: reads(slice * (COMERS << 22)),
        wait: WaitCounters::default(),
        busy_ns: slice * 900_000_000,
        in_flight: 0,
        flushes: 0,
    };
    Sample { devices: vec![device], io: there.map(row).collect(), ..Sample::default() }
}

#[test]
fn a_million_tenants_that_came_and_went_leave_nothing() {
    let mut engine = Engine::new();
    // What forecasts keep of tenants has a bound of its own (`forecasts.rs`); fitting them to each would take minutes here.
    let config = EngineConfig { mode: Mode::Enforce, forecast: ForecastSettings::absent(), ..EngineConfig::default() };
    engine.handle(Nanos::ZERO, Event::Configured(Box::new(config)));
    engine.handle(Nanos::ZERO, Event::DeviceSeen(bfq_disk()));
    let mut before = 0;
    for slice in 0..SLICES {
        let now = Nanos::from_secs(slice + 1);
        if slice == WARM_UP {
            before = LIVE_BYTES.get();
        }
        for number in slice.saturating_sub(2) * COMERS..slice.saturating_sub(1) * COMERS {
            engine.handle(now, Event::TenantGone(TenantId(number)));
        }
        for number in slice * COMERS..(slice + 1) * COMERS {
            let tenant = tenant(number);
            let id = tenant.id;
            engine.handle(now, Event::TenantSeen { tenant, history: Vec::new() });
            let recalled = Recalled { tenant: id, lots: Vec::new(), purchases: Vec::new(), declaration: None };
            engine.handle(now, Event::Recalled(Box::new(recalled)));
            if number % 50 == 0 {
                let wish = Wish::SetLevel { level: Level::Low, lifetime: Lifetime::UntilReleased };
                let request = RequestId(format!("r{number}"));
                engine.handle(now, Event::Requested(TenantRequest { id: request, tenant: id, wish }));
            }
        }
        let sample = sample(slice, slice.saturating_sub(1) * COMERS..(slice + 1) * COMERS);
        engine.handle(now, Event::Sampled(Box::new(sample)));
        serve(&mut engine, now);
    }
    let growth = LIVE_BYTES.get() - before;
    assert!(growth <= GROWTH_BYTES_MAX, "{growth} bytes more than after {} tenants", WARM_UP * COMERS);
}
