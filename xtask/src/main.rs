//! Tasks of this repository. `cargo xtask --help` lists them.

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod arrows;
mod demo;
mod documents;
mod figure_line;
mod figure_structure;
mod figures;
mod fuzz;
mod generate;
mod interrupts;
mod lanes;
mod left_behind;
mod limited;
mod lint;
mod machine;
mod package;
mod package_version;
mod packages;
mod proof;
mod python;
mod sdk;
mod shell;
mod skips;
mod source_text;
mod structure;
mod test_programs;
mod tests;
mod tidy;
mod words;
mod workspace;

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// The main job: an emulated disk, four tenants, with equal weights, with the kernel's own default and under minervad; a table and a report.
    Demo(demo::Options),
    /// Every test: lint, unit, property, golden, real kernel, guests, a short fuzz run.
    Test(tests::Options),
    /// Formatting, clippy, arrows, structure, tidiness, licences.
    Lint,
    /// Who may depend on whom (docs/ARCHITECTURE.md, section 2), and where kernel paths may be named.
    Arrows,
    /// Modules that import each other in a circle, long functions and long files: their numbers may only fall.
    Structure(structure::Options),
    /// Benchmarks: every `benches/` folder, or those of the packages named.
    Bench {
        /// Packages to measure; none means all.
        packages: Vec<String>,
    },
    /// Fuzz the parsers: every target, or those named.
    Fuzz(fuzz::Options),
    /// Measure the figures of docs/figures.md again; JSON lines with --json.
    Figures(figures::Options),
    /// Write man pages and shell completions to docs/man and packaging/completions.
    Generate,
    /// Debian packages: the daemon, the operators' and tenants' tool, the agent, the server for VM disks, the cache.
    Package(package::Options),
    /// The packages for Python and C: generate, check, install.
    #[command(subcommand)]
    Sdk(sdk::Action),
}

fn main() -> Result<ExitCode> {
    let task = Arguments::parse().task;
    // The others let the terminal end what they run, and wait for it.
    if matches!(task, Task::Test(_) | Task::Lint | Task::Fuzz(_) | Task::Sdk(_)) {
        interrupts::catch()?;
    }
    let met = run(&task);
    if let Some(status) = interrupts::take() {
        eprintln!("interrupted");
        if matches!(task, Task::Test(_)) {
            lint::passes("what the tests left", || tests::sweep().map(|()| true));
        }
        return Ok(ExitCode::from(status));
    }
    Ok(if met? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does it; whether all is well.
fn run(task: &Task) -> Result<bool> {
    match task {
        Task::Demo(options) => demo::run(options),
        Task::Test(options) => tests::run(options),
        Task::Lint => lint::run(&mut skips::Skips::default()),
        Task::Arrows => arrows::run(),
        Task::Structure(options) => structure::run(options),
        Task::Bench { packages } => figures::bench(packages),
        Task::Fuzz(options) => fuzz::run(options),
        Task::Figures(options) => figures::run(options),
        Task::Generate => generate::run(),
        Task::Package(options) => package::run(options),
        Task::Sdk(action) => sdk::run(action),
    }
}
