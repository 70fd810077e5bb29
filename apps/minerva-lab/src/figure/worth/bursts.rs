//! Malensek et al. 2016, Fig. 3-d against 3-e, on the real kernel: a tenant that reads files and computes their checksums, and one that
//! processes what it received and writes it. Both alternate between the disk and other work.

use super::arms::Arm;
use super::judge::{Bars, Spread, at_least, goal, spread};
use super::play::{Book, Played, Which, tell};
use crate::figure::Line;
use crate::worth_cli::RunsArguments;
use minerva_lab::scene::{RunResult, Scene, Series, Stage, TenantPlan, run_scene};
use minerva_lab::workload::{Access, Appearance, Compute, Rests};
use minerva_model::Nanos;
use std::fmt::Write as _;

pub(super) const SCENE: &str = "interleave";
/// What the paper says.
pub(super) const PAPER: &str =
    "reads and writes are interleaved: the disk is seldom idle, and both have equal parts. No figures are published.";
const BLOCK_BYTES: u32 = 128 << 10;
/// For so long it is measured how fast each is alone.
const ALONE: Nanos = Nanos::from_secs(4);
/// Lengths of a burst alone, in seconds; of the pause after it, as parts of that; and how far both vary, in thousandths.
const BURST_S: (f64, f64) = (3.0, 7.0);
const PAUSE_PARTS: (f64, f64) = (0.8, 1.4);
const JITTER_PERMILLE_MAX: u32 = 100;

/// Plays what is not there yet.
pub(super) fn play(book: &mut Book, arguments: &RunsArguments, seconds: u64, stage: &Stage<'_>) -> anyhow::Result<()> {
    let wanted = |arm: &Arm| arguments.arm.is_empty() || arguments.arm.iter().any(|name| name == arm.name());
    let arms: Vec<Arm> = Arm::OF_BURSTS.into_iter().filter(wanted).collect();
    for pair in book.pairs(arguments.pairs) {
        let like = format!("{seconds}s");
        let which = Which { scene: SCENE, profile: stage.profile, like: &like, pair };
        for arm in book.open_arms(which, &arms) {
            if !book.take_one() {
                return Ok(());
            }
            let scene = scene(alone_of_pair(book, which, stage)?, seconds, pair);
            let run = run_scene(&scene, arm.steering(&book.daemon, None).as_ref(), stage, &mut |_| ())?;
            tell(stage, which, arm, &run);
            let rates = compared(&run, seconds as f64);
            let disk = rates.iter().sum();
            let together = at_work(&run.series, seconds as f64, &scene);
            book.enter(which, arm, rates.into_iter().chain(together).collect(), disk)?;
        }
    }
    Ok(())
}

/// Bytes a second that each gets alone: measured once, so that all arms of a pair play the same scene.
fn alone_of_pair(book: &mut Book, which: Which<'_>, stage: &Stage<'_>) -> anyhow::Result<[f64; 2]> {
    if let Some([reader, writer]) = book.alone(which) {
        return Ok([*reader, *writer]);
    }
    let rates = [alone(0, stage)?, alone(1, stage)?];
    book.enter_alone(which, rates.to_vec())?;
    Ok(rates)
}

/// Bytes a second that one gets of the disk alone.
fn alone(tenant: usize, stage: &Stage<'_>) -> anyhow::Result<f64> {
    let plan = TenantPlan { lasts: Some(ALONE), rests: None, ..plan(tenant, 1.0, 0.0, 0, 1) };
    let scene = Scene { name: "alone".to_owned(), title: String::new(), scale: 1.0, tenants: vec![plan] };
    let run = run_scene(&scene, &minerva_lab::scene::Equal, stage, &mut |_| ())?;
    Ok(run.tenants[0].mb_per_s * 1e6)
}

fn plan(tenant: usize, burst_bytes: f64, pause_s: f64, jitter_permille: u32, seed: u64) -> TenantPlan {
    let (name, description, access) = [
        ("checksums", "reads and computes", Access::SequentialRead),
        ("storage-node", "processes and writes", Access::SequentialWrite),
    ][tenant];
    TenantPlan {
        name: name.to_owned(),
        description: description.to_owned(),
        // All of its half: it begins again at its end.
        bytes: 30_000_000_000 / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES),
        block_bytes: BLOCK_BYTES,
        access,
        depth: 1,
        compute: Compute::Nothing,
        region: tenant as f64 * 0.5,
        region_bytes: None,
        starts_at: Nanos::ZERO,
        lasts: None,
        rests: Some(Rests { burst_bytes: burst_bytes as u64, pause: Nanos((pause_s * 1e9) as u64), jitter_permille }),
        appearance: Appearance::default(),
        seed: seed << 1 | tenant as u64,
        part: None,
    }
}

/// Cycles are drawn; a burst takes as long for both, alone.
fn scene(alone: [f64; 2], seconds: u64, seed: u64) -> Scene {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut between = |(least, most): (f64, f64)| least + (most - least) * random.f64();
    let burst_s = between(BURST_S);
    let pause_s = burst_s * between(PAUSE_PARTS);
    let jitter = random.u32(0..=JITTER_PERMILLE_MAX);
    let tenant = |index: usize| TenantPlan {
        lasts: Some(Nanos::from_secs(2 * seconds)),
        ..plan(index, burst_s * alone[index], pause_s, jitter, seed)
    };
    let title = format!("Bursts of {burst_s:.1} s and pauses of {pause_s:.1} s, +-{:.1} %", f64::from(jitter) / 10.0);
    Scene { name: SCENE.to_owned(), title, scale: 1.0, tenants: vec![tenant(0), tenant(1)] }
}

/// Megabytes a second of each in the second half.
fn compared(run: &RunResult, from_s: f64) -> Vec<f64> {
    let skipped = (from_s / run.series.bin_s) as usize;
    let mean = |rates: &Vec<f64>| {
        let bins = rates.iter().skip(skipped).count().max(1);
        rates.iter().skip(skipped).sum::<f64>() / bins as f64
    };
    run.series.mb_per_s.iter().map(mean).collect()
}

/// Megabytes a second of each in the second half while both are at work. Who has less than a request in each bin for half a pause and longer
/// rests, and so is at the ends of that; who has nothing for a shorter while is starved and at work.
fn at_work(series: &Series, from_s: f64, scene: &Scene) -> Vec<f64> {
    let rests = |(plan, rates): (&TenantPlan, &Vec<f64>)| {
        let pause_s = plan.rests.map_or(0.0, |rests| rests.pause.as_secs_f64());
        resting(rates, f64::from(BLOCK_BYTES) / 1e6 / series.bin_s, ((pause_s / 2.0 / series.bin_s) as usize).max(1))
    };
    let rests: Vec<Vec<bool>> = scene.tenants.iter().zip(&series.mb_per_s).map(rests).collect();
    let bins = rests.iter().map(Vec::len).min().unwrap_or(0);
    let first = (from_s / series.bin_s) as usize;
    let both: Vec<usize> = (first..bins).filter(|bin| rests.iter().all(|rests| !rests[*bin])).collect();
    let mean = |rates: &Vec<f64>| both.iter().map(|bin| rates[*bin]).sum::<f64>() / both.len().max(1) as f64;
    series.mb_per_s.iter().map(mean).collect()
}

/// In which bins one rests, or begins or ends to: those of whom so many in a row or more have less than this, and those beside them.
fn resting(rates: &[f64], rate_min: f64, row_min: usize) -> Vec<bool> {
    let mut rests = vec![false; rates.len()];
    let mut from = 0;
    for run in rates.chunk_by(|one, other| (*one < rate_min) == (*other < rate_min)) {
        let until = from + run.len();
        if run[0] < rate_min && run.len() >= row_min {
            rests[from.saturating_sub(1)..(until + 1).min(rates.len())].fill(true);
        }
        from = until;
    }
    rests
}

fn compare(
    book: &Book,
    profile: &str,
    [ours, against]: [Arm; 2],
    value: impl Fn([&Played; 2]) -> Option<f64>,
) -> Option<Spread> {
    let runs = |arm: Arm| {
        let is = move |run: &&Played| run.scene == SCENE && run.profile == profile && run.arm == arm.name();
        book.played.iter().filter(is)
    };
    let beside = |run: &Played| {
        let other = runs(against).find(|other| (other.pair, &other.like) == (run.pair, &run.like))?;
        value([run, other])
    };
    spread(runs(ours).filter_map(beside))
}

/// What came of it on one disk, with the goals.
pub(super) fn lines(book: &Book, profile: &str) -> Vec<Line> {
    let arms = [Arm::Forecasts, Arm::Equal];
    let more =
        |of: fn(&Played) -> f64| compare(book, profile, arms, |[ours, equal]| Some(100.0 * of(ours) / of(equal)));
    let mut lines = Vec::new();
    let whole = "whole disk, of what equal weights gave";
    lines.push(at_least(more(|run| run.disk_mb_per_s), 110.0, format!("{profile}, bursts, {whole}")));
    for (name, of) in [("reader", (|run| run.values[0]) as fn(&Played) -> f64), ("writer", |run| run.values[1])] {
        let what = format!("{profile}, bursts, the {name}, of what equal weights gave it");
        lines.push(at_least(more(of), 100.0, what));
    }
    let apart = compare(book, profile, [Arm::Forecasts; 2], |[run, _]| apart(&run.values));
    let what = format!("{profile}, bursts, how far the parts are from equal while both are at work");
    let line = goal(apart, 10.0, what);
    lines.push(Line { unit: "%", ..line });
    lines
}

/// How far the parts are from equal while both are at work, in percent; none where that was not told, or they never are.
fn apart(values: &[f64]) -> Option<f64> {
    let [_, _, reader, writer] = *values else { return None };
    (reader + writer > 0.0).then(|| 100.0 * (2.0 * reader / (reader + writer) - 1.0).abs())
}

/// Medians under each arm.
pub(super) fn table(book: &Book, profile: &str) -> String {
    let mut text = String::from("  MB/s of the reader, the writer and the disk, runs\n");
    for arm in Arm::OF_BURSTS {
        let of = |value: fn(&Played) -> f64| compare(book, profile, [arm; 2], |[run, _]| Some(value(run)));
        let all = (of(|run| run.values[0]), of(|run| run.values[1]), of(|run| run.disk_mb_per_s));
        if let (Some(reader), Some(writer), Some(disk)) = all {
            let (name, count) = (arm.name(), disk.count);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {name:<14}{:>8.1}{:>8.1}{:>8.1} {count:>6}",
                reader.median, writer.median, disk.median
            );
        }
    }
    text
}

/// What the disk delivered.
pub(super) fn bars(book: &Book, profile: &str) -> Bars {
    let of =
        |arm: Arm| Some((arm.name().to_owned(), compare(book, profile, [arm; 2], |[run, _]| Some(run.disk_mb_per_s))?));
    Bars {
        title: format!("Two tenants alternate between the disk and other work ({profile})"),
        unit: "whole disk, MB/s",
        rows: Arm::OF_BURSTS.into_iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{apart, at_work, resting, scene};
    use minerva_lab::scene::Series;
    use minerva_model::Nanos;

    #[test]
    fn cycles_go_by_the_seed_and_a_burst_takes_as_long_for_both() {
        let drawn = |seed| scene([100e6, 50e6], 60, seed);
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3).title, drawn(4).title);
        let bursts: Vec<u64> = drawn(3).tenants.iter().filter_map(|plan| Some(plan.rests?.burst_bytes)).collect();
        assert!(bursts[0].abs_diff(2 * bursts[1]) <= 1, "{bursts:?}");
    }

    #[test]
    fn parts_are_of_the_time_in_which_both_are_at_work() {
        // With pauses of four seconds two of them without anything are a rest.
        let mut cycles = scene([100e6, 50e6], 0, 3);
        cycles.tenants.iter_mut().filter_map(|plan| plan.rests.as_mut()).for_each(|rests| {
            rests.pause = Nanos::from_secs(4);
        });
        // What is told of the first request after a pause is spread over it.
        let reader = [8.0, 8.0, 5.0, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 9.0, 8.0, 8.0, 8.0];
        let writer = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 0.0, 8.0];
        let series = Series { bin_s: 1.0, mb_per_s: vec![reader.to_vec(), writer.to_vec()] };
        // Of the last three seconds the writer is starved in one, which counts.
        let together = at_work(&series, 2.0, &cycles);
        assert_eq!(together, [8.0, 16.0 / 3.0]);
        assert_eq!(apart(&[1.0, 2.0, together[0], together[1]]).map(f64::round), Some(20.0));
        assert_eq!([apart(&[1.0, 2.0]), apart(&[1.0, 2.0, 0.0, 0.0])], [None, None]);
        assert_eq!(
            resting(&[1.0, 0.0, 1.0, 0.0, 0.1, 1.0, 1.0], 0.2, 2),
            [false, false, true, true, true, true, false]
        );
    }
}
