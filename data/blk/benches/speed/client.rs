//! The client: keeps so many requests under way, and notes how long each takes.

use crate::IMAGE_BYTES;
use crate::server::Running;
use crate::statistics::drawn;
use hdrhistogram::Histogram;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fmt;
use std::time::{Duration, Instant};

const WARM_UP: Duration = Duration::from_millis(200);
const QUEUE_SIZE: u16 = 256;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// Bytes of a request.
    pub(crate) block: u32,
    /// Requests under way at each disk.
    pub(crate) depth: usize,
    /// One follows the other on the disk.
    pub(crate) is_sequential: bool,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.is_sequential { "in sequence" } else { "at random" };
        write!(f, "{} bytes {order} at depth {}", self.block, self.depth)
    }
}

/// What was found.
pub(crate) struct Run {
    nanos: Histogram<u64>,
    seconds: f64,
    /// Of the server.
    processor_seconds: f64,
}

impl Run {
    fn new() -> Self {
        let nanos = Histogram::new_with_bounds(100, 100_000_000_000, 3).expect("bounds in order");
        Self { nanos, seconds: 0.0, processor_seconds: 0.0 }
    }

    /// Several as one.
    pub(crate) fn pooled(runs: &[Self]) -> Self {
        let mut pooled = Self::new();
        for run in runs {
            pooled.nanos.add(&run.nanos).expect("made alike");
            pooled.seconds += run.seconds;
            pooled.processor_seconds += run.processor_seconds;
        }
        pooled
    }

    /// Requests a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.nanos.len() as f64 / self.seconds
    }

    /// What this part of the requests took at most, in microseconds.
    pub(crate) fn micros(&self, part: f64) -> f64 {
        self.nanos.value_at_quantile(part) as f64 / 1e3
    }

    /// What the server used of its processor for a request, in microseconds.
    pub(crate) fn processor_micros(&self) -> f64 {
        self.processor_seconds * 1e6 / self.nanos.len().max(1) as f64
    }
}

/// A guest's disk.
struct Guest {
    client: Client,
    begun_at: Vec<Instant>,
    next: u64,
}

impl Guest {
    fn connect(running: &Running, disk: usize, condition: Condition, seed: u64) -> Self {
        let options = ClientOptions {
            data_bytes: condition.block,
            has_inflight: false,
            queue_size: QUEUE_SIZE,
            ..ClientOptions::default()
        };
        let client = Client::connect(&running.socket(disk), options);
        let begun_at = vec![Instant::now(); usize::from(QUEUE_SIZE)];
        Self { client, begun_at, next: drawn(seed, disk as u64) }
    }

    fn ask(&mut self, condition: Condition) {
        let (blocks, ring) = (IMAGE_BYTES / u64::from(condition.block), &mut self.client.rings[0]);
        let mut has_asked = false;
        while ring.under_way() < condition.depth {
            self.next = if condition.is_sequential { self.next.wrapping_add(1) } else { drawn(self.next, 1) };
            let slot = ring.next_slot().expect("a slot");
            self.begun_at[usize::from(slot)] = Instant::now();
            ring.submit(&Request::new(
                kind::IN,
                self.next % blocks * u64::from(condition.block) / 512,
                condition.block,
            ));
            has_asked = true;
        }
        if has_asked {
            ring.kick();
        }
    }

    /// Notes what is answered, waiting for the first; whether anything was.
    fn hear(&mut self, nanos: Option<&mut Histogram<u64>>, is_patient: bool) -> bool {
        let ring = &mut self.client.rings[0];
        let mut answer = if is_patient { ring.wait(Duration::from_secs(10)) } else { ring.poll() };
        assert!(answer.is_some() || !is_patient, "an answer");
        let has_heard = answer.is_some();
        let mut nanos = nanos;
        while let Some(one) = answer {
            assert_eq!(one.status, 0);
            if let Some(nanos) = &mut nanos {
                nanos.saturating_record(self.begun_at[usize::from(one.slot)].elapsed().as_nanos() as u64);
            }
            answer = ring.poll();
        }
        has_heard
    }
}

/// Keeps all disks of a server busy. With one disk the client sleeps until it is told of an answer, as a guest does; with several it goes
/// through them.
pub(crate) fn run(running: &Running, condition: Condition, time: Duration, seed: u64) -> Run {
    let mut run = Run::new();
    let mut guests = guests(running, condition, seed);
    let (mut begun, mut processor, mut is_warm) = (Instant::now(), 0.0, false);
    loop {
        let elapsed = begun.elapsed();
        if !is_warm && elapsed > WARM_UP {
            (begun, processor, is_warm) = (Instant::now(), running.processor_seconds(), true);
        } else if is_warm && elapsed > time {
            break;
        }
        go_round(&mut guests, condition, is_warm.then_some(&mut run.nanos));
    }
    run.seconds = begun.elapsed().as_secs_f64();
    run.processor_seconds = running.processor_seconds() - processor;
    run
}

/// The same without notes; what `look` finds while all are connected.
pub(crate) fn run_connected<T>(
    running: &Running,
    condition: Condition,
    time: Duration,
    seed: u64,
    look: impl Fn() -> T,
) -> T {
    let mut guests = guests(running, condition, seed);
    let begun = Instant::now();
    while begun.elapsed() < time.min(WARM_UP) {
        go_round(&mut guests, condition, None);
    }
    look()
}

fn guests(running: &Running, condition: Condition, seed: u64) -> Vec<Guest> {
    (0..running.disks).map(|disk| Guest::connect(running, disk, condition, seed)).collect()
}

fn go_round(guests: &mut [Guest], condition: Condition, mut nanos: Option<&mut Histogram<u64>>) {
    let is_patient = guests.len() == 1;
    for guest in guests {
        guest.ask(condition);
        guest.hear(nanos.as_deref_mut(), is_patient);
    }
}
