//! `minerva-ctl generate`: manual pages and completions, made of the same texts as `--help`.

use crate::arguments::Arguments;
use crate::output::CommandStatus;
use anyhow::Context;
use clap::CommandFactory;
use std::path::Path;

/// Writes everything into `directory`.
pub(crate) fn run(directory: &Path) -> anyhow::Result<CommandStatus> {
    minerva_documents::write(Arguments::command(), directory)
        .with_context(|| format!("failed to write into {}", directory.display()))?;
    Ok(CommandStatus::Well)
}
