//! `minerva-ctl restore`: every knob as it was before Minerva. Needs no daemon, and where no file was named not even a readable
//! one: with a broken one the default places are tried, because putting back must work when nothing else does.

use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{
    InstanceLock, ProbeLeft, RestoreReport, RestoreWhen, WriterSettings, has_journal, restore, sweep_probes,
};
use minerva_linux_background::{ArrayLeft, ProcessorsLeft, put_arrays_back, put_processors_back, stop_all};
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
    /// What is left of them still, as it could not be put back.
    probes_left: &'a [ProbeLeft],
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
        output::say(&format!("{error}\nthe default places are taken instead"));
    }
    let settings = place::writer_settings(&config, &place::roots(&config)?);
    let when = if if_daemon_gone { RestoreWhen::IfDaemonGone } else { RestoreWhen::Always };
    let PutBack { report, arrays, confined } = put_back(file, &settings, when)?;
    let probes = sweep_probes(&settings);
    let (probes_removed, probes_left) = (probes.removed.as_slice(), probes.left.as_slice());
    let is_nothing = report.is_empty()
        && (arrays.is_empty() && confined.is_empty() && probes_removed.is_empty() && probes_left.is_empty());
    if json {
        let config_error = config_error.as_deref();
        let (arrays, confined) = (&arrays, &confined);
        output::json(&Restored { report: &report, arrays, confined, probes_removed, probes_left, config_error })?;
    } else {
        probes_removed
            .iter()
            .for_each(|path| output::say(&format!("removed {} of a killed probe", output::path(path))));
        probes_left.iter().for_each(|left| output::say(&of_probe(left)));
        arrays.iter().for_each(|array| output::say(&sentence(array)));
        confined.iter().for_each(|group| output::say(&of_processors(group)));
        if is_nothing {
            say_nothing_held(&settings.runtime_dir, config_error.is_some());
        } else if !report.is_empty() {
            output::text(&format!("{report}\n"))?;
        }
    }
    // That a daemon runs is what `--if-daemon-gone` was asked about, not a finding.
    let left_alone = if_daemon_gone && report.not_due.is_some();
    let searched_in_vain = is_nothing && config_error.is_some();
    let is_left =
        arrays.iter().any(|array| array.error.is_some()) || confined.iter().any(|group| group.error.is_some());
    let found = is_left || !report.is_complete() || report.beside_daemon.is_some() || searched_in_vain;
    Ok(CommandStatus::found_if((!left_alone && found) || !probes_left.is_empty()))
}

/// What was put back.
struct PutBack {
    report: RestoreReport,
    arrays: Vec<ArrayLeft>,
    confined: Vec<ProcessorsLeft>,
}

/// Puts back what the directory holds that the file says; where that is nothing, what the default one holds: a daemon that was started before
/// the file said another place keeps its journal there. With a file that was named the default place may be another daemon's.
fn put_back(file: &OperatorFile, settings: &WriterSettings, when: RestoreWhen) -> anyhow::Result<PutBack> {
    let put_back_in = |settings: &WriterSettings| -> anyhow::Result<PutBack> {
        let report = restore(settings, when).context("failed to restore; be root")?;
        let (arrays, confined) = restore_background(settings, when);
        Ok(PutBack { report, arrays, confined })
    };
    let done = put_back_in(settings)?;
    let default = Config::default().daemon.runtime_dir;
    let is_nothing = done.report.is_empty() && done.arrays.is_empty() && done.confined.is_empty();
    let may_be_former = matches!(file, OperatorFile::Default) && settings.runtime_dir != default;
    if !(is_nothing && may_be_former && has_journal(&default)) {
        return Ok(done);
    }
    output::note(&format!(
        "no journal in {}, but one in {}, of a daemon that was started before `runtime_dir` in [daemon] was set: that is put back",
        output::path(&settings.runtime_dir),
        default.display()
    ));
    put_back_in(&WriterSettings { runtime_dir: default, ..settings.clone() })
}

/// The speeds of md arrays that background work slowed, and the processors that its groups may use, if nobody is there who does it still or
/// it is to be done all the same. Work that goes on without a daemon is stopped: nobody would look for others. The guard did that, unless it
/// was killed too, as systemd does once the daemon is dead.
fn restore_background(settings: &WriterSettings, when: RestoreWhen) -> (Vec<ArrayLeft>, Vec<ProcessorsLeft>) {
    let runs = InstanceLock::holder(&settings.runtime_dir).is_ok_and(|pid| pid.is_some());
    if when == RestoreWhen::IfDaemonGone && runs {
        return (Vec::new(), Vec::new());
    }
    // Before the work is stopped, which lets its groups use all processors again too, and then nobody would be told.
    let confined = put_processors_back(&settings.runtime_dir);
    if !runs {
        // Before arrays: a check that is ended must not be slowed after that.
        stop_all(&settings.runtime_dir);
    }
    (put_arrays_back(&settings.runtime_dir, &settings.sys_root), confined)
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

fn of_probe(left: &ProbeLeft) -> String {
    format!("not all could be put back of the killed probe of {}: {}", left.path.display(), left.error)
}

fn say_nothing_held(runtime_dir: &std::path::Path, is_guess: bool) {
    let shown = runtime_dir.display();
    if is_guess {
        output::say(&format!(
            "nothing to restore in {shown}, but the broken file may name another runtime_dir: mend it and try again"
        ));
        return;
    }
    output::say(&format!("nothing to restore: Minerva holds no knob (no journal in {shown})"));
    if let Ok(Some(pid)) = InstanceLock::holder(runtime_dir) {
        output::say(&format!("minervad (pid {pid}) runs, and writes when it enforces"));
    }
}

#[cfg(test)]
mod tests {
    use super::restore_background;
    use minerva_linux_actuate::{InstanceLock, RestoreWhen, WriterSettings};
    use std::fs::{self, File};

    #[test]
    fn work_that_goes_on_without_a_daemon_is_stopped_and_that_of_one_is_left_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let (run, group) = (root.path().join("run"), root.path().join("group"));
        let runtime = run.join("background/b1");
        for directory in [&runtime, &group] {
            fs::create_dir_all(directory).expect("directories");
        }
        let spec = serde_json::json!({
            "spec": {
                "id": 1, "name": "old", "kind": "delete", "path": root.path(), "identity": { "device": 1, "inode": 2 },
            },
            "place": {
                "runtime": runtime, "state": root.path().join("state"), "groups": { "io": group, "freezer": group },
            },
        });
        fs::write(runtime.join("spec"), spec.to_string()).expect("a file");
        let lives = File::create(runtime.join("lock")).expect("a file");
        lives.lock().expect("a lock");
        let state = group.join("freezer.state");
        let settings = WriterSettings::new(&run, root.path());
        let restored = |when| {
            fs::write(&state, "THAWED").expect("a file");
            restore_background(&settings, when);
            fs::read_to_string(&state).expect("a file")
        };
        let daemon = InstanceLock::acquire(&run).expect("no daemon");
        assert_eq!(restored(RestoreWhen::IfDaemonGone), "THAWED");
        assert_eq!(restored(RestoreWhen::Always), "THAWED", "its daemon looks for others");
        drop(daemon);
        assert_eq!(restored(RestoreWhen::IfDaemonGone), "FROZEN");
        assert_eq!(restored(RestoreWhen::Always), "FROZEN");
    }
}
