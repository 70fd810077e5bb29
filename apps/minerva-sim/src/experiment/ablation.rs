//! What each mend of HTBS is good for: scenes in which a weakness of the original shows.

use super::client::{Client, Part, Promise};
use super::htbs::{mixed_tenants, sequential, with_options};
use minerva_blocksched::HtbsOptions;
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::{Pattern, Pause, Plan};
use minerva_sim_world::sweep;

/// Tenants that bring out some weakness.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// Who does what, for people.
    pub(crate) what: &'static str,
    clients: Vec<Client>,
}

/// How one setting fared in a scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fared {
    /// Seconds in which a promise was not kept, of all tenants.
    pub(crate) missed: usize,
    pub(crate) bytes_per_second: f64,
}

/// A mend in a scene: the original without and with it, ours with and without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) original: Fared,
    pub(crate) original_with: Fared,
    pub(crate) ours: Fared,
    pub(crate) ours_without: Fared,
}

impl Effect {
    /// How much of a difference it makes: seconds missed, and hundredths of the throughput.
    pub(crate) fn size(&self) -> f64 {
        difference(self.original, self.original_with) + difference(self.ours, self.ours_without)
    }
}

fn difference(one: Fared, other: Fared) -> f64 {
    let throughput = (one.bytes_per_second / other.bytes_per_second.max(1.0) - 1.0).abs();
    one.missed.abs_diff(other.missed) as f64 + 100.0 * throughput
}

struct Builder<'a> {
    profile: &'a Profile,
    seconds: usize,
}

impl Builder<'_> {
    fn reads(&self, place: usize) -> Plan {
        sequential(place, 4, self.profile.capacity_bytes, 65_536)
    }

    fn seeks(&self, place: usize) -> Plan {
        Plan { pattern: Pattern::Random, block_bytes: 4096, ..self.reads(place) }
    }

    /// A tenant that is promised `kb` KB in every second, judged from `judged_from` on.
    fn client(&self, name: &str, kb: u32, delay_ms: u64, parts: Vec<Part>, judged_from: usize) -> Client {
        Client {
            name: name.to_owned(),
            parts,
            bytes_per_second: f64::from(kb) * 1000.0,
            delay: Nanos::from_millis(delay_ms),
            promise: Promise::EverySecond,
            judged_s: (judged_from, self.seconds - 1),
        }
    }
}

fn part(from_s: u64, plan: Plan) -> Part {
    Part { from: Nanos::from_secs(from_s), plan }
}

fn until(second: u64, plan: Plan) -> Plan {
    Plan { ends_at: Some(Nanos::from_secs(second)), ..plan }
}

/// The scenes, for runs of so many seconds.
pub(crate) fn scenes(profile: &Profile, seconds: usize) -> Vec<Scene> {
    let of = Builder { profile, seconds };
    let half = seconds as u64 / 2;
    // Nobody waits for its writes, and it makes the next one after 6 ms, within T_wait.
    let writes = Plan {
        read_percent: 0,
        sync_writes: false,
        pause: Some(Pause { time: Nanos::from_millis(6), every: 1 }),
        ..of.reads(0)
    };
    let large = Plan { block_bytes: 512 * 1024, ..of.reads(0) };
    let small = Plan { block_bytes: 4096, ..of.reads(0) };
    let comes_and_goes = (0..seconds as u64 / 4).map(|n| part(4 * n, until(4 * n + 1, of.reads(0)))).collect();
    vec![
        Scene {
            name: "mixed",
            what: "steady; turns sequential; long idle; random",
            clients: mixed_tenants(profile, seconds),
        },
        Scene {
            name: "writer",
            what: "an asynchronous sequential writer that pauses; a reader; a random reader",
            clients: vec![
                of.client("writer", 1000, 200, vec![part(0, writes)], 2),
                of.client("reader", 8000, 200, vec![part(0, of.reads(1))], 2),
                of.client("random", 80, 200, vec![part(0, of.seeks(2))], 2),
            ],
        },
        Scene {
            name: "sizes",
            what: "requests of 512 KiB, later of 4 KiB, against a reader and a random reader",
            clients: vec![
                of.client("sizes", 2000, 200, vec![part(0, until(half, large)), part(half, small)], half as usize + 2),
                of.client("reader", 8000, 200, vec![part(0, of.reads(1))], 2),
                of.client("random", 80, 200, vec![part(0, of.seeks(2))], 2),
            ],
        },
        Scene {
            name: "alone first",
            what: "a reader has the disk alone until three others come",
            clients: vec![
                of.client("first", 4000, 200, vec![part(0, of.reads(0))], 1),
                of.client("second", 6000, 200, vec![part(half, of.reads(1))], half as usize + 2),
                of.client("third", 2000, 200, vec![part(half, of.reads(2))], half as usize + 2),
                of.client("random", 40, 200, vec![part(half, of.seeks(3))], half as usize + 2),
            ],
        },
        Scene {
            name: "bursts",
            what: "a tenant that reads one second in four; two readers; a random reader",
            clients: vec![
                // It asks for too short a time to be judged by the second.
                of.client("bursts", 16_000, 200, comes_and_goes, seconds),
                of.client("reader", 8000, 200, vec![part(0, of.reads(1))], 2),
                of.client("second", 4000, 200, vec![part(0, of.reads(2))], 2),
                of.client("random", 40, 200, vec![part(0, of.seeks(3))], 2),
            ],
        },
        Scene {
            name: "large share",
            what: "a reader that is promised 20 MB/s within half a second, and three of 2 MB/s",
            clients: vec![
                of.client("large", 20_000, 500, vec![part(0, of.reads(0))], 2),
                of.client("second", 2000, 500, vec![part(0, of.reads(1))], 2),
                of.client("third", 2000, 500, vec![part(0, of.reads(2))], 2),
                of.client("fourth", 2000, 500, vec![part(0, of.reads(3))], 2),
            ],
        },
    ]
}

/// Every mend in every scene, in the order of [`mends`] and of the scenes.
pub(crate) fn effects(
    profile: &Profile,
    scenes: &[Scene],
    seed: u64,
    seconds: usize,
    threads: usize,
) -> Vec<Vec<Effect>> {
    let mut settings = vec![HtbsOptions::original(), HtbsOptions::default()];
    for (_, take) in mends() {
        let (mut with, mut without) = (HtbsOptions::original(), HtbsOptions::default());
        take(&mut with, &HtbsOptions::default());
        take(&mut without, &HtbsOptions::original());
        settings.extend([with, without]);
    }
    let runs: Vec<(&Scene, HtbsOptions)> =
        scenes.iter().flat_map(|scene| settings.iter().map(move |options| (scene, *options))).collect();
    let fared = sweep(threads, &runs, |(scene, options)| {
        let outcome = with_options(profile, *options, &scene.clients, seed, seconds);
        Fared { missed: outcome.missed(), bytes_per_second: outcome.bytes_per_second }
    });
    let of = |mend: usize, scene: usize| {
        let fared = &fared[scene * settings.len()..];
        Effect {
            original: fared[0],
            original_with: fared[2 + 2 * mend],
            ours: fared[1],
            ours_without: fared[3 + 2 * mend],
        }
    };
    (0..mends().len()).map(|mend| (0..scenes.len()).map(|scene| of(mend, scene)).collect()).collect()
}

/// Takes one mend over from the second options into the first.
pub(crate) type Mend = fn(&mut HtbsOptions, &HtbsOptions);

/// The mends of the original, each by its name.
pub(crate) fn mends() -> Vec<(&'static str, Mend)> {
    vec![
        ("window instead of sticky test", |to, from| to.sequential = from.sequential),
        ("waits only for synchronous flows", |to, from| to.wait_for_sync_only = from.wait_for_sync_only),
        ("start tags not in the past", |to, from| to.start_not_past = from.start_not_past),
        ("bounded debt", |to, from| to.debt_seconds_max = from.debt_seconds_max),
        ("drift credited to buckets", |to, from| to.credit_drift = from.credit_drift),
        ("wait yields to what is due", |to, from| to.yield_to_due = from.yield_to_due),
        ("wait judged by measured think time", |to, from| to.wait_as_measured = from.wait_as_measured),
        ("turn covers the contract", |to, from| to.turn_covers_contract = from.turn_covers_contract),
        ("bucket by delay", |to, from| to.bucket_by_delay = from.bucket_by_delay),
        ("due by rate", |to, from| to.due_by_rate = from.due_by_rate),
        ("spare time", |to, from| to.spare = from.spare),
        ("cost by size", |to, from| (to.cost, to.turn_units_max) = (from.cost, from.turn_units_max)),
    ]
}
