//! Who holds the disk: two scanners and somebody who reads at random, with the engine in the loop, by what it counts as use
//! (docs/adr/0015).

use crate::experiment::client::is_rotational;
use crate::output::Line;
use minerva_blocksched::{Bfq, BfqOptions, FlowParameters};
use minerva_model::{CountedUse, EngineConfig, Nanos};
use minerva_sim_device::Profile;
use minerva_sim_workload::{Generator, Loop, Pattern, Pause, Plan};
use minerva_sim_world::{EngineSetup, OutlookSource, ProcessSetup, TenantSetup, World, WorldSetup};

/// The scanners are at it for so long when the reader comes.
const ARRIVES: Nanos = Nanos::from_secs(30);
const WINDOW: Nanos = Nanos::from_secs(6);
const SCANNERS: usize = 2;
/// Requests at a disk without arms at once.
const DEPTH: u32 = 8;

/// What is counted as use; nothing for equal weights without an engine.
pub(crate) type Arm = Option<CountedUse>;

/// Who reads at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) block_bytes: u32,
    pub(crate) depth: u32,
    /// What it does between two requests.
    pub(crate) think: Nanos,
}

/// What was had in six seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The reader's part of the disk's time.
    pub(crate) part: f64,
    /// The reader's requests a second.
    pub(crate) requests_per_second: f64,
    /// Bytes a second of the scanners together.
    pub(crate) scanned_per_second: f64,
}

/// So many windows from the reader's arrival on.
pub(crate) fn run(profile: &Profile, arm: Arm, reader: Reader, windows: u64, seed: u64) -> Vec<Window> {
    let mut world = world(profile, arm, reader, seed);
    world.run(ARRIVES);
    let look = |world: &World| {
        let scanned: u64 = (1..=SCANNERS).map(|scanner| world.bytes(scanner)).sum();
        (world.disk_time(0).as_secs_f64(), world.bytes(0) as f64, scanned as f64)
    };
    let mut before = look(&world);
    let seconds = WINDOW.as_secs_f64();
    let window = |number: u64| {
        world.run(ARRIVES + Nanos(WINDOW.0 * number));
        let after = look(&world);
        let (time, read, scanned) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
        before = after;
        Window {
            part: time / seconds,
            requests_per_second: read / f64::from(reader.block_bytes) / seconds,
            scanned_per_second: scanned / seconds,
        }
    };
    (1..=windows).map(window).collect()
}

const ARMS: [Arm; 3] = [None, Some(CountedUse::Bytes), Some(CountedUse::DiskTime)];
const SEEDS: u64 = 5;
/// Four minutes, of which the last two are looked at, and 36 seconds.
const LONG: (u64, usize) = (40, 20);
const SHORT: (u64, usize) = (6, 0);

/// What equal weights, bytes and disk time give to readers at random and leave to two scanners. The worst of five seeds is judged.
pub(crate) fn figure(profiles: &[Profile]) -> Vec<Line> {
    let reader = |block_bytes, depth, think_ms| Reader { block_bytes, depth, think: Nanos::from_millis(think_ms) };
    let mut lines = Vec::new();
    for profile in profiles {
        lines.push(hostile_line(profile));
        let cases = [
            ("a database (8 KiB at random, one at a time) that lasts 36 s", reader(8192, 1, 0), SHORT),
            ("one that thinks 40 ms, third and fourth minute", reader(8192, 1, 40), LONG),
        ];
        for (what, reader, span) in cases {
            let rates = figures(profile, reader, span, |window| window.requests_per_second);
            let of_bytes =
                rates[2].iter().zip(&rates[1]).map(|(time, bytes)| time / bytes).fold(f64::INFINITY, f64::min);
            lines.push(Line {
                id: "disk-time",
                value: of_bytes,
                unit: "of its requests by bytes",
                goal: "at least 0.95".to_owned(),
                met: of_bytes >= 0.95,
                detail: format!(
                    "{}: {what}; requests a second: equal weights {}, by bytes {}, by disk time {}",
                    profile.name,
                    range(&rates[0]),
                    range(&rates[1]),
                    range(&rates[2])
                ),
            });
        }
    }
    lines
}

fn hostile_line(profile: &Profile) -> Line {
    let hostile = Reader { block_bytes: 4096, depth: 32, think: Nanos::ZERO };
    let part = figures(profile, hostile, LONG, |window| 100.0 * window.part);
    let scanned = figures(profile, hostile, LONG, |window| window.scanned_per_second / 1e6);
    let worst = part[2].iter().copied().fold(0.0, f64::max);
    Line {
        id: "disk-time",
        value: worst,
        unit: "% of the disk's time",
        goal: "at most 50, one and a half equal parts".to_owned(),
        met: worst <= 50.0,
        detail: format!(
            "{}: a hostile reader (4 KiB at random, 32 at once), third and fourth minute; with equal weights {}, by bytes {}; \
             the scanners' MB/s together: {}, {} and {}",
            profile.name,
            range(&part[0]),
            range(&part[1]),
            range(&scanned[0]),
            range(&scanned[1]),
            range(&scanned[2])
        ),
    }
}

/// By arm, then seed: the mean over the windows that are looked at.
fn figures(profile: &Profile, reader: Reader, (count, from): (u64, usize), of: fn(&Window) -> f64) -> Vec<Vec<f64>> {
    let mean = |windows: &[Window]| windows.iter().map(of).sum::<f64>() / windows.len() as f64;
    let seeds = |arm: &Arm| (1..=SEEDS).map(|seed| mean(&run(profile, *arm, reader, count, seed)[from..])).collect();
    ARMS.iter().map(seeds).collect()
}

fn range(values: &[f64]) -> String {
    let (least, most) =
        values.iter().fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)));
    format!("{least:.1} to {most:.1}")
}

fn world(profile: &Profile, arm: Arm, reader: Reader, seed: u64) -> World {
    let region = (profile.capacity_bytes / (SCANNERS as u64 + 1)) >> 20 << 20;
    let random = Plan {
        pattern: Pattern::Random,
        when: Loop::Closed { depth: reader.depth },
        block_bytes: reader.block_bytes,
        pause: (reader.think > Nanos::ZERO).then_some(Pause { time: reader.think, every: 1 }),
        ..Plan::default()
    };
    let scan = Plan { block_bytes: 256 << 10, when: Loop::Closed { depth: 4 }, ..Plan::default() };
    let plans = std::iter::once((random, ARRIVES)).chain(std::iter::repeat_n((scan, Nanos::ZERO), SCANNERS));
    let processes = plans.enumerate().map(|(index, (plan, starts_at))| ProcessSetup {
        name: format!("process {index}"),
        tenant: index,
        source: Box::new(Generator::new(
            Plan { offset_bytes: region * index as u64, region_bytes: region, ..plan },
            seed << 8 | index as u64,
        )),
        starts_at,
        parameters: FlowParameters::default(),
        promise: None,
    });
    let rotational = is_rotational(profile);
    let engine = arm.map(|counted| {
        let mut config = EngineConfig::default();
        config.fennel.counted = counted;
        EngineSetup { config, rotational, outlook: OutlookSource::default() }
    });
    World::new(WorldSetup {
        device: profile.build(None, seed),
        host: Box::new(Bfq::new(BfqOptions { rotational, ..BfqOptions::default() })),
        // One request at a time on a disk with arms, so that each tenant's time is known exactly.
        depth: if rotational { 1 } else { profile.queue_depth.min(DEPTH) },
        tenants: (0..=SCANNERS)
            .map(|number| TenantSetup { name: format!("tenant {number}"), weight: 100, guest: None })
            .collect(),
        processes: processes.collect(),
        engine,
        bin: Nanos::SECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::{Arm, Reader, Window, run};
    use crate::figure::built_in;
    use minerva_model::{CountedUse, Nanos};

    const HOSTILE: Reader = Reader { block_bytes: 4096, depth: 32, think: Nanos::ZERO };
    const DATABASE: Reader = Reader { block_bytes: 8192, depth: 1, think: Nanos::ZERO };

    fn windows(profile: &str, arm: Arm, reader: Reader, count: u64, seed: u64) -> Vec<Window> {
        run(&built_in(profile).expect("built in"), arm, reader, count, seed)
    }

    fn mean(windows: &[Window], of: fn(&Window) -> f64) -> f64 {
        windows.iter().map(of).sum::<f64>() / windows.len() as f64
    }

    #[test]
    fn nobody_holds_the_disk_for_ever_by_reading_little_at_random() {
        for (profile, seed) in [("sata7200-80g", 1), ("sata7200-80g", 2), ("sas10k-300g", 1)] {
            let last = |arm| windows(profile, arm, HOSTILE, 40, seed).split_off(20);
            let [equal, bytes, time] = [None, Some(CountedUse::Bytes), Some(CountedUse::DiskTime)].map(last);
            assert!(mean(&bytes, |window| window.part) > 0.75, "by its bytes it holds the disk: {profile}");
            let (part, fair) = (mean(&time, |window| window.part), mean(&equal, |window| window.part));
            assert!(part < 0.5 && part > 0.8 * fair, "{part} of {profile}, {fair} with equal weights");
        }
    }

    #[test]
    fn a_database_that_is_done_within_half_a_minute_is_not_held_back() {
        for seed in 1..=3 {
            let of = |arm| windows("sata7200-80g", arm, DATABASE, 5, seed);
            let (bytes, time) = (of(Some(CountedUse::Bytes)), of(Some(CountedUse::DiskTime)));
            for (bytes, time) in bytes.iter().zip(&time) {
                assert!(time.requests_per_second > 0.95 * bytes.requests_per_second, "{bytes:?} {time:?}");
            }
        }
    }

    #[test]
    fn a_database_that_asks_for_less_than_an_equal_part_gets_it_for_ever() {
        let reader = Reader { think: Nanos::from_millis(40), ..DATABASE };
        let of = |arm| mean(&windows("sata7200-80g", arm, reader, 40, 1), |window| window.requests_per_second);
        let (bytes, time) = (of(Some(CountedUse::Bytes)), of(Some(CountedUse::DiskTime)));
        assert!(time > 0.97 * bytes, "{time} of {bytes}");
    }
}
