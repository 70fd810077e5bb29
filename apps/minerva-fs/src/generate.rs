//! `minerva-fs generate`: the manual page and the completions, made of the same texts as `--help`.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Writes everything into `directory`.
pub(crate) fn run(directory: &Path) -> anyhow::Result<()> {
    let context = || format!("failed to write into {}", directory.display());
    std::fs::create_dir_all(directory).with_context(context)?;
    clap_mangen::generate_to(Arguments::command(), directory).with_context(context)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Arguments::command(), "minerva-fs", directory).with_context(context)?;
    }
    Ok(())
}
