//! `minerva-ctl restore`: every knob as it was before Minerva. Needs no daemon, and where no file was named not even a readable
//! one: with a broken one the default places are tried, because putting back must work when nothing else does.

use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{InstanceLock, RestoreReport, RestoreWhen, WriterSettings, restore, sweep_probes};
use minerva_linux_background::{ArrayLeft, ProcessorsLeft, put_arrays_back, put_processors_back};
use serde::Serialize;
use std::path::PathBuf;

/// What was done, for programs.
#[derive(Debug, Serialize)]
struct Restored<'a> {
    #[serde(flatten)]
    report: &'a RestoreReport,
    /// md arrays that background work had slowed.
    arrays: &'a [ArrayLeft],
    /// Groups of background work that were confined to some of the processors.
    confined: &'a [ProcessorsLeft],
    /// What killed probes had left.
    probes_removed: &'a [PathBuf],
    /// Why the default places were taken.
    config_error: Option<&'a str>,
}

/// Restores and says what became of each knob. A finding is a knob that could not be put back, a daemon that will write again, and
/// that nothing was found where only the default places could be searched.
pub(crate) fn run(file: &OperatorFile, if_daemon_gone: bool, json: bool) -> anyhow::Result<CommandStatus> {
    let (config, config_error) = match (file.load(), file) {
        (Ok(config), _) => (config, None),
        (Err(error), OperatorFile::Named(_)) => return Err(error),
        (Err(error), OperatorFile::Default) => (Config::default(), Some(format!("{error:#}"))),
    };
    if let Some(error) = &config_error {
        eprintln!("{error}\nthe default places are taken instead");
    }
    let settings = place::writer_settings(&config, &place::roots(&config)?);
    let when = if if_daemon_gone { RestoreWhen::IfDaemonGone } else { RestoreWhen::Always };
    let report = restore(&settings, when).context("failed to restore; be root")?;
    let (arrays, confined) = restore_background(&settings, when);
    let is_nothing_of_background = arrays.is_empty() && confined.is_empty();
    let probes_removed = sweep_probes(&settings);
    if json {
        let config_error = config_error.as_deref();
        let (arrays, confined, probes_removed) = (&arrays, &confined, &probes_removed);
        output::json(&Restored { report: &report, arrays, confined, probes_removed, config_error })?;
    } else {
        probes_removed.iter().for_each(|path| eprintln!("removed {} of a killed probe", path.display()));
        arrays.iter().for_each(|array| eprintln!("{}", sentence(array)));
        confined.iter().for_each(|group| eprintln!("{}", of_processors(group)));
        if report.is_empty() && is_nothing_of_background {
            say_nothing_held(&settings.runtime_dir, config_error.is_some());
        } else if !report.is_empty() {
            output::text(&format!("{report}\n"))?;
        }
    }
    // That a daemon runs is what `--if-daemon-gone` was asked about, not a finding.
    let left_alone = if_daemon_gone && report.not_due.is_some();
    let searched_in_vain = report.is_empty() && is_nothing_of_background && config_error.is_some();
    let is_left =
        arrays.iter().any(|array| array.error.is_some()) || confined.iter().any(|group| group.error.is_some());
    let found = is_left || !report.is_complete() || report.beside_daemon.is_some() || searched_in_vain;
    Ok(CommandStatus::found_if(!left_alone && found))
}

/// The speeds of md arrays that background work slowed, and the processors that its groups may use, if nobody is there who does it still or
/// it is to be done all the same.
fn restore_background(settings: &WriterSettings, when: RestoreWhen) -> (Vec<ArrayLeft>, Vec<ProcessorsLeft>) {
    let runs = || InstanceLock::holder(&settings.runtime_dir).is_ok_and(|pid| pid.is_some());
    if when == RestoreWhen::IfDaemonGone && runs() {
        return (Vec::new(), Vec::new());
    }
    (put_arrays_back(&settings.runtime_dir, &settings.sys_root), put_processors_back(&settings.runtime_dir))
}

fn sentence(array: &ArrayLeft) -> String {
    let path = array.path.display();
    match &array.error {
        None => format!("put the speeds of {path} back, which background work had slowed"),
        Some(error) => format!("failed to put the speeds of {path} back: {error}"),
    }
}

fn of_processors(group: &ProcessorsLeft) -> String {
    let path = group.path.display();
    match &group.error {
        None => format!("{path} may use the processors again that it could before background work was confined"),
        Some(error) => format!("failed to let {path} use all its processors again: {error}"),
    }
}

fn say_nothing_held(runtime_dir: &std::path::Path, is_guess: bool) {
    let shown = runtime_dir.display();
    if is_guess {
        eprintln!(
            "nothing to restore in {shown}, but the broken file may name another runtime_dir: mend it and try again"
        );
        return;
    }
    eprintln!("nothing to restore: Minerva holds no knob (no journal in {shown})");
    if let Ok(Some(pid)) = InstanceLock::holder(runtime_dir) {
        eprintln!("minervad (pid {pid}) runs, and writes when it enforces");
    }
}
