//! The main job, from nothing: installs what is missing, builds, runs.

use crate::packages;
use crate::shell::{cargo, must, root, succeeds};
use anyhow::Result;
use std::process::Command;

/// How to run it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Passed on to `minerva-lab demo` (see `minerva-lab demo --help`).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the daemon and the laboratory in release mode and runs `minerva-lab demo`; whether it succeeded.
pub(crate) fn run(options: &Options) -> Result<bool> {
    packages::ensure(packages::BUILD)?;
    build_release()?;
    let binaries = release_folder();
    let mut demo = Command::new(binaries.join("minerva-lab"));
    demo.arg("demo").arg("--minervad").arg(binaries.join("minervad")).args(&options.arguments);
    succeeds(&mut demo)
}

/// Builds the programs that a measurement runs.
pub(crate) fn build_release() -> Result<()> {
    eprintln!("building the programs (a first build takes some minutes)");
    let programs = ["minervad", "minerva-lab", "minerva-ctl", "minerva-sim"];
    must(cargo().args(["build", "--release"]).args(programs.iter().flat_map(|program| ["--bin", *program])))
}

/// Where cargo puts release programs.
pub(crate) fn release_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into).join("release")
}
