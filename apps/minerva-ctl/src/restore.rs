//! `minerva-ctl restore`: every knob as it was before Minerva. Needs no daemon, and not even a readable file: with a broken one
//! the default places are tried, because putting back must work when nothing else does.

use crate::output::{self, Verdict};
use crate::place;
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{RestoreWhen, restore};
use std::path::Path;

/// Restores and says what became of each knob; a knob that could not be put back is a finding.
pub(crate) fn run(config: &Path, if_daemon_gone: bool, json: bool) -> anyhow::Result<Verdict> {
    let config = place::config(config).unwrap_or_else(|error| {
        eprintln!("{error:#}\nthe default places are taken instead");
        Config::default()
    });
    let settings = place::writer_settings(&config, &place::roots(&config)?);
    let when = if if_daemon_gone { RestoreWhen::IfDaemonGone } else { RestoreWhen::Always };
    let report = restore(&settings, when).context("failed to restore; be root")?;
    if json {
        output::json(&report)?;
    } else if report.is_empty() {
        eprintln!("nothing to restore: Minerva holds no knob");
    } else {
        output::text(&format!("{report}\n"))?;
    }
    // That a daemon runs is what `--if-daemon-gone` was asked about, not a finding.
    let left_alone = if_daemon_gone && report.not_due.is_some();
    Ok(Verdict::found_if(!left_alone && !report.is_complete()))
}
