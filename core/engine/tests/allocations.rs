//! A slice in which nothing changed allocates a handful of vectors, however many tenants there are. Counted, not timed.

use minerva_engine::Engine;
use minerva_model::{
    CgroupRef, DeviceId, DeviceSample, EngineConfig, Event, ForecastMode, IoCounters, Mode, Nanos, Sample, Tenant,
    TenantId, TenantIo, TenantKind, WaitCounters,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Slices until everything that changed in the first ones has been stored and settled; with forecasts, until what the silent
/// slices teach has been learnt.
const WARM_UP: [u64; 2] = [40, 100];
/// What a slice may allocate: the rows of signals, and what else is there once a slice and not once a tenant. With forecasts also
/// those, and the fits of the few series whose turn it is.
const ALLOCATIONS_MAX: [usize; 2] = [16, 100];

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates on its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more, and nothing of it is counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn sample(tenants: u64, second: u64) -> Sample {
    let disks = [DeviceId { major: 8, minor: 0 }, DeviceId { major: 8, minor: 16 }];
    // Everyone reads for three seconds, and is silent after.
    let counters = |scale: u64| {
        let read = second.min(3) * scale;
        IoCounters { read_bytes: read * 1_000_000, read_ops: read, ..IoCounters::default() }
    };
    let disk = |device| DeviceSample {
        device,
        counters: counters(tenants * tenants),
        wait: WaitCounters::default(),
        busy_ns: 0,
        in_flight: 0,
        flushes: 0,
    };
    let row = |tenant: u64, device| TenantIo {
        tenant: TenantId(tenant),
        device,
        counters: counters(tenant),
        wait: None,
        served_ns: None,
    };
    Sample {
        devices: disks.map(disk).to_vec(),
        io: (0..tenants).flat_map(|tenant| disks.map(|device| row(tenant, device))).collect(),
        ..Sample::default()
    }
}

/// Allocations of one silent slice.
fn silent_slice(tenants: u64, forecast: ForecastMode, warm_up: u64) -> usize {
    let mut engine = Engine::new();
    let mut config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
    config.forecast.mode = forecast;
    engine.handle(Nanos::ZERO, Event::Configured(Box::new(config)));
    for number in 0..tenants {
        let tenant = Tenant {
            id: TenantId(number),
            name: format!("tenant-{number}"),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: format!("tenant-{number}"), inode: number },
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        };
        engine.handle(Nanos::ZERO, Event::TenantSeen { tenant, history: Vec::new() });
    }
    for second in 0..warm_up {
        engine.handle(Nanos::from_secs(second + 1), Event::Sampled(Box::new(sample(tenants, second))));
        while engine.poll_effect().is_some() {}
    }
    let event = Event::Sampled(Box::new(sample(tenants, warm_up)));
    let before = ALLOCATIONS.get();
    engine.handle(Nanos::from_secs(warm_up + 1), event);
    let after = ALLOCATIONS.get();
    assert!(engine.poll_effect().is_none(), "a slice in which nothing changed has no effect");
    after - before
}

#[test]
fn a_silent_slice_allocates_as_much_for_ten_tenants_as_for_three_thousand() {
    let counts = [10, 300, 3_000].map(|tenants| silent_slice(tenants, ForecastMode::Off, WARM_UP[0]));
    assert!(counts.iter().all(|count| *count <= ALLOCATIONS_MAX[0]), "{counts:?}");
    assert_eq!(counts[0], counts[2], "{counts:?}");
    let counts = [10, 300, 3_000].map(|tenants| silent_slice(tenants, ForecastMode::Shadow, WARM_UP[1]));
    assert!(counts.iter().all(|count| *count <= ALLOCATIONS_MAX[1]), "with forecasts: {counts:?}");
}
