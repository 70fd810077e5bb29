//! What forecasts are worth on the real kernel (Malensek et al. 2016, Fig. 3): Minerva with them against Minerva without, against the last
//! value in their place, against an oracle, and against what others do.
//!
//! | file | what |
//! |---|---|
//! | `draw` | sessions of the hour before, and the four that start together |
//! | `arms` | who steers |
//! | `play` | which runs are to be played, and what came of them |
//! | `proactive`, `bursts` | the two scenes |
//! | `judge` | medians, spreads and goals |

mod arms;
mod bursts;
mod draw;
mod judge;
mod play;
mod proactive;

pub(crate) use arms::{Arm, learning};
pub(crate) use draw::draw_like;

use crate::figure::Line;
use crate::worth_cli::{ReproduceWorthArguments, RunsArguments, WorthArguments};
use crate::{output, signals};
use anyhow::Context as _;

use judge::Bars;
use minerva_lab::scene::Stage;
use minerva_lab::workload::WorkerProgram;
use play::Book;
use std::path::{Path, PathBuf};

/// Both scenes, or one, as lines of a figure.
pub(crate) fn figure(arguments: &WorthArguments) -> anyhow::Result<()> {
    let is_wanted = |scene: &str| arguments.scene.as_deref().is_none_or(|wanted| wanted == scene);
    let mut book = Book::open(&arguments.runs)?;
    for profile in &arguments.runs.profile {
        if is_wanted(proactive::SCENE) {
            on_stage(profile, |stage| proactive::play(&mut book, &arguments.runs, stage))?;
            print(proactive::lines(&book, profile), &arguments.runs)?;
        }
        if is_wanted(bursts::SCENE) {
            on_stage(profile, |stage| bursts::play(&mut book, &arguments.runs, arguments.seconds, stage))?;
            print(bursts::lines(&book, profile), &arguments.runs)?;
        }
    }
    Ok(())
}

/// Fig. 3-a against 3-b.
pub(crate) fn reproduce_proactive(arguments: &ReproduceWorthArguments) -> anyhow::Result<()> {
    reproduce(
        arguments,
        proactive::PAPER,
        |book, stage| proactive::play(book, &arguments.runs, stage),
        |book, profile| {
            (proactive::table(book, profile), proactive::lines(book, profile), proactive::bars(book, profile))
        },
    )
}

/// Fig. 3-d against 3-e.
pub(crate) fn reproduce_interleave(arguments: &ReproduceWorthArguments) -> anyhow::Result<()> {
    reproduce(
        arguments,
        bursts::PAPER,
        |book, stage| bursts::play(book, &arguments.runs, arguments.seconds, stage),
        |book, profile| (bursts::table(book, profile), bursts::lines(book, profile), bursts::bars(book, profile)),
    )
}

/// What is shown of one disk: a table, lines with goals, bars.
type Shown = (String, Vec<Line>, Bars);

fn reproduce(
    arguments: &ReproduceWorthArguments,
    paper: &str,
    play: impl Fn(&mut Book, &Stage<'_>) -> anyhow::Result<()>,
    show: impl Fn(&Book, &str) -> Shown,
) -> anyhow::Result<()> {
    minerva_lab::scene::check_machine()?;
    minerva_lab::sweep::sweep("minerva-lab-")?;
    let mut book = Book::open(&arguments.runs)?;
    for profile in &arguments.runs.profile {
        on_stage(profile, |stage| play(&mut book, stage))?;
        let (table, lines, bars) = show(&book, profile);
        if arguments.runs.output.json {
            print(lines, &arguments.runs)?;
        } else {
            output::line(format_args!("\n{profile}\n{table}\n  paper: {paper}"))?;
            print(lines, &arguments.runs)?;
        }
        let path = plot_path(&arguments.plot, profile);
        std::fs::write(&path, bars.plot()?).with_context(|| format!("failed to write {}", path.display()))?;
        eprintln!("plot: {}", path.display());
    }
    if !arguments.runs.output.json {
        return Ok(());
    }
    book.played.iter().try_for_each(|played| output::line(serde_json::to_string(played)?))
}

fn on_stage<T>(profile: &str, play: impl FnOnce(&Stage<'_>) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let interrupted = signals::interrupt_flag()?;
    let program = WorkerProgram::own()?;
    play(&Stage { program: &program, profile, interrupted: &interrupted })
}

fn print(lines: Vec<Line>, arguments: &RunsArguments) -> anyhow::Result<()> {
    lines.into_iter().try_for_each(|line| line.print(arguments.output.json))
}

/// `worth.svg` for a disk is `worth-DISK.svg`.
fn plot_path(path: &Path, profile: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(|| "svg".into(), |ending| ending.to_string_lossy());
    path.with_file_name(format!("{stem}-{profile}.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::plot_path;

    #[test]
    fn each_disk_has_a_plot_of_its_own() {
        assert_eq!(plot_path("a/worth.svg".as_ref(), "sata-ssd"), std::path::Path::new("a/worth-sata-ssd.svg"));
    }
}
