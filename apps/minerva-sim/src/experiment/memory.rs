//! A trace streams: what a replay holds does not depend on how long the trace is.

use minerva_blocksched::{FlowParameters, Noop};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::trace::{Addresses, Pace, ReadOptions, ReplayOptions, TraceReader, TraceSource};
use minerva_sim_world::{ProcessSetup, TenantSetup, World, WorldSetup};
use std::fmt::Write as _;
use std::io::Read;

/// From one request of the synthetic trace to the next: 2,000 a second, which the disk can serve, so nothing piles up.
const GAP_US: u64 = 500;
const VOLUMES: u64 = 1000;
const REGION_BYTES: u64 = 64 << 30;
/// Lines that are made at once.
const LINES: u64 = 512;

/// A synthetic trace in Alibaba's format: reads and writes of 4 to 32 KiB at random places of a thousand volumes.
pub(crate) struct SyntheticTrace {
    records: u64,
    made: u64,
    text: String,
    given: usize,
}

impl SyntheticTrace {
    /// A trace of so many requests.
    pub(crate) fn new(records: u64) -> Self {
        Self { records, made: 0, text: String::new(), given: 0 }
    }

    fn refill(&mut self) {
        self.text.clear();
        self.given = 0;
        for index in self.made..self.records.min(self.made + LINES) {
            let random = mixed(index);
            let (volume, kind) = (random % VOLUMES, if random >> 10 & 3 == 0 { 'W' } else { 'R' });
            let bytes = 4096 << (random >> 12 & 3);
            let offset = (random >> 14) % (REGION_BYTES / 32_768) * 32_768;
            let at_us = index * GAP_US + (random >> 56);
            // A string takes every write.
            let _ = writeln!(self.text, "{volume},{kind},{offset},{bytes},{at_us}");
        }
        self.made = self.records.min(self.made + LINES);
    }
}

impl Read for SyntheticTrace {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.text.len() {
            self.refill();
        }
        let left = &self.text.as_bytes()[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

/// SplitMix64's finish: a number that looks random.
fn mixed(index: u64) -> u64 {
    let mixed = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// A world that replays a trace on `profile` at the trace's own instants, with all metrics.
pub(crate) fn replay(profile: &Profile, trace: impl Read + Send + 'static) -> anyhow::Result<World> {
    let trace = TraceReader::from_stream(trace, "synthetic", ReadOptions::default())?;
    let device = profile.build(None, 1);
    let options = ReplayOptions {
        pace: Pace::Open { speed: 1.0 },
        volume: None,
        capacity_bytes: device.capacity_bytes(),
        addresses: Addresses::Refuse,
        sync_writes: true,
    };
    let process = ProcessSetup {
        name: "trace".to_owned(),
        tenant: 0,
        source: Box::new(TraceSource::new(trace, options)),
        starts_at: Nanos::ZERO,
        parameters: FlowParameters::default(),
        promise: None,
    };
    Ok(World::new(WorldSetup {
        depth: device.queue_depth(),
        device,
        host: Box::new(Noop::new()),
        tenants: vec![TenantSetup { name: "all".to_owned(), weight: 100, guest: None }],
        processes: vec![process],
        engine: None,
        bin: Nanos::from_secs(60),
    }))
}

#[cfg(test)]
mod tests {
    use super::{GAP_US, SyntheticTrace, replay};
    use minerva_model::Nanos;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    struct Counting;

    thread_local! {
        /// Bytes that this thread holds, and the most that it held: other tests allocate on threads of their own.
        static HELD: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
    }

    fn note(bytes: i64) {
        // A thread that is ending has no counter any more, and nothing of it is counted.
        let _ = HELD.try_with(|held| {
            let now = held.get().0 + bytes;
            held.set((now, held.get().1.max(now)));
        });
    }

    // SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            note(layout.size() as i64);
            // SAFETY: the caller's promise on `layout` is passed on.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            note(-(layout.size() as i64));
            // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[global_allocator]
    static COUNTING: Counting = Counting;

    #[test]
    fn three_million_requests_hold_no_more_than_one() {
        let disk = minerva_sim_device::profile("sata-ssd").expect("built in");
        let before = HELD.get().0;
        let mut world = replay(&disk, SyntheticTrace::new(3_000_000)).expect("a trace");
        let mut most = Vec::new();
        for million in 1..=3 {
            let ended = world.run(Nanos::from_micros(million * 1_000_000 * GAP_US + 10_000_000));
            assert_eq!(ended, million == 3);
            most.push(HELD.get().1 - before);
        }
        assert_eq!(world.requests(), 3_000_000);
        // The queue that the disk's longest stall makes grows by some hundred requests, as ever longer ones are met.
        assert!(most[2] - most[0] <= 65_536, "bytes held at most after 1, 2 and 3 million requests: {most:?}");
    }
}
