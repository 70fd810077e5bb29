//! Finds the programs that the demonstration and the figures run.

use crate::cli::Output;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The daemon.
pub(crate) fn minervad(output: &Output) -> anyhow::Result<PathBuf> {
    find("minervad", output.minervad.as_deref(), output.binaries.as_deref())
}

/// The operator's tool.
pub(crate) fn minerva_ctl(output: &Output) -> anyhow::Result<PathBuf> {
    find("minerva-ctl", None, output.binaries.as_deref())
}

/// The server for VM disks.
pub(crate) fn minerva_blk(output: &Output) -> anyhow::Result<PathBuf> {
    find("minerva-blk", None, output.binaries.as_deref())
}

/// The agent in a guest.
pub(crate) fn minerva_agent(output: &Output) -> anyhow::Result<PathBuf> {
    find("minerva-agent", None, output.binaries.as_deref())
}

/// The cache's service.
pub(crate) fn minerva_fs(output: &Output) -> anyhow::Result<PathBuf> {
    find("minerva-fs", None, output.binaries.as_deref())
}

/// The program that was asked for; else the one in the folder that was given, or beside this program, where a build puts
/// all; else the one in `PATH`.
fn find(name: &str, asked: Option<&Path>, folder: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = asked.map(Path::to_owned).or_else(|| folder.map(|folder| folder.join(name))) {
        anyhow::ensure!(path.is_file(), "there is no {name} at {}: build it, or give another path", path.display());
        return Ok(path);
    }
    let own = std::env::current_exe().context("failed to find this program")?;
    let beside = Some(own.with_file_name(name)).filter(|path| path.is_file());
    beside.or_else(|| in_path(name)).with_context(|| nowhere(name))
}

/// What is said where it is nowhere. Its package may have another name.
fn nowhere(name: &str) -> String {
    format!(
        "there is no {name} beside this program nor in PATH: build it with `cargo build --bin {name}`, or give its folder with \
         --binaries"
    )
}

/// A program in `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|directory| directory.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::nowhere;
    use std::process::Command;

    #[test]
    fn the_command_that_builds_a_missing_program_names_a_program() {
        let mut cargo = Command::new(env!("CARGO"));
        let output =
            cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).output().expect("cargo");
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let packages = metadata["packages"].as_array().expect("packages");
        let targets = packages.iter().flat_map(|package| package["targets"].as_array().into_iter().flatten());
        let is_program = |target: &&serde_json::Value| target["kind"][0] == "bin";
        let programs: Vec<&str> = targets.filter(is_program).filter_map(|target| target["name"].as_str()).collect();
        for name in ["minervad", "minerva-ctl", "minerva-blk", "minerva-agent", "minerva-fs"] {
            assert!(nowhere(name).contains(&format!("`cargo build --bin {name}`")), "{}", nowhere(name));
            assert!(programs.contains(&name), "{name} is none of {programs:?}");
        }
    }
}
