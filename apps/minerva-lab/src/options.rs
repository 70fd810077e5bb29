//! Options that all measurements have.

use clap::Args;
use std::path::PathBuf;

/// What all runs have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Print JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH.
    #[arg(long)]
    pub(crate) binaries: Option<PathBuf>,
    /// The daemon to steer with, wherever the others are.
    #[arg(long)]
    pub(crate) minervad: Option<PathBuf>,
}
