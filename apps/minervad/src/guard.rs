//! The guard: this program again, as a small process that outlives the daemon and puts everything back when it dies. It works
//! where no service manager watches, and after `kill -9`.

use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{Guard, RestoreReport, WriterSettings, run_guard};
use minerva_linux_background::{Stopping, stop_all};
use minerva_linux_observe::Roots;
use std::cell::RefCell;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where this host keeps what the writer writes to.
pub(crate) fn writer_settings(config: &Config, roots: &Roots) -> WriterSettings {
    let mut settings = WriterSettings::new(&config.daemon.runtime_dir, &roots.cgroup);
    settings.sys_root.clone_from(&roots.sys);
    settings
}

/// Starts the guard.
pub(crate) fn spawn(config: &Config, roots: &Roots) -> anyhow::Result<Guard> {
    let settings = writer_settings(config, roots);
    // By the link of the kernel: after an upgrade the path holds another version, which may read another journal.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("minervad").arg("guard").arg(&settings.runtime_dir).arg(&settings.cgroup_root);
    Guard::spawn(command).context("failed to start the guard process; daemon.guard = false does without it")
}

/// What the guard process does.
pub(crate) fn run(runtime_dir: &Path, cgroup_root: PathBuf) -> anyhow::Result<()> {
    let settings = WriterSettings::new(runtime_dir, cgroup_root);
    let stop = || stop_all(runtime_dir, &settings.sys_root);
    let begun: RefCell<Option<Stopping>> = RefCell::new(None);
    // Work that goes on would go on whoever comes to the disk. Once, also if the restore has to be tried again.
    let gone = || {
        begun.borrow_mut().get_or_insert_with(stop);
    };
    // The daemon's standard error may have died with it, and that must not keep anything from being put back.
    let wait = |stopping: Stopping| {
        for error in stopping.wait() {
            let error = error.in_full();
            drop(writeln!(std::io::stderr(), "minervad guard: background work was not stopped in full: {error}"));
        }
    };
    let tell = |report: &RestoreReport| {
        // The daemon may be stuck, not gone: then it begins only now.
        let stopping = begun.take().unwrap_or_else(stop);
        if !report.is_empty() {
            drop(writeln!(std::io::stderr(), "minervad guard: the daemon is gone or stuck\n{report}"));
        }
        wait(stopping);
    };
    let outcome = run_guard(&settings, std::io::stdin(), gone, tell).context("the guard failed");
    if outcome.is_err() {
        // What has begun would end with this process.
        begun.take().into_iter().for_each(wait);
    }
    outcome
}
