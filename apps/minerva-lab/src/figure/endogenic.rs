//! `minerva-lab figure endogenic`: the paper's scene in pairs of runs, and other scenes once each, so that the gain is not that of
//! one case.

use super::{Line, drawn_seed, median, range};
use crate::cli::EndogenicArguments;
use crate::{binaries, signals};
use minerva_lab::scene::{
    Comparison, EndogenicPlan, Equal, Minervad, RunResult, Scene, Stage, endogenic_slice_ms, run_scene, signed_percent,
};
use minerva_lab::workload::{Access, Part, WorkerProgram};
use minerva_model::Level;
use std::cell::RefCell;

/// What the completion of the paper's tenants is to change by at most, in percent.
const MOST: [f64; 4] = [-40.0, -40.0, -30.0, 3.0];
/// That of a tenant that says nothing, in percent, unless one turn of the elevator is more.
const SILENT_MOST: f64 = 5.0;
/// So many pairs of the paper's scene are asked for: fewer meet no goal.
const PAIRS_MIN: usize = 3;
/// For so long BFQ serves one queue before the next.
const TURN_S: f64 = 0.125;
/// Numbers of tenants of the other scenes.
const TENANTS: [u32; 3] = [4, 8, 16];
/// Their seeds are below this; 0 is the paper's scene.
const SEEDS: u64 = 1_000_000;

pub(super) fn run(arguments: &EndogenicArguments) -> anyhow::Result<()> {
    let minervad = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let random = RefCell::new(fastrand::Rng::with_seed(drawn_seed(arguments.seed)));
    let compare = |plan: &EndogenicPlan| -> anyhow::Result<Pair> {
        let slice_ms = endogenic_slice_ms(plan.scale);
        let steering = Minervad::new(minervad.clone(), slice_ms);
        let scene = plan.scene();
        let play = |steered: bool| match steered {
            true => run_scene(&scene, &steering, &stage, &mut |_| ()),
            false => run_scene(&scene, &Equal, &stage, &mut |_| ()),
        };
        let steered_first = random.borrow_mut().bool();
        let (first, second) = (play(steered_first)?, play(!steered_first)?);
        let (equal, steered) = if steered_first { (second, first) } else { (first, second) };
        let comparison = Comparison::new(&equal, &steered);
        eprintln!("{}: {}", scene.title, changes(&comparison));
        Ok(Pair { scene, comparison, equal, steered })
    };
    let json = arguments.output.json;
    for scale in &arguments.scale {
        for level in &arguments.level {
            for deadline in &arguments.deadline {
                let level = if level == "low" { Level::Low } else { Level::Lowest };
                let done_within = deadline == "done";
                let plan = EndogenicPlan { level, done_within, ..EndogenicPlan::paper(*scale) };
                let pairs = (0..arguments.pairs).map(|_| compare(&plan)).collect::<anyhow::Result<Vec<_>>>()?;
                paper(*scale, &pairs).into_iter().try_for_each(|line| line.print(json))?;
            }
        }
    }
    for access in [Access::SequentialRead, Access::RandomRead] {
        let draw = || random.borrow_mut().u64(1..SEEDS);
        spread(arguments, access, &draw, &compare)?.into_iter().try_for_each(|line| line.print(json))?;
    }
    Ok(())
}

/// One pair of runs.
pub(super) struct Pair {
    pub(super) scene: Scene,
    pub(super) comparison: Comparison,
    pub(super) equal: RunResult,
    pub(super) steered: RunResult,
}

/// The lines of the paper's scene.
pub(super) fn paper(scale: f64, pairs: &[Pair]) -> Vec<Line> {
    let is_enough = pairs.len() >= PAIRS_MIN;
    let goal = |goal: String| format!("{goal} in {PAIRS_MIN} pairs");
    let mut lines = Vec::new();
    for (index, most) in MOST.into_iter().enumerate() {
        let changes: Vec<f64> =
            pairs.iter().map(|pair| pair.comparison.tenants[index].completion_change_percent).collect();
        let change = median(changes.iter().copied());
        let tenant = &pairs[0].scene.tenants[index];
        let detail = format!(
            "{} ({}), scale {scale}, beside {}, from launch: median of {} pairs, {}",
            tenant.name,
            tenant.description,
            ways(&pairs[0].scene),
            pairs.len(),
            range(&changes)
        );
        let goal = goal(format!("at most {most:+}"));
        lines.push(line(change, "% completion", goal, is_enough && change <= most, detail));
    }
    let disks: Vec<f64> = pairs.iter().map(|pair| pair.comparison.disk_percent).collect();
    let disk = median(disks.iter().copied());
    let ways = ways(&pairs[0].scene);
    let detail = format!("whole disk, of what equal weights gave, scale {scale}, {ways}: {}", range(&disks));
    let goal = goal("at least 100".to_owned());
    lines.push(line(disk, "% of throughput", goal, is_enough && disk >= 100.0, detail));
    lines.extend(done_within(scale, pairs));
    lines
}

/// When the operation is done that wants to be within a time; none where it wants to have begun only.
fn done_within(scale: f64, pairs: &[Pair]) -> Option<Line> {
    let scene = &pairs[0].scene;
    let (index, within) = scene.tenants.iter().enumerate().find_map(|(index, tenant)| match tenant.part {
        Some(Part::DoneWithin(within)) => Some((index, within.as_secs_f64())),
        _ => None,
    })?;
    let times: Vec<f64> = pairs.iter().map(|pair| pair.steered.tenants[index].completion_s).collect();
    let (name, done) = (&scene.tenants[index].name, median(times.iter().copied()));
    let detail = format!(
        "{name}, from launch, scale {scale}, {}: median of {} pairs, {}",
        ways(scene),
        pairs.len(),
        range(&times)
    );
    let goal = format!("at most {within} in {PAIRS_MIN} pairs");
    let met = pairs.len() >= PAIRS_MIN && done <= within;
    Some(line(done, "s until the operation is done", goal, met, detail))
}

/// Which ways of taking part a scene has.
pub(super) fn ways(scene: &Scene) -> String {
    let parts = scene.tenants.iter().filter_map(|tenant| tenant.part.map(Part::words));
    parts.collect::<Vec<_>>().join(" and one that ")
}

/// Each tenant that says nothing, by name: it is to lose at most a twentieth, or one turn of the elevator if that is more.
fn silent(pair: &Pair) -> Vec<Line> {
    let quiet = (0..pair.scene.tenants.len()).filter(|index| pair.scene.tenants[*index].part.is_none());
    let judge = |index: usize| {
        let change = pair.comparison.tenants[index].completion_change_percent;
        let equal_s = pair.equal.tenants[index].completion_s;
        let most = silent_most(equal_s);
        let tenant = &pair.scene.tenants[index];
        let detail = format!(
            "{} ({}), silent, {equal_s:.2} s with equal weights; {}",
            tenant.name, tenant.description, pair.scene.title
        );
        line(change, "% completion", format!("at most {most:+.0}"), change <= most, detail)
    };
    quiet.map(judge).collect()
}

/// By how much a silent tenant may take longer that is done after this time with equal weights, in percent.
fn silent_most(equal_s: f64) -> f64 {
    (TURN_S / equal_s.max(1e-3) * 100.0).max(SILENT_MOST)
}

/// Other sizes, orders and numbers of tenants.
fn spread(
    arguments: &EndogenicArguments,
    access: Access,
    draw: &dyn Fn() -> u64,
    compare: &dyn Fn(&EndogenicPlan) -> anyhow::Result<Pair>,
) -> anyhow::Result<Vec<Line>> {
    let (mut gains, mut back, mut disk) = (Vec::new(), Vec::new(), Vec::new());
    let (mut named, mut seeds) = (Vec::new(), Vec::new());
    for tenants in TENANTS.into_iter().flat_map(|tenants| (0..arguments.others).map(move |_| tenants)) {
        let seed = draw();
        seeds.push(seed.to_string());
        let plan = EndogenicPlan { tenants, seed, access, ..EndogenicPlan::paper(arguments.others_scale) };
        let pair = compare(&plan)?;
        named.extend(silent(&pair));
        let Pair { scene, comparison, .. } = pair;
        let stepped_back = |index: usize| matches!(scene.tenants[index].part, Some(Part::StepsBack(_)));
        let change = |index: usize| comparison.tenants[index].completion_change_percent;
        let (those, others): (Vec<usize>, Vec<usize>) =
            (0..scene.tenants.len()).partition(|index| stepped_back(*index));
        gains.push(mean(others.into_iter().map(change)));
        back.push(mean(those.into_iter().map(change)));
        disk.push(comparison.disk_percent);
    }
    if gains.is_empty() {
        return Ok(Vec::new());
    }
    let access = if access == Access::RandomRead { "random" } else { "sequential" };
    let scenes = format!(
        "{} scenes of 4, 8 and 16 tenants, {access} reads, scale {}, seeds {}",
        gains.len(),
        arguments.others_scale,
        seeds.join(" ")
    );
    let (gain, last) = (median(gains.iter().copied()), median(back.iter().copied()));
    let detail = format!("mean over those that do not step back, {scenes}: {}", range(&gains));
    let detail_back =
        format!("mean over those that step back, {scenes}: {}; whole disk {} %", range(&back), range(&disk));
    let all_gain = gains.iter().all(|gain| *gain < 0.0);
    let mut lines = vec![
        line(gain, "% completion", "every scene shorter".to_owned(), all_gain, detail),
        line(last, "% completion", "at most +3".to_owned(), last <= 3.0, detail_back),
    ];
    lines.extend(named);
    Ok(lines)
}

fn line(value: f64, unit: &'static str, goal: String, met: bool, detail: String) -> Line {
    Line { id: "endogenic", value, unit, goal, met, detail }
}

fn changes(comparison: &Comparison) -> String {
    let changes = comparison.tenants.iter().map(|tenant| signed_percent(tenant.completion_change_percent));
    format!("{}; disk {:.1} %", changes.collect::<Vec<_>>().join(", "), comparison.disk_percent)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
pub(in crate::figure) mod tests {
    use super::{Pair, paper, silent_most};
    use minerva_lab::scene::{Comparison, EndogenicPlan, RunResult, Scene, Series, TenantResult};

    /// A run in which each tenant takes so many seconds.
    pub(in crate::figure) fn run(scene: &Scene, seconds: [f64; 4]) -> RunResult {
        RunResult {
            scene: scene.name.clone(),
            steering: "test".to_owned(),
            scale: scene.scale,
            tenants: seconds.map(tenant).to_vec(),
            makespan_s: seconds[3],
            disk_mb_per_s: 40.0,
            phases: Vec::new(),
            series: Series { bin_s: 1.0, mb_per_s: vec![Vec::new(); 4] },
            weights: None,
        }
    }

    /// A pair in which each tenant takes so many seconds under the daemon.
    fn pair(done_within: bool, seconds: [f64; 4]) -> Pair {
        let scene = EndogenicPlan { done_within, ..EndogenicPlan::paper(1.0) }.scene();
        let (equal, steered) = (run(&scene, [18.0, 40.0, 171.0, 426.0]), run(&scene, seconds));
        let comparison = Comparison::new(&equal, &steered);
        Pair { comparison, equal, steered, scene }
    }

    fn tenant(completion_s: f64) -> TenantResult {
        TenantResult {
            name: String::new(),
            description: String::new(),
            bytes: 1,
            started_s: 0.0,
            completion_s,
            mb_per_s: 1.0,
            latency_ms_p50: 1.0,
            latency_ms_p99: 1.0,
        }
    }

    #[test]
    fn an_operation_that_is_done_too_late_misses_its_deadline_though_it_gained() {
        let judged = |done_within, second: f64| {
            let times = [19.0, second, 21.0];
            let pairs = times.map(|second| pair(done_within, [10.0, second, 100.0, 420.0]));
            paper(1.0, &pairs)
        };
        let lines = judged(true, 22.0);
        let last = lines.last().expect("a line");
        assert!(lines[1].met && !last.met && last.value == 21.0, "{}", last.detail);
        assert!(last.detail.ends_with("median of 3 pairs, 19.0 to 22.0"), "{}", last.detail);
        assert!(judged(true, 19.5).last().is_some_and(|line| line.met));
        assert_eq!(judged(false, 22.0).len(), lines.len() - 1);
    }

    #[test]
    fn too_few_pairs_of_the_papers_scene_meet_no_goal() {
        let met = |count| {
            let pairs: Vec<Pair> = (0..count).map(|_| pair(true, [10.0, 19.0, 100.0, 420.0])).collect();
            paper(1.0, &pairs).iter().map(|line| line.met).collect::<Vec<_>>()
        };
        assert_eq!([met(3), met(2)], [vec![true; 6], vec![false; 6]]);
    }

    #[test]
    fn silence_may_cost_a_twentieth_or_one_turn_however_many_others_there_are() {
        assert_eq!([silent_most(10.0), silent_most(2.5), silent_most(0.5)], [5.0, 5.0, 25.0]);
    }
}
