//! `minerva-lab figure endogenic`: the paper's scene in pairs of runs, and other scenes once each, so that the gain is not that of
//! one case.

use super::{Line, median};
use crate::cli::EndogenicArguments;
use crate::{binaries, signals};
use minerva_lab::scene::{
    Comparison, EndogenicPlan, Equal, Minervad, Scene, Stage, endogenic_slice_ms, run_scene, signed_percent,
};
use minerva_lab::workload::{Access, Part, WorkerProgram};

/// What the completion of the paper's tenants is to change by at most, in percent.
const MOST: [f64; 4] = [-40.0, -40.0, -30.0, 3.0];
/// Numbers of tenants of the other scenes.
const TENANTS: [u32; 3] = [4, 8, 16];

pub(super) fn run(arguments: &EndogenicArguments) -> anyhow::Result<()> {
    let minervad = binaries::minervad(&arguments.output)?;
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let compare = |plan: &EndogenicPlan| -> anyhow::Result<(Scene, Comparison)> {
        let steering = Minervad { program: minervad.clone(), slice_ms: endogenic_slice_ms(plan.scale) };
        let scene = plan.scene();
        let equal = run_scene(&scene, &Equal, &stage, &mut |_| ())?;
        let steered = run_scene(&scene, &steering, &stage, &mut |_| ())?;
        let comparison = Comparison::new(&equal, &steered);
        eprintln!("{}: {}", scene.title, changes(&comparison));
        Ok((scene, comparison))
    };
    let json = arguments.output.json;
    let paper = EndogenicPlan::paper(arguments.scale);
    let pairs = (0..arguments.pairs.max(1)).map(|_| compare(&paper)).collect::<anyhow::Result<Vec<_>>>()?;
    for (index, most) in MOST.into_iter().enumerate() {
        let change = median(pairs.iter().map(|(_, pair)| pair.tenants[index].completion_change_percent));
        let tenant = &pairs[0].0.tenants[index];
        let detail = format!(
            "{} ({}), scale {}, from launch: median of {} pairs",
            tenant.name,
            tenant.description,
            arguments.scale,
            pairs.len()
        );
        line(change, "% completion", format!("at most {most:+}"), change <= most, detail).print(json)?;
    }
    let disk = median(pairs.iter().map(|(_, pair)| pair.disk_percent));
    let detail = "whole disk, of what equal weights gave".to_owned();
    line(disk, "% of throughput", "at least 99.5, one half for noise".to_owned(), disk >= 99.5, detail).print(json)?;
    for access in [Access::SequentialRead, Access::RandomRead] {
        spread(arguments, access, &compare)?.into_iter().try_for_each(|line| line.print(json))?;
    }
    Ok(())
}

/// Other sizes, orders and numbers of tenants.
fn spread(
    arguments: &EndogenicArguments,
    access: Access,
    compare: &dyn Fn(&EndogenicPlan) -> anyhow::Result<(Scene, Comparison)>,
) -> anyhow::Result<Vec<Line>> {
    let (mut gains, mut back, mut disk) = (Vec::new(), Vec::new(), Vec::new());
    for (tenants, seed) in
        TENANTS.into_iter().flat_map(|tenants| (1..=arguments.others).map(move |seed| (tenants, seed)))
    {
        let plan = EndogenicPlan { tenants, seed, access, ..EndogenicPlan::paper(arguments.others_scale) };
        let (scene, comparison) = compare(&plan)?;
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
    let scenes =
        format!("{} scenes of 4, 8 and 16 tenants, {access} reads, scale {}", gains.len(), arguments.others_scale);
    let (gain, last) = (median(gains.iter().copied()), median(back.iter().copied()));
    let detail = format!("mean over those that do not step back, {scenes}: {}", range(&gains));
    let detail_back =
        format!("mean over those that step back, {scenes}: {}; whole disk {} %", range(&back), range(&disk));
    let all_gain = gains.iter().all(|gain| *gain < 0.0);
    Ok(vec![
        line(gain, "% completion", "every scene shorter".to_owned(), all_gain, detail),
        line(last, "% completion", "at most +3".to_owned(), last <= 3.0, detail_back),
    ])
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

fn range(values: &[f64]) -> String {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
    format!("{least:.1} to {most:.1}")
}
