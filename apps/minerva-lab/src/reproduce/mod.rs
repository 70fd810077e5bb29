//! `minerva-lab reproduce …`: experiments of the papers on the real kernel, their figures beside ours.

mod beside;
pub(crate) mod characterise;
pub(crate) mod htbs;
pub(crate) mod table;
pub(crate) mod tag;

use crate::cli::{MakespanArguments, ReproduceEndogenicArguments};
use crate::{binaries, demo, figure, output, signals};
use minerva_lab::scene::{
    Comparison, EndogenicPlan, Equal, Minervad, PAPER_ENDOGENIC, Scene, Stage, Steering, endogenic_slice_ms,
    render_table, signed_percent, write_report,
};
use minerva_lab::workload::WorkerProgram;
use std::fmt::Write as _;

/// Minerva's Fig. 2.
pub(crate) fn endogenic(arguments: &ReproduceEndogenicArguments) -> anyhow::Result<()> {
    minerva_lab::scene::check_machine()?;
    let scale = arguments.scale;
    anyhow::ensure!(scale > 0.0 && scale <= 1.0, "a scale of {scale} is not possible: use one above 0, up to 1");
    let slice_ms = endogenic_slice_ms(scale);
    let minervad = Minervad::new(binaries::minervad(&arguments.output)?, slice_ms);
    let interrupted = signals::interrupt_flag()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let program = WorkerProgram::own()?;
    let stage = Stage { program: &program, profile: &arguments.profile, interrupted: &interrupted };
    let scene = EndogenicPlan::paper(scale).scene();
    eprintln!(
        "disk {}, work and times scaled by {scale}, slices of {slice_ms} ms, 2 runs\n{}",
        arguments.profile, scene.title
    );
    let steerings: [&dyn Steering; 2] = [&Equal, &minervad];
    let runs = steerings
        .into_iter()
        .map(|steering| demo::play(&scene, steering, &stage))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let comparison = Comparison::new(&runs[0], &runs[1]);
    if arguments.output.json {
        output::line(
            serde_json::json!({ "runs": runs, "comparison": comparison, "paper_shorter_percent": PAPER_ENDOGENIC }),
        )?;
    } else {
        output::line(format_args!("\n{}\n{}", render_table(&runs), beside_the_paper(&scene, &comparison)))?;
    }
    // After the table, so that a report which cannot be written loses nothing.
    write_report(&arguments.report, &arguments.profile, std::slice::from_ref(&scene), &runs)?;
    eprintln!("report with plots of both halves of the figure: {}", arguments.report.display());
    Ok(())
}

/// Shortest job first of Matteussi and Geyer 2018.
pub(crate) fn makespan(arguments: &MakespanArguments) -> anyhow::Result<()> {
    minerva_lab::disk::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    figure::makespan::run(arguments)
}

/// The paper's figures and ours, and why they differ.
fn beside_the_paper(scene: &Scene, comparison: &Comparison) -> String {
    let mut text = String::from(
        "  tenant     does                                                     paper, I/O time   ours, from launch\n",
    );
    for ((plan, change), paper) in scene.tenants.iter().zip(&comparison.tenants).zip(PAPER_ENDOGENIC) {
        let (paper, ours) = (signed_percent(-paper), signed_percent(change.completion_change_percent));
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {:10} {:55} {paper:>14} {ours:>18}", plan.name, plan.description);
    }
    let _ = writeln!(text, "  whole disk: {:.1} % of its throughput with equal weights", comparison.disk_percent);
    text.push_str(
        "  The paper counts the time in which a tenant reads, without waiting, under CFQ with four guests. Ours is\n  the \
         time from launch to the end of the work, including waiting, under BFQ on one host, against equal weights.\n",
    );
    text
}
