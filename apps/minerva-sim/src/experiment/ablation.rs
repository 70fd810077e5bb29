//! What each option of HTBS is good for: for each a scene in which the original's behaviour alone makes ours worse.

use super::client::{Client, Part, Promise};
use super::htbs::{mixed_tenants, sequential, with_options};
use minerva_blocksched::{HtbsOptions, WithinFlow};
use minerva_model::Nanos;
use minerva_sim_device::Profile;
use minerva_sim_workload::{Loop, Pattern, Pause, Plan};
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

/// What an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gain {
    /// Without it promises are missed.
    Promises,
    /// Without it the disk does less for the same promises.
    Throughput,
}

impl Gain {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Promises => "promises",
            Self::Throughput => "throughput",
        }
    }
}

/// An option of HTBS, and the scene in which it shows.
pub(crate) struct Mend {
    /// The field of [`HtbsOptions`].
    pub(crate) option: &'static str,
    /// The name of a scene.
    pub(crate) scene: &'static str,
    pub(crate) gain: Gain,
    /// Ours with it, and with the original's behaviour in its place.
    settings: fn(ours: HtbsOptions, original: HtbsOptions) -> [HtbsOptions; 2],
}

/// Ours with an option and without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) with: Fared,
    pub(crate) without: Fared,
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

    /// Reads in a row, with so many milliseconds from one to the next.
    fn thinks(&self, place: usize, block_bytes: u32, ms: u64) -> Plan {
        let pause = Some(Pause { time: Nanos::from_millis(ms), every: 1 });
        Plan { block_bytes, pause, ..self.reads(place) }
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
    changing(&of).into_iter().chain(asking_otherwise(&of)).chain([greedy(&of)]).collect()
}

/// Tenants that turn to something else, come late or pause.
fn changing(of: &Builder<'_>) -> Vec<Scene> {
    let seconds = of.seconds;
    let half = seconds as u64 / 2;
    // Nobody waits for its writes, and it makes the next one after 6 ms, within T_wait.
    let writes = Plan { read_percent: 0, sync_writes: false, ..of.thinks(0, 65_536, 6) };
    let large = Plan { block_bytes: 512 * 1024, ..of.reads(0) };
    let small = Plan { block_bytes: 4096, ..of.reads(0) };
    let comes_and_goes = (0..seconds as u64 / 4).map(|n| part(4 * n, until(4 * n + 1, of.reads(0)))).collect();
    vec![
        Scene {
            name: "mixed",
            what: "steady; turns sequential; long idle; random",
            clients: mixed_tenants(of.profile, seconds),
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
    ]
}

/// A tenant without a contract beside three that have small ones and take all that they can get.
fn greedy(of: &Builder<'_>) -> Scene {
    let clients = beside_greedy(of, 3, of.seeks(3));
    Scene {
        name: "greedy",
        what: "three readers that are promised 3 MB/s and take all they can get; a random reader without a contract, to get something",
        clients,
    }
}

/// Some readers that take all they can get, and a tenant without a contract.
fn beside_greedy(of: &Builder<'_>, readers: usize, plan: Plan) -> Vec<Client> {
    let reader = |place: usize| of.client(&format!("reader {place}"), 3000, 200, vec![part(0, of.reads(place))], 2);
    let without = of.client("without", 0, 200, vec![part(0, plan)], 2);
    (0..readers).map(reader).chain([Client { promise: Promise::Something, ..without }]).collect()
}

/// The part of the bytes that a reader without a contract gets beside so many greedy ones that have one; and the seconds missed.
#[cfg(test)]
pub(crate) fn part_beside_greedy(profile: &Profile, readers: usize, seed: u64, seconds: usize) -> (f64, usize) {
    let of = Builder { profile, seconds };
    let clients = beside_greedy(&of, readers, of.reads(readers));
    let outcome = with_options(profile, HtbsOptions::default(), &clients, seed, seconds);
    let bytes = outcome.records.last().map_or(0.0, |record| record.mean_bytes);
    (bytes / outcome.bytes_per_second, outcome.missed())
}

/// Tenants with several requests on their way, large ones, long thoughts, or places in common.
fn asking_otherwise(of: &Builder<'_>) -> Vec<Scene> {
    every_two_seconds(of).into_iter().chain(thinking(of)).chain(large_shared_or_many(of)).collect()
}

/// Tenants that ask for something every two seconds.
fn every_two_seconds(of: &Builder<'_>) -> [Scene; 2] {
    let seconds = of.seconds;
    let at_ms = |ms, plan| Part { from: Nanos::from_millis(ms), plan };
    let every_2_s = || (0..seconds as u64 / 2).map(|n| 2000 * n);
    let once = Plan { block_bytes: 1 << 20, total_bytes: Some(1 << 20), ..of.seeks(0) };
    let large_then_small = every_2_s()
        .flat_map(|ms| {
            let ends_at = Some(Nanos::from_millis(ms + 2000));
            [at_ms(ms, once), at_ms(ms + 500, Plan { block_bytes: 16_384, ends_at, ..of.seeks(0) })]
        })
        .collect();
    let bursts = every_2_s()
        .map(|ms| {
            let ends_at = Some(Nanos::from_millis(ms + 250));
            at_ms(ms, deep(32, Plan { total_bytes: Some(2 << 20), ends_at, ..of.reads(0) }))
        })
        .collect();
    [
        Scene {
            name: "large, then small",
            what: "one large read and, half a second of silence later, small ones at random; a reader",
            clients: vec![
                of.client("large, then small", 320, 200, large_then_small, seconds),
                of.client("reader", 4000, 500, vec![part(0, of.reads(1))], 2),
            ],
        },
        Scene {
            name: "deep queue",
            what: "a tenant that asks for 2 MiB at once every two seconds; a random reader; a reader",
            clients: vec![
                of.client("deep queue", 300, 100, bursts, seconds),
                of.client("random", 160, 100, vec![part(0, of.seeks(1))], 2),
                of.client("reader", 2000, 300, vec![part(0, of.reads(2))], 2),
            ],
        },
    ]
}

/// Tenants that think between requests.
fn thinking(of: &Builder<'_>) -> [Scene; 2] {
    let seconds = of.seconds;
    let four = deep(4, Plan { block_bytes: 16_384, ..of.reads(1) });
    [
        // Those that think this long do not ask all the time, so they are not judged by the second.
        Scene {
            name: "thinks long",
            what: "a reader that thinks for 12 ms; a random reader; a reader without a promise",
            clients: vec![
                of.client("thinks long", 500, 200, vec![part(0, of.thinks(0, 16_384, 12))], seconds),
                of.client("random", 80, 200, vec![part(0, of.seeks(1))], 2),
                of.client("reader", 0, 200, vec![part(0, of.reads(2))], 2),
            ],
        },
        Scene {
            name: "thinks",
            what: "a reader that thinks for 8 ms; one that has four requests on their way",
            clients: vec![
                of.client("thinks", 1500, 300, vec![part(0, of.thinks(0, 16_384, 8))], seconds),
                of.client("four", 8000, 500, vec![part(0, four)], 2),
            ],
        },
    ]
}

/// Tenants with large requests, places in common, or many requests at a time.
fn large_shared_or_many(of: &Builder<'_>) -> [Scene; 3] {
    let large = Plan { block_bytes: 512 * 1024, ..of.reads(0) };
    let batches = Plan { when: Loop::Closed { depth: 32 }, ..of.seeks(0) };
    [
        Scene {
            name: "large share",
            what: "a reader that is promised 20 MB/s within half a second; a random reader",
            clients: vec![
                of.client("large share", 20_000, 500, vec![part(0, deep(4, large))], 2),
                of.client("random", 40, 500, vec![part(0, of.seeks(1))], 2),
            ],
        },
        Scene {
            name: "one image",
            what: "two machines that read the same image one behind the other and think for 5 ms",
            clients: vec![
                of.client("first", 1000, 200, vec![part(0, of.thinks(0, 65_536, 5))], 2),
                of.client("second", 1000, 200, vec![part(0, of.thinks(0, 65_536, 5))], 2),
            ],
        },
        Scene {
            name: "batches",
            what: "a tenant that makes 32 random reads at a time and waits for all of them; a reader",
            clients: vec![
                of.client("batches", 200, 500, vec![part(0, batches)], 2),
                of.client("reader", 2000, 500, vec![part(0, of.reads(1))], 2),
            ],
        },
    ]
}

/// A plan with `depth` requests on their way.
fn deep(depth: u32, plan: Plan) -> Plan {
    Plan { when: Loop::Closed { depth }, pause: None, ..plan }
}

/// Every option in its scene, in the order of [`mends`].
pub(crate) fn effects(profile: &Profile, seed: u64, seconds: usize, threads: usize) -> Vec<Effect> {
    let scenes = scenes(profile, seconds);
    sweep(threads, &mends(), |mend| {
        let clients = scenes.iter().find(|scene| scene.name == mend.scene).map_or(&[][..], |scene| &scene.clients);
        let settings = (mend.settings)(HtbsOptions::default(), HtbsOptions::original());
        let [with, without] = settings.map(|options| {
            let outcome = with_options(profile, options, clients, seed, seconds);
            Fared { missed: outcome.missed(), bytes_per_second: outcome.bytes_per_second }
        });
        Effect { with, without }
    })
}

/// Every option that differs from the original or can, by the name of its field.
pub(crate) fn mends() -> Vec<Mend> {
    macro_rules! mend {
        ($($option:ident),+; $scene:literal, $gain:ident) => {
            Mend {
                option: stringify!($($option),+),
                scene: $scene,
                gain: Gain::$gain,
                settings: |ours, original| [ours, HtbsOptions { $($option: original.$option),+, ..ours }],
            }
        };
    }
    vec![
        mend!(sequential; "mixed", Promises),
        mend!(wait_for_sync_only; "writer", Throughput),
        mend!(start_not_past; "large, then small", Throughput),
        mend!(debt_seconds_max; "deep queue", Throughput),
        mend!(credit_drift; "mixed", Promises),
        mend!(yield_to_due; "thinks", Throughput),
        mend!(wait_as_measured; "thinks long", Throughput),
        mend!(turn_covers_contract; "large share", Throughput),
        mend!(bucket_by_delay; "bursts", Promises),
        mend!(due_by_rate; "alone first", Promises),
        mend!(spare; "bursts", Throughput),
        mend!(equal_parts; "greedy", Promises),
        mend!(cost, turn_units_max; "sizes", Promises),
        Mend {
            option: "close_bytes",
            scene: "one image",
            gain: Gain::Throughput,
            settings: |ours, _| [HtbsOptions { close_bytes: 1 << 20, ..ours }, ours],
        },
        Mend {
            option: "within_flow",
            scene: "batches",
            gain: Gain::Throughput,
            settings: |ours, _| [HtbsOptions { within_flow: WithinFlow::Sweep { window: 32 }, ..ours }, ours],
        },
    ]
}
