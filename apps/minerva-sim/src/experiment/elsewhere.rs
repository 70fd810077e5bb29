//! HTBS where it was not tuned: other disks, layouts, sizes, delays, think times, numbers of contracts, writers, and tenants
//! without a contract that take what they can.

use super::client::{Client, Part, Promise};
use super::htbs::RATES_KB;
use crate::admit::judge;
use crate::scheduler::{HtbsArguments, Name};
use minerva_blocksched::{Class, Feasibility};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::job::{Amount, BoundJob, Terms};
use minerva_sim_workload::{Pattern, Pause, Plan};

/// Tenants on a disk.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) clients: Vec<Client>,
}

/// Where the files lie.
#[derive(Clone, Copy)]
enum Layout {
    /// At equal distances over the whole disk.
    Far,
    /// One beside the other at the inner edge, where the disk is slowest.
    Inner,
}

/// One kind of tenant.
#[derive(Clone, Copy)]
struct Kind {
    kb_per_second: u32,
    pattern: Pattern,
    read_percent: u8,
    block_bytes: u32,
    think: Nanos,
}

const READER: Kind = Kind {
    kb_per_second: 0,
    pattern: Pattern::Sequential,
    read_percent: 100,
    block_bytes: 65_536,
    think: Nanos::from_micros(50),
};
const WRITER: Kind = Kind { read_percent: 0, ..READER };
const SEEKER: Kind = Kind { pattern: Pattern::Random, block_bytes: 4096, ..READER };

/// The paper's rates for tenants of one kind.
fn four(kind: Kind) -> Vec<Kind> {
    RATES_KB.iter().map(|kb| Kind { kb_per_second: *kb, ..kind }).collect()
}

fn equal(count: u32, kb_per_second: u32, kind: Kind) -> Vec<Kind> {
    vec![Kind { kb_per_second: kb_per_second / count, ..kind }; count as usize]
}

struct Builder<'a> {
    profile: &'a Profile,
    seconds: usize,
}

impl Builder<'_> {
    fn case(&self, name: &str, layout: Layout, delay_ms: u64, kinds: &[Kind]) -> Case {
        let gib = 1 << 30;
        let count = kinds.len() as u64;
        let region_bytes = match layout {
            Layout::Far => self.profile.capacity_bytes / count / gib * gib,
            Layout::Inner => gib,
        };
        let first = match layout {
            Layout::Far => 0,
            Layout::Inner => (self.profile.capacity_bytes - count * gib) / gib * gib,
        };
        let client = |(place, kind): (usize, &Kind)| {
            let plan = Plan {
                pattern: kind.pattern,
                read_percent: kind.read_percent,
                block_bytes: kind.block_bytes,
                offset_bytes: first + region_bytes * place as u64,
                region_bytes: region_bytes.max(gib),
                pause: Some(Pause { time: kind.think, every: 1 }),
                ..Plan::default()
            };
            Client {
                name: format!("{place}: {} KB/s", kind.kb_per_second),
                parts: vec![Part { from: Nanos::ZERO, plan }],
                bytes_per_second: f64::from(kind.kb_per_second) * 1000.0,
                delay: Nanos::from_millis(delay_ms),
                promise: Promise::EverySecond,
                judged_s: (1, self.seconds - 1),
            }
        };
        let clients = kinds.iter().enumerate().map(client).collect();
        Case { name: format!("{}: {name}", self.profile.name), profile: self.profile.clone(), clients }
    }

    fn cases(&self) -> Vec<Case> {
        let with = |mut kinds: Vec<Kind>, more: &[Kind]| {
            kinds.extend(more);
            kinds
        };
        let readers = four(READER);
        let think = |micros| four(Kind { think: Nanos::from_micros(micros), ..READER });
        let size = |block_bytes| four(Kind { block_bytes, ..READER });
        let mixed: Vec<Kind> =
            readers.iter().enumerate().map(|(i, kind)| Kind { read_percent: [100, 0][i % 2], ..*kind }).collect();
        vec![
            self.case("files far apart", Layout::Far, 200, &readers),
            self.case("files near each other, at the inner edge", Layout::Inner, 200, &readers),
            self.case("delay 100 ms", Layout::Inner, 100, &readers),
            self.case("delay 500 ms", Layout::Far, 500, &readers),
            self.case("reads of 16 KiB", Layout::Inner, 200, &size(16_384)),
            self.case("reads of 1 MiB", Layout::Inner, 200, &size(1 << 20)),
            self.case("thinking 500 us", Layout::Inner, 200, &think(500)),
            self.case("thinking 2 ms", Layout::Inner, 400, &think(2000)),
            self.case("readers and writers", Layout::Inner, 200, &mixed),
            self.case("writers", Layout::Inner, 200, &four(WRITER)),
            self.case("8 readers", Layout::Inner, 300, &equal(8, 12_000, READER)),
            self.case("16 readers", Layout::Inner, 600, &equal(16, 12_000, READER)),
            self.case("two greedy readers beside", Layout::Inner, 200, &with(four(READER), &[READER; 2])),
            self.case("two greedy seekers beside", Layout::Inner, 200, &with(four(READER), &[SEEKER; 2])),
            self.case(
                "readers and a seeker of 100 KB/s",
                Layout::Inner,
                300,
                &with(equal(3, 9_000, READER), &[Kind { kb_per_second: 100, ..SEEKER }]),
            ),
            self.case(
                "three seekers of 80 KB/s and a greedy reader",
                Layout::Far,
                300,
                &with(vec![Kind { kb_per_second: 80, ..SEEKER }; 3], &[READER]),
            ),
        ]
    }
}

/// All of them, on both disks that seek.
pub(crate) fn cases(profiles: &[Profile], seconds: usize) -> Vec<Case> {
    profiles.iter().flat_map(|profile| Builder { profile, seconds }.cases()).collect()
}

impl Case {
    /// What the admission test says of it.
    pub(crate) fn feasibility(&self, name: Name, seed: u64) -> Option<Feasibility> {
        let job = |(index, client): (usize, &Client)| {
            let plan = client.parts.first().map(|part| part.plan).unwrap_or_default();
            let rate = Amount::Bytes(client.contract_rate() as u64);
            let burst = Amount::Bytes(u64::from(plan.block_bytes));
            let terms = Terms {
                weight: 100,
                class: Class::BestEffort,
                level: 4,
                contract: client.is_promised().then_some((rate, burst, client.delay)),
                reservation: None,
                limit: None,
                tag_default: 1,
                tag_max: 254,
            };
            BoundJob {
                name: client.name.clone(),
                tenant: index,
                terms,
                plan,
                seed,
                starts_at: Nanos::ZERO,
                ends_at: None,
            }
        };
        let jobs: Vec<BoundJob> = self.clients.iter().enumerate().map(job).collect();
        judge(&self.profile, &jobs, name, HtbsArguments::default(), seed).map(|judged| judged.admission.feasibility)
    }
}
