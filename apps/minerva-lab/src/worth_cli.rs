//! The options of what forecasts are worth.

use crate::arms::{LIKE, WORTH};
use crate::options::Output;
use clap::Args;
use std::path::PathBuf;

/// Both scenes, as a figure.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorthArguments {
    /// Only this scene.
    #[arg(long, value_parser = ["proactive", "interleave"])]
    pub(crate) scene: Option<String>,
    #[command(flatten)]
    pub(crate) runs: RunsArguments,
    /// Seconds in which phases are learnt, in the scene of bursts, before as many are compared.
    #[arg(long, default_value_t = 180)]
    pub(crate) seconds: u64,
}

/// One scene, with a report.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReproduceWorthArguments {
    #[command(flatten)]
    pub(crate) runs: RunsArguments,
    /// Seconds in which phases are learnt, in the scene of bursts, before as many are compared.
    #[arg(long, default_value_t = 180)]
    pub(crate) seconds: u64,
    /// Where to write the plot, as SVG; one for each disk, with its name in front of the ending.
    #[arg(long, default_value = "minerva-worth.svg")]
    pub(crate) plot: PathBuf,
}

/// What is played, and how often.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunsArguments {
    /// Which disks to emulate.
    #[arg(long, value_delimiter = ',', default_value = "sata7200-80g,sata-ssd")]
    pub(crate) profile: Vec<String>,
    /// Only these arms.
    #[arg(long, value_delimiter = ',', value_parser = WORTH)]
    pub(crate) arm: Vec<String>,
    /// What is known of sessions that start together: sessions of the same names came before, or of the same looks and no names, or none
    /// like them.
    #[arg(long, value_delimiter = ',', value_parser = LIKE, default_value = "named,unnamed,unseen")]
    pub(crate) like: Vec<String>,
    /// Pairs: in each, every arm plays once what was drawn for it, in an order that is drawn. The medians count.
    #[arg(long, default_value_t = 5)]
    pub(crate) pairs: u64,
    /// Multiplies the bytes of the paper, on a disk that turns; on an SSD they are three times as many.
    #[arg(long, default_value_t = minerva_lab::scene::SCALE_DEFAULT)]
    pub(crate) scale: f64,
    /// Seed of all that is drawn; drawn and printed unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep every run, and what the daemon learnt before it, in this folder. With the seed given too, runs that are there are not played
    /// again, so that an interrupted measurement goes on.
    #[arg(long, requires = "seed")]
    pub(crate) folder: Option<PathBuf>,
    /// Play at most so many runs this time.
    #[arg(long)]
    pub(crate) runs_max: Option<usize>,
    #[command(flatten)]
    pub(crate) output: Output,
}
