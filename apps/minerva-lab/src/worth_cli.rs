//! The options of what forecasts are worth.

use crate::arms::{LIKE, WORTH};
use crate::options::Output;
use clap::Args;
use std::path::PathBuf;

/// Both scenes, as a figure.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorthArguments {
    /// Run this scene only.
    #[arg(long, value_parser = ["proactive", "interleave"])]
    pub(crate) scene: Option<String>,
    #[command(flatten)]
    pub(crate) runs: RunsArguments,
    /// Seconds for which phases are learnt in the scene of bursts; as many again are compared.
    #[arg(long, default_value_t = 180)]
    pub(crate) seconds: u64,
}

/// One scene, with a report.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceWorthArguments {
    #[command(flatten)]
    pub(crate) runs: RunsArguments,
    /// Seconds for which phases are learnt in the scene of bursts; as many again are compared.
    #[arg(long, default_value_t = 180)]
    pub(crate) seconds: u64,
    /// Where to write the plot, as SVG. There is one file per disk; its name goes before the file name's ending.
    #[arg(long, default_value = "minerva-worth.svg")]
    pub(crate) plot: PathBuf,
}

/// What is played, and how often.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunsArguments {
    /// Disks to emulate.
    #[arg(long, value_delimiter = ',', default_value = "sata7200-80g,sata-ssd")]
    pub(crate) profile: Vec<String>,
    /// Run these arms only.
    #[arg(long, value_delimiter = ',', value_parser = WORTH)]
    pub(crate) arm: Vec<String>,
    /// What is known about the sessions that start together: earlier sessions had the same names, or looked the same but had no names,
    /// or there were none like them.
    #[arg(long, value_delimiter = ',', value_parser = LIKE, default_value = "named,unnamed,unseen")]
    pub(crate) like: Vec<String>,
    /// Pairs. In each pair every arm runs the same random sessions once, in random order; the medians count.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) pairs: u64,
    /// Scale of the paper's bytes on a rotational disk; on an SSD they are three times as many.
    #[arg(long, default_value_t = minerva_lab::scene::SCALE_DEFAULT)]
    pub(crate) scale: f64,
    /// Seed of everything random; by default a random one, which is printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep every run in this folder, with what the daemon learnt before it. Runs that are there already are not repeated, so an
    /// interrupted measurement can be continued with the same seed.
    #[arg(long, requires = "seed")]
    pub(crate) folder: Option<PathBuf>,
    /// Make at most this many runs now.
    #[arg(long)]
    pub(crate) runs_max: Option<usize>,
    #[command(flatten)]
    pub(crate) output: Output,
}
