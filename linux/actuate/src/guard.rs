//! The guard: a small process that the daemon starts and that outlives it. It holds the read end of a pipe; when the
//! write end closes, the daemon is dead, however it died, and the guard puts everything back. It does the same when the
//! daemon lives but has not renewed its lease. So limits do not stay behind even where no systemd watches.

use crate::error::ActuateError;
use crate::lease::{self, boottime_now};
use crate::lock::InstanceLock;
use crate::report::RestoreReport;
use crate::restore::{RestoreWhen, restore};
use crate::runtime_dir::RuntimeDir;
use crate::settings::WriterSettings;
use minerva_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// How often the lease is looked at.
const LOOK_EVERY: Nanos = Nanos::SECOND;

/// A dying daemon closes its files one after the other: the pipe may close a moment before the lock.
const WAIT_FOR_LOCK: Duration = Duration::from_millis(20);

/// The daemon's end of the guard.
#[derive(Debug)]
pub struct Guard {
    child: Child,
}

impl Guard {
    /// Starts `command`, which must call [`run_guard`] with its standard input. It gets a process group of its own, so
    /// that Ctrl-C in the daemon's terminal does not end it too. To be called after [`InstanceLock::acquire`].
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        Ok(Self { child })
    }

    /// The guard's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the guard still guards; if not, the daemon should start another.
    pub fn is_alive(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Dismisses the guard and waits for its end. To be called after [`crate::Writer::close_clean`]: a guard that finds a
    /// journal stays until this process ends.
    pub fn finish(mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.child.wait()
    }
}

/// What the guard process does: waits until the write end of `pipe` closes, then restores and returns; when the journal is
/// gone there is nothing to restore. Meanwhile it restores whenever the lease ran out and stayed so for the grace. Once the
/// daemon is gone `gone` is called first, to begin to stop whoever it let run: a service manager that saw it die may give this
/// process no time for all. It must wait for nothing, as knobs stay as they are meanwhile; it is called again if the restore has to
/// be tried again. `told` hears of every restore, also of one that found no knob, and may wait.
pub fn run_guard(
    settings: &WriterSettings,
    pipe: impl AsFd,
    mut gone: impl FnMut(),
    mut told: impl FnMut(&RestoreReport),
) -> Result<(), ActuateError> {
    let daemon = InstanceLock::holder(&settings.runtime_dir)?;
    let mut watch = LeaseWatch::default();
    loop {
        if has_closed(pipe.as_fd(), watch.look_again_after(settings))? {
            let holder = InstanceLock::holder(&settings.runtime_dir)?;
            if holder.is_some() && holder != daemon {
                // The next daemon put everything back when it started, and what is held now is its own.
                return Ok(());
            }
            if holder.is_none() {
                gone();
            }
            if let Some(report) = unless_busy(restore(settings, RestoreWhen::IfDaemonGone))?
                && report.not_due.is_none()
            {
                told(&report);
                return Ok(());
            }
            thread::sleep(WAIT_FOR_LOCK);
        }
        if let Some(report) = watch.look(settings)? {
            told(&report);
        }
    }
}

/// An undo lock that is held is released when its holder goes on or dies: the guard tries again, for as long as it takes.
fn unless_busy(result: Result<RestoreReport, ActuateError>) -> Result<Option<RestoreReport>, ActuateError> {
    match result {
        Ok(report) => Ok(Some(report)),
        Err(ActuateError::JournalBusy { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sees a lease that ran out twice before acting: a machine that wakes from sleep finds every lease run out, and its
/// daemon must get the time to renew.
#[derive(Debug, Default)]
struct LeaseWatch {
    run_out: Option<Nanos>,
    restored_for: Option<Nanos>,
}

impl LeaseWatch {
    fn look_again_after(&self, settings: &WriterSettings) -> Nanos {
        match self.run_out {
            Some(_) => settings.lease_grace.max(Nanos::from_millis(1)),
            None => LOOK_EVERY,
        }
    }

    fn look(&mut self, settings: &WriterSettings) -> Result<Option<RestoreReport>, ActuateError> {
        let Some(dir) = RuntimeDir::open(&settings.runtime_dir)? else { return Ok(None) };
        let until = lease::valid_until(&dir)?;
        let now = boottime_now();
        if now <= until + settings.lease_grace || self.restored_for == Some(until) {
            self.run_out = None;
            return Ok(None);
        }
        if self.run_out.replace(until) != Some(until) {
            return Ok(None);
        }
        let Some(report) = unless_busy(restore(settings, RestoreWhen::IfLeaseExpired(now)))? else { return Ok(None) };
        self.run_out = None;
        // Nothing was held: the same lease, or none, may be found again when something is.
        if report.not_due.is_some() || report.is_empty() {
            return Ok(None);
        }
        self.restored_for = Some(until);
        Ok(Some(report))
    }
}

fn has_closed(pipe: BorrowedFd<'_>, patience: Nanos) -> Result<bool, ActuateError> {
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(patience.0 % 1_000_000_000).unwrap_or(0),
    };
    let mut fds = [PollFd::from_borrowed_fd(pipe, PollFlags::empty())];
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) => Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(ActuateError::io("wait on", Path::new("the pipe from the daemon"))(errno)),
    }
}
