//! The main job, from nothing: installs what is missing, builds, runs.

use crate::packages::is_root;
use crate::shell::{cargo, must, succeeds};
use crate::workspace::target;
use crate::{machine, packages};
use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to run it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Passed on to `minerva-lab demo` (see `minerva-lab demo --help`).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// What the demonstration runs.
const PROGRAMS: &[&str] = &["minervad", "minerva-lab"];
/// What `demo data-path` runs.
const PROGRAMS_DATA_PATH: &[&str] = &["minerva-blk", "minerva-lab"];

/// What `demo cache` runs.
const PROGRAMS_CACHE: &[&str] = &["minerva-fs", "minerva-lab"];

/// Builds the daemon and the laboratory and runs `minerva-lab demo`; whether it succeeded.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let is_help = options.arguments.iter().any(|word| word == "--help" || word == "-h");
    if !is_help {
        machine::check_for_demo()?;
    }
    packages::ensure(packages::BUILD)?;
    let programs = match options.arguments.first().map(String::as_str) {
        Some("data-path") => PROGRAMS_DATA_PATH,
        Some("cache") => PROGRAMS_CACHE,
        _ => PROGRAMS,
    };
    build(programs, "demo")?;
    let binaries = target()?.join("demo");
    let mut demo = lab(&binaries.join("minerva-lab"), is_help || is_root());
    // Given so that the one of this build is meant, and not one in PATH.
    demo.arg("demo").args(&options.arguments).arg("--binaries").arg(&binaries);
    wait_through_interrupts()?;
    succeeds(&mut demo)
}

/// The laboratory alone needs root. What cargo fetches and builds stays the user's, who could not remove it otherwise.
fn lab(program: &Path, is_allowed: bool) -> Command {
    if is_allowed {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.arg(program);
    sudo
}

/// From now on Ctrl-C does not end this program. The terminal sends it also to what this program runs, which then removes what it set
/// up, and that is waited for. The answer is set once it has come.
pub(crate) fn wait_through_interrupts() -> Result<Arc<AtomicBool>> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&is_interrupted)).context("catch Ctrl-C")?;
    Ok(is_interrupted)
}

/// Builds the programs that a measurement runs.
pub(crate) fn build_release() -> Result<()> {
    build(
        &["minervad", "minerva-lab", "minerva-ctl", "minerva-sim", "minerva-blk", "minerva-agent", "minerva-fs"],
        "release",
    )
}

/// Builds programs with a profile of `Cargo.toml`.
fn build(programs: &[&str], profile: &str) -> Result<()> {
    eprintln!("building {} (a first build takes some minutes)", programs.join(" and "));
    must(cargo().args(["build", "--profile", profile]).args(programs.iter().flat_map(|program| ["--bin", *program])))
}

/// Where cargo puts release programs.
pub(crate) fn release_folder() -> Result<PathBuf> {
    Ok(target()?.join("release"))
}

#[cfg(test)]
mod tests {
    use super::lab;
    use crate::shell::display;
    use std::path::Path;

    #[test]
    fn only_the_laboratory_is_run_by_sudo_and_only_where_it_must_be() {
        let program = Path::new("/target/demo/minerva-lab");
        assert_eq!(display(&lab(program, false)), "sudo /target/demo/minerva-lab");
        assert_eq!(display(&lab(program, true)), "minerva-lab");
    }
}
