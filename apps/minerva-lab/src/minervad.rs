//! Finds the daemon that the demonstration and the figures run.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The daemon that was asked for; else the one beside this program, where a build puts both; else the one in `PATH`.
pub(crate) fn find(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = asked {
        anyhow::ensure!(path.is_file(), "there is no daemon at {}: give its path with --minervad", path.display());
        return Ok(path.to_owned());
    }
    let own = std::env::current_exe().context("failed to find this program")?;
    let beside = own.with_file_name("minervad");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|directory| directory.join("minervad"));
    std::iter::once(beside).chain(in_path).find(|path| path.is_file()).context(
        "there is no minervad beside this program nor in PATH: build it with `cargo build -p minervad`, \
         or give its path with --minervad",
    )
}
