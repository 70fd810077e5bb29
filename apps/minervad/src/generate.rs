//! `minervad generate`: the manual page and the completions, made of the same texts as `--help`.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use std::path::Path;

/// Writes everything into `directory`.
pub(crate) fn run(directory: &Path) -> anyhow::Result<()> {
    minerva_documents::write(Arguments::command(), directory)
        .with_context(|| format!("failed to write into {}", directory.display()))
}
