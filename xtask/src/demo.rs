//! The main job, from nothing: installs what is missing, builds, runs.

use crate::shell::{cargo, must, root, succeeds};
use crate::{machine, packages};
use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use std::path::PathBuf;
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
    let binaries = folder("demo");
    let mut demo = Command::new(binaries.join("minerva-lab"));
    // Given so that the one of this build is meant, and not one in PATH.
    demo.arg("demo").args(&options.arguments).arg("--binaries").arg(&binaries);
    wait_through_interrupts()?;
    succeeds(&mut demo)
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
    build(&["minervad", "minerva-lab", "minerva-ctl", "minerva-sim", "minerva-blk", "minerva-fs"], "release")
}

/// Builds programs with a profile of `Cargo.toml`.
fn build(programs: &[&str], profile: &str) -> Result<()> {
    eprintln!("building {} (a first build takes some minutes)", programs.join(" and "));
    must(cargo().args(["build", "--profile", profile]).args(programs.iter().flat_map(|program| ["--bin", *program])))
}

/// Where cargo puts release programs.
pub(crate) fn release_folder() -> PathBuf {
    folder("release")
}

/// Where cargo puts programs of a profile.
fn folder(profile: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into).join(profile)
}
