//! Rocha and Bona 2012: guarantees to synchronous jobs, and what they cost in throughput.

use super::client::{Client, GuaranteeRecord, Part, Promise, is_rotational, judge, run};
use crate::scheduler::Name;
use minerva_blocksched::{BuildOptions, Htbs, HtbsOptions};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::{Pattern, Pause, Plan};

/// The paper's four jobs, in KB/s.
pub(crate) const RATES_KB: [u32; 4] = [8800, 4000, 2000, 800];
/// How long a synchronous process takes to ask again: a system call and a switch of context.
const TURNAROUND: Nanos = Nanos::from_micros(50);
const GIB: u64 = 1 << 30;

pub(crate) fn sequential(place: usize, places: usize, capacity_bytes: u64, block_bytes: u32) -> Plan {
    // Files lie at equal distances over the outer half of the disk, as on a young file system.
    let distance = capacity_bytes / 2 / places as u64 / GIB.min(capacity_bytes) * GIB.min(capacity_bytes);
    let distance = if distance == 0 { capacity_bytes / 2 / places as u64 / 4096 * 4096 } else { distance };
    Plan {
        pattern: Pattern::Sequential,
        block_bytes,
        offset_bytes: distance * place as u64,
        region_bytes: distance,
        pause: Some(Pause { time: TURNAROUND, every: 1 }),
        ..Plan::default()
    }
}

/// Four sequential readers that ask for all they can get.
pub(crate) fn four_jobs(profile: &Profile, block_bytes: u32, delay: Nanos, seconds: usize) -> Vec<Client> {
    let client = |(place, kb): (usize, &u32)| Client {
        name: format!("{kb} KB/s"),
        parts: vec![Part { from: Nanos::ZERO, plan: sequential(place, 4, profile.capacity_bytes, block_bytes) }],
        bytes_per_second: f64::from(*kb) * 1000.0,
        delay,
        promise: Promise::EverySecond,
        judged_s: (1, seconds - 1),
    };
    RATES_KB.iter().enumerate().map(client).collect()
}

/// What `count` equal readers are promised together.
pub(crate) const READERS_BYTES_PER_SECOND: f64 = 8e6;

/// The delay that `count` readers ask for. A round of turns long enough not to waste the disk takes 150 ms a reader; a
/// promise for every second would cap the round at a second and cost sixteen readers a tenth of the disk.
pub(crate) fn readers_delay(count: usize) -> Nanos {
    Nanos::from_millis(150 * count as u64)
}

/// `count` sequential readers that ask for all they can get, with equal guarantees.
pub(crate) fn equal_readers(profile: &Profile, count: usize, seconds: usize) -> Vec<Client> {
    let client = |place: usize| Client {
        name: format!("reader {place}"),
        parts: vec![Part { from: Nanos::ZERO, plan: sequential(place, count, profile.capacity_bytes, 65_536) }],
        bytes_per_second: READERS_BYTES_PER_SECOND / count as f64,
        delay: readers_delay(count),
        promise: Promise::ServiceCurve,
        judged_s: (1, seconds - 1),
    };
    (0..count).map(client).collect()
}

/// The result of one scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) scheduler: Name,
    pub(crate) bytes_per_second: f64,
    pub(crate) records: Vec<GuaranteeRecord>,
}

impl Outcome {
    /// Intervals in which a promise was not kept, of all clients.
    pub(crate) fn missed(&self) -> usize {
        self.records.iter().map(|record| record.missed).sum()
    }

    /// Intervals that were looked at.
    pub(crate) fn intervals(&self) -> usize {
        self.records.iter().map(|record| record.intervals).sum()
    }

    /// Clients whose promise was not kept.
    pub(crate) fn jobs_missed(&self) -> usize {
        self.records.iter().filter(|record| record.missed > 0).count()
    }
}

/// Runs clients under a scheduler by name.
pub(crate) fn outcome(profile: &Profile, name: Name, clients: &[Client], seed: u64, seconds: usize) -> Outcome {
    let host = name.build(BuildOptions::for_disk(is_rotational(profile), 1));
    let report = run(profile, name, host, clients, seed, Nanos::from_secs(seconds as u64));
    let records = judge(&report, clients);
    Outcome { scheduler: name, bytes_per_second: report.bytes_per_second, records }
}

/// Runs clients under HTBS with these options.
pub(crate) fn with_options(
    profile: &Profile,
    options: HtbsOptions,
    clients: &[Client],
    seed: u64,
    seconds: usize,
) -> Outcome {
    let name = if options.cost == minerva_blocksched::Cost::PerRequest { Name::HtbsOriginal } else { Name::Htbs };
    let report = run(profile, name, Box::new(Htbs::new(options)), clients, seed, Nanos::from_secs(seconds as u64));
    let records = judge(&report, clients);
    Outcome { scheduler: name, bytes_per_second: report.bytes_per_second, records }
}

/// A configuration in which each weakness of the original shows: a steady sequential tenant; one that reads at random until
/// second 3 and sequentially from then on; one that had the disk for itself, was silent for long and comes back; and one
/// that reads at random and synchronously all the time.
pub(crate) fn mixed_tenants(profile: &Profile, seconds: usize) -> Vec<Client> {
    let delay = Nanos::from_millis(200);
    let at = |place| sequential(place, 4, profile.capacity_bytes, 65_536);
    let random = |place| Plan { pattern: Pattern::Random, block_bytes: 4096, ..at(place) };
    let part = |from_s, plan| Part { from: Nanos::from_secs(from_s), plan };
    let ends = |second, plan| Plan { ends_at: Some(Nanos::from_secs(second)), ..plan };
    let client = |name: &str, parts: Vec<Part>, kb: u32, judged_s| Client {
        name: name.to_owned(),
        parts,
        bytes_per_second: f64::from(kb) * 1000.0,
        delay,
        promise: Promise::EverySecond,
        judged_s,
    };
    vec![
        client("steady", vec![part(5, at(0))], 6000, (7, seconds - 1)),
        client("turns sequential", vec![part(5, ends(8, random(1))), part(8, at(1))], 4000, (10, seconds - 1)),
        client("long idle", vec![part(0, ends(5, at(2))), part(20, at(2))], 2000, (22, seconds - 1)),
        client("random", vec![part(5, random(3))], 40, (7, seconds - 1)),
    ]
}
