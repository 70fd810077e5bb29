//! `minerva-ctl restore`: every knob as it was before Minerva. Needs no daemon, and where no file was named not even a readable
//! one: with a broken one the default places are tried, because putting back must work when nothing else does.

use crate::output::{self, CommandStatus};
use crate::place::{self, OperatorFile};
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{
    InstanceLock, ProbeLeft, RestoreReport, RestoreWhen, Swept, WriterSettings, has_journal, restore, sweep_probes,
};
use minerva_linux_background::{
    ArrayLeft, ProcessorsLeft, Stopping, put_arrays_back, put_arrays_back_and_stop_all, put_processors_back,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was done, as programs are told.
#[derive(Debug, Default, Serialize)]
struct Restored {
    #[serde(flatten)]
    report: RestoreReport,
    /// md arrays that background work had slowed.
    arrays: Vec<ArrayLeft>,
    /// Groups of background work that were confined to some of the processors.
    confined: Vec<ProcessorsLeft>,
    /// What killed probes had left.
    probes_removed: Vec<PathBuf>,
    /// What is left of them still, as it could not be put back.
    probes_left: Vec<ProbeLeft>,
    /// What background work could not be stopped, or not in time, and why.
    work_not_stopped: Vec<String>,
    /// Why the default places were taken.
    config_error: Option<String>,
}

/// Restores and says what became of each knob. A finding is a knob that could not be put back, a daemon that will write again, work that
/// could not be stopped, and that nothing was found where only the default places could be searched.
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
    let PutBack { report, arrays, confined, stopping } = put_back(file, &settings, when)?;
    let Swept { removed: probes_removed, left: probes_left } = sweep_probes(&settings);
    // Last: the kernel may not be done with it for long.
    let work_not_stopped = stopping.into_iter().flat_map(Stopping::wait).map(|error| error.in_full()).collect();
    let restored = Restored { report, arrays, confined, probes_removed, probes_left, work_not_stopped, config_error };
    if json {
        output::json(&restored)?;
    } else {
        restored.say(&settings.runtime_dir)?;
    }
    Ok(CommandStatus::found_if(restored.has_finding(if_daemon_gone)))
}

impl Restored {
    fn is_nothing(&self) -> bool {
        let Self { report, arrays, confined, probes_removed, probes_left, work_not_stopped, .. } = self;
        report.is_empty()
            && (arrays.is_empty() && confined.is_empty() && work_not_stopped.is_empty())
            && (probes_removed.is_empty() && probes_left.is_empty())
    }

    fn say(&self, runtime_dir: &Path) -> anyhow::Result<()> {
        for path in &self.probes_removed {
            output::say(&format!("removed {} of a killed probe", output::path(path)));
        }
        self.probes_left.iter().for_each(|left| output::say(&of_probe(left)));
        self.arrays.iter().for_each(|array| output::say(&sentence(array)));
        self.confined.iter().for_each(|group| output::say(&of_processors(group)));
        for why in &self.work_not_stopped {
            output::say(&format!("background work was not stopped in full: {why}"));
        }
        if self.is_nothing() {
            say_nothing_held(runtime_dir, self.config_error.is_some());
        } else if !self.report.is_empty() {
            output::text(&format!("{}\n", self.report))?;
        }
        Ok(())
    }

    fn has_finding(&self, if_daemon_gone: bool) -> bool {
        let Self { report, arrays, confined, .. } = self;
        // That a daemon runs is what `--if-daemon-gone` was asked about, not a finding.
        let left_alone = if_daemon_gone && report.not_due.is_some();
        let searched_in_vain = self.is_nothing() && self.config_error.is_some();
        let is_left =
            arrays.iter().any(|array| array.error.is_some()) || confined.iter().any(|group| group.error.is_some());
        let found = is_left || !report.is_complete() || report.beside_daemon.is_some() || searched_in_vain;
        (!left_alone && found) || !self.probes_left.is_empty() || !self.work_not_stopped.is_empty()
    }
}

/// What was put back, and background work that begins to stop.
#[derive(Default)]
struct PutBack {
    report: RestoreReport,
    arrays: Vec<ArrayLeft>,
    confined: Vec<ProcessorsLeft>,
    stopping: Vec<Stopping>,
}

/// Puts back what the directory holds that the file says; where that is nothing, what the default one holds: a daemon that was started before
/// the file said another place keeps its journal there. With a file that was named the default place may be another daemon's.
fn put_back(file: &OperatorFile, settings: &WriterSettings, when: RestoreWhen) -> anyhow::Result<PutBack> {
    let put_back_in = |settings: &WriterSettings| -> anyhow::Result<PutBack> {
        let report = restore(settings, when).context("failed to restore; be root")?;
        Ok(PutBack { report, ..restore_background(settings, when) })
    };
    let mut done = put_back_in(settings)?;
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
    let mut former = put_back_in(&WriterSettings { runtime_dir: default, ..settings.clone() })?;
    former.stopping.append(&mut done.stopping);
    Ok(former)
}

/// The speeds of md arrays that background work slowed, and the processors that its groups may use, if nobody is there who does it still or
/// it is to be done all the same. Work that goes on without a daemon is stopped: nobody would look for others. The guard did that, unless it
/// was killed too, as systemd does once the daemon is dead.
fn restore_background(settings: &WriterSettings, when: RestoreWhen) -> PutBack {
    let runs = InstanceLock::holder(&settings.runtime_dir).is_ok_and(|pid| pid.is_some());
    if when == RestoreWhen::IfDaemonGone && runs {
        return PutBack::default();
    }
    // Before the work is stopped, which lets its groups use all processors again too, and then nobody would be told.
    let confined = put_processors_back(&settings.runtime_dir);
    let (runtime_dir, sys) = (&settings.runtime_dir, &settings.sys_root);
    if runs {
        return PutBack { arrays: put_arrays_back(runtime_dir, sys), confined, ..PutBack::default() };
    }
    let (arrays, stopping) = put_arrays_back_and_stop_all(runtime_dir, sys);
    let stopping = vec![stopping];
    PutBack { arrays, confined, stopping, ..PutBack::default() }
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

fn say_nothing_held(runtime_dir: &Path, is_guess: bool) {
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
    use super::{Restored, restore_background};
    use minerva_linux_actuate::{InstanceLock, RestoreWhen, WriterSettings};
    use minerva_linux_background::Stopping;
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
        let not_stopped = |when| -> Vec<String> {
            let stopping = restore_background(&settings, when).stopping;
            stopping.into_iter().flat_map(Stopping::wait).map(|error| error.in_full()).collect()
        };
        let restored = |when| {
            fs::write(&state, "THAWED").expect("a file");
            assert_eq!(not_stopped(when), [""; 0]);
            fs::read_to_string(&state).expect("a file")
        };
        let daemon = InstanceLock::acquire(&run).expect("no daemon");
        assert_eq!(restored(RestoreWhen::IfDaemonGone), "THAWED");
        assert_eq!(restored(RestoreWhen::Always), "THAWED", "its daemon looks for others");
        drop(daemon);
        assert_eq!(restored(RestoreWhen::IfDaemonGone), "FROZEN");
        assert_eq!(restored(RestoreWhen::Always), "FROZEN");
        // It goes on, and nobody tries again.
        fs::remove_dir_all(&group).expect("a group");
        let work_not_stopped = not_stopped(RestoreWhen::Always);
        assert!(work_not_stopped.len() == 1 && work_not_stopped[0].starts_with("old: failed to write"));
        let restored = Restored { work_not_stopped, ..Restored::default() };
        assert!(restored.has_finding(true) && !Restored::default().has_finding(true));
    }
}
