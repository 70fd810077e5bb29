//! The parent's end of a worker process.

use super::{Finished, Progress, Report, TenantCgroup, WorkloadSpec};
use crate::error::{At, LabError, Result};
use crate::lifetime::die_with_this_thread;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The program that has the `worker` subcommand: `minerva-lab`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram(pub PathBuf);

impl WorkerProgram {
    /// The running program itself.
    pub fn own() -> Result<Self> {
        Ok(Self(std::env::current_exe().at("find", "the running program")?))
    }
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerResult {
    /// Its own account of the whole.
    pub finished: Finished,
    /// Bytes over time, at least ten times a second while requests completed.
    pub progress: Vec<Progress>,
}

/// What the reading thread has collected.
#[derive(Debug, Default)]
struct Heard {
    progress: Vec<Progress>,
    finished: Option<Finished>,
}

/// A worker process that is ready or working. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    tenant: String,
    child: Child,
    orders: Option<ChildStdin>,
    heard: Arc<Mutex<Heard>>,
    reader: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the process in the cgroup and waits until it is ready to work.
    pub fn spawn(program: &WorkerProgram, spec: &WorkloadSpec, cgroup: Option<&TenantCgroup>) -> Result<Self> {
        let mut command = Command::new(&program.0);
        command.arg("worker").arg("--spec").arg(serde_json::to_string(spec).unwrap_or_default());
        if let Some(cgroup) = cgroup {
            command.arg("--cgroup-processes").arg(cgroup.processes_file());
        }
        // What a terminal sends is for whoever conducts, who then ends the workers in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        die_with_this_thread(&mut command);
        let mut child = command.spawn().at("start the worker", &program.0)?;
        let orders = child.stdin.take();
        let output = child.stdout.take();
        let mut worker = Self { tenant: spec.tenant.clone(), child, orders, heard: Arc::default(), reader: None };
        let Some(output) = output else { return Err(worker.failure()) };
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let ready = output.read_line(&mut line).is_ok() && matches!(serde_json::from_str(&line), Ok(Report::Ready));
        if !ready {
            return Err(worker.failure());
        }
        let heard = Arc::clone(&worker.heard);
        worker.reader = Some(std::thread::spawn(move || listen(output, &heard)));
        Ok(worker)
    }

    /// The process, for whoever watches it from outside.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives the word to begin.
    pub fn start(&mut self) -> Result<()> {
        self.order()
    }

    /// Stands still after the request under way, until it is told to go on.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Goes on after [`pause`](Self::pause).
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // The child is not reaped before it is dropped, so the number cannot be another's. One that has ended is fine.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Asks to stop at the next request; [`wait`](Self::wait) then returns what was done.
    pub fn stop(&mut self) {
        // A worker that is done has closed its end.
        let _ = self.order();
    }

    fn order(&mut self) -> Result<()> {
        match &mut self.orders {
            Some(orders) => orders.write_all(b"go\n").at("give an order to the worker", &self.tenant),
            None => Ok(()),
        }
    }

    /// The latest that is known.
    pub fn progress(&self) -> Option<Progress> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).progress.last().copied()
    }

    /// Whether it has reported its end, or ended without.
    pub fn is_done(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the work.
    pub fn wait(mut self) -> Result<WorkerResult> {
        // A panic in there was printed; what was heard until then is judged below.
        let _ = self.reader.take().map(JoinHandle::join);
        let heard = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        match heard.finished {
            Some(finished) => Ok(WorkerResult { finished, progress: heard.progress }),
            None => Err(self.failure()),
        }
    }

    /// What the process said on its standard error, as an error.
    fn failure(&mut self) -> LabError {
        let _ = self.child.kill();
        let mut message = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut message);
        }
        let ended = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let message = if message.trim().is_empty() { ended } else { message.trim().to_owned() };
        LabError::Worker { tenant: self.tenant.clone(), message }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

fn listen(output: BufReader<ChildStdout>, heard: &Mutex<Heard>) {
    for line in output.lines().map_while(std::result::Result::ok) {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_str(&line) {
            Ok(Report::Progress(progress)) => heard.progress.push(progress),
            Ok(Report::Finished(finished)) => heard.finished = Some(finished),
            // Anything else is a worker gone wrong; that no end is reported will tell.
            Ok(Report::Ready) | Err(_) => {}
        }
    }
}
