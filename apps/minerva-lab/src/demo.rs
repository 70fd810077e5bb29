//! `minerva-lab demo`

use crate::cli::DemoArguments;
use crate::{binaries, signals};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use minerva_lab::scene::{
    Comparison, Equal, FixedWeights, Live, Minervad, RunResult, SCALE_DEFAULT, Scene, Stage, Steering, in_plain_words,
    render_table, run_scene, write_report,
};
use minerva_lab::workload::WorkerProgram;

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    let scale = arguments.scale.unwrap_or(SCALE_DEFAULT);
    anyhow::ensure!(scale > 0.0 && scale <= 1.0, "a scale of {scale} is no good: use one above 0, up to 1");
    let mut steerings: Vec<Box<dyn Steering>> = vec![Box::new(Equal)];
    if let Some(weights) = &arguments.weights {
        steerings.push(Box::new(FixedWeights(weights.clone())));
    } else if !arguments.equal_only {
        let program = binaries::minervad(&arguments.output)?;
        steerings.push(Box::new(Minervad { program, slice_ms: crate::figure::SLICE_MS }));
    }
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };

    let mut scenes = vec![Scene::noisy_neighbour(scale), Scene::together(scale)];
    scenes.retain(|scene| arguments.scene.is_empty() || arguments.scene.contains(&scene.name));
    eprintln!("disk {}, work scaled by {scale}, {} runs", arguments.profile, scenes.len() * steerings.len());
    let mut runs = Vec::new();
    for scene in &scenes {
        eprintln!("\n{}", scene.title);
        for steering in &steerings {
            runs.push(play(scene, steering.as_ref(), &stage)?);
        }
    }
    write_report(&arguments.report, &arguments.profile, &scenes, &runs)?;
    if arguments.output.json {
        let comparisons = Comparison::all(&runs);
        println!("{}", serde_json::json!({ "runs": runs, "comparisons": comparisons }));
    } else {
        println!("\n{}\n{}", render_table(&runs), in_plain_words(&scenes, &runs));
    }
    eprintln!("report with plots: {}", arguments.report.display());
    Ok(())
}

/// Plays one run with a bar a tenant on standard error, where that is a terminal.
pub(crate) fn play(scene: &Scene, steering: &dyn Steering, stage: &Stage<'_>) -> anyhow::Result<RunResult> {
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template("  {prefix:10} {bar:30} {bytes:>11} of {total_bytes:>11}  {msg}")?;
    let bars: Vec<ProgressBar> = scene
        .tenants
        .iter()
        .map(|tenant| {
            let bar = bars.add(ProgressBar::new(tenant.bytes).with_style(style.clone()));
            bar.set_prefix(tenant.name.clone());
            bar
        })
        .collect();
    eprintln!("  {}", steering.name());
    let mut ended = vec![None; bars.len()];
    let mut watch = |live: &Live| {
        for (index, ((done, all), bar)) in live.bytes.iter().zip(&bars).enumerate() {
            bar.set_position(*done);
            if done >= all {
                let end = *ended[index].get_or_insert(live.elapsed_s);
                bar.set_message(format!("done at {end:.1} s"));
            } else {
                bar.set_message(format!("{:.1} s", live.elapsed_s));
            }
        }
    };
    let result = run_scene(scene, steering, stage, &mut watch);
    bars.iter().for_each(ProgressBar::abandon);
    Ok(result?)
}
