//! Options that were given and that the command would not use: they are refused, as whoever gives one takes it to act.

use crate::cli::{Experiment, ReproduceArguments, Scene};
use crate::scene::is_job_file;
use crate::scheduler::{HtbsArguments, Name};
use anyhow::ensure;
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::collections::BTreeSet;

/// Options of the command line that have no default's value, by name.
#[derive(Debug)]
pub(crate) struct Given(BTreeSet<String>);

/// How a trace is read and replayed.
const OF_TRACES: [&str; 11] = [
    "speed",
    "fold",
    "format",
    "malformed-max",
    "sort-window",
    "in-order",
    "object-bytes",
    "trace-tenants",
    "trace-weight",
    "trace-tag",
    "trace-depth",
];

impl Given {
    /// Those of the command that was called.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let Some((_, matches)) = matches.subcommand() else { return Self(BTreeSet::new()) };
        let ids = matches.ids().map(clap::Id::as_str);
        let given = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        Self(given.map(|id| id.replace('_', "-")).collect())
    }

    /// Refuses those of `names` that were given; `why` says what is wrong with them.
    fn refuse(&self, names: &[&str], why: &str) -> anyhow::Result<()> {
        let given: Vec<String> =
            names.iter().filter(|name| self.0.contains(**name)).map(|name| format!("--{name}")).collect();
        ensure!(given.is_empty(), "{} would change nothing: {why}", given.join(", "));
        Ok(())
    }

    /// Refuses what a run under these schedulers would not use.
    pub(crate) fn judge_scene(&self, scene: &Scene, names: &[Name]) -> anyhow::Result<()> {
        judge_htbs(scene.htbs, names)?;
        if is_job_file(&scene.job) {
            self.refuse(&OF_TRACES, &format!("{} is a job file, and not a trace", scene.job.display()))?;
        }
        Ok(())
    }

    /// Refuses what an experiment does not use.
    pub(crate) fn judge_experiment(&self, arguments: &ReproduceArguments) -> anyhow::Result<()> {
        use Experiment::{Background, Interleave, Makespan, Mapreduce, Proactive};
        let experiment = arguments.experiment;
        let of = |users: &[Experiment], names: &[&str], whose: &str| {
            if users.contains(&experiment) { Ok(()) } else { self.refuse(names, &format!("only {whose}")) }
        };
        of(&[Background], &["plot", "traces"], "background plays traces and draws days")?;
        of(&[Proactive], &["slice", "scale"], "proactive has slices and a scale")?;
        let played = [Makespan, Proactive, Mapreduce, Interleave];
        of(&played, &["runs"], "makespan, proactive, mapreduce and interleave have runs")?;
        if !arguments.traces.is_empty() {
            self.refuse(&["seed"], "with --traces nothing is drawn")?;
        }
        Ok(())
    }
}

/// Refuses settings of HTBS where it does not run.
pub(crate) fn judge_htbs(htbs: HtbsArguments, names: &[Name]) -> anyhow::Result<()> {
    let option = match (htbs.turn_units_max, htbs.wait_max) {
        (Some(_), _) => "--htbs-turn",
        (None, Some(_)) => "--htbs-wait",
        (None, None) => return Ok(()),
    };
    let is_used = names.iter().any(|name| matches!(name, Name::Htbs | Name::HtbsOriginal));
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    ensure!(
        is_used,
        "{option} would change nothing: it is for htbs and htbs-original, and not for {}",
        names.join(", ")
    );
    Ok(())
}
