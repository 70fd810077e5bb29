//! Man page and completions, from the same definition that parses the command line.

use crate::cli::Cli;
use anyhow::Context as _;
use clap::CommandFactory as _;
use std::path::Path;

pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    minerva_documents::write(Cli::command(), directory)
        .with_context(|| format!("failed to write to {}", directory.display()))
}
