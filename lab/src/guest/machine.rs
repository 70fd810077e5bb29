//! QEMU's process.

use super::architecture::Architecture;
use super::error::GuestError;
use super::folder::GuestFolder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::ErrorKind;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How often the progress callback is called while a guest runs.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// How often it is looked whether it is time to cut a guest's power.
const CUT_STEP: Duration = Duration::from_millis(5);

/// A process, killed when dropped.
pub(super) struct Process(pub(super) Child);

/// QEMU.
pub(super) struct Machine {
    process: Process,
    program: &'static str,
}

/// How a guest ended.
#[derive(Debug)]
pub(super) enum Ended {
    ByItself,
    /// Killed, because it was time to.
    ByCut,
}

impl Machine {
    /// Starts QEMU for these processors.
    pub(super) fn start(command: &mut Command, architecture: Architecture) -> Result<Self, GuestError> {
        let (program, package) = architecture.qemu();
        let child = command.spawn().map_err(|source| match source.kind() {
            ErrorKind::NotFound => GuestError::MissingProgram { program, package },
            _ => GuestError::at("start", program)(source),
        })?;
        Ok(Self { process: Process(child), program })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Waits for the machine's end, or kills it when it is time to; nothing when neither came in time.
    pub(super) fn wait(
        &mut self,
        place: &GuestFolder<'_>,
        timeout: Duration,
        mut cut: Option<&mut dyn FnMut(&str) -> bool>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Ended>, GuestError> {
        let (id, program) = (self.id(), self.program);
        let failed = || GuestError::at("wait for", program);
        let pid = Pid::from_child(&self.process.0);
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed()(error.into()))?;
        let (start, mut told) = (Instant::now(), Instant::now());
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let step = left.min(if cut.is_some() { CUT_STEP } else { PROGRESS_INTERVAL });
            let span = Timespec { tv_sec: step.as_secs() as i64, tv_nsec: i64::from(step.subsec_nanos()) };
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&span)) {
                Ok(0) if left.is_zero() => return Ok(None),
                Ok(0) if cut.as_mut().is_some_and(|is_time| is_time(&place.text("stdout"))) => {
                    let child = &mut self.process.0;
                    child.kill().and_then(|()| child.wait()).map_err(failed())?;
                    return Ok(Some(Ended::ByCut));
                }
                Ok(0) if told.elapsed() >= PROGRESS_INTERVAL => {
                    told = Instant::now();
                    progress(&format!("guest {id} runs for {} s", start.elapsed().as_secs()));
                }
                Ok(0) => {}
                Ok(_) => return self.process.0.wait().map(|_| Some(Ended::ByItself)).map_err(failed()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed()(error.into())),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
