//! Man pages and completions, from the same definition that parses the command line.

use crate::cli::Cli;
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::path::Path;

pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    let context = || format!("failed to write to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(context)?;
    clap_mangen::generate_to(Cli::command(), directory).with_context(context)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "minerva-sim", directory).with_context(context)?;
    }
    Ok(())
}
