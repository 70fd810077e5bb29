//! `minerva-ctl restore`: every knob as it was before Minerva. Needs no daemon, and where no file was named not even a readable
//! one: with a broken one the default places are tried, because putting back must work when nothing else does.

use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{InstanceLock, RestoreReport, RestoreWhen, restore, sweep_probes};
use serde::Serialize;
use std::path::PathBuf;

/// What was done, for programs.
#[derive(Debug, Serialize)]
struct Restored<'a> {
    #[serde(flatten)]
    report: &'a RestoreReport,
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
    let probes_removed = sweep_probes(&settings);
    if json {
        let config_error = config_error.as_deref();
        output::json(&Restored { report: &report, probes_removed: &probes_removed, config_error })?;
    } else {
        probes_removed.iter().for_each(|path| eprintln!("removed {} of a killed probe", path.display()));
        if report.is_empty() {
            say_nothing_held(&settings.runtime_dir, config_error.is_some());
        } else {
            output::text(&format!("{report}\n"))?;
        }
    }
    // That a daemon runs is what `--if-daemon-gone` was asked about, not a finding.
    let left_alone = if_daemon_gone && report.not_due.is_some();
    let searched_in_vain = report.is_empty() && config_error.is_some();
    let found = !report.is_complete() || report.beside_daemon.is_some() || searched_in_vain;
    Ok(CommandStatus::found_if(!left_alone && found))
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
