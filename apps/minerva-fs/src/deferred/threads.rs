//! The threads that move files, one for each destination: one that does not answer, as a network file system whose server is gone, holds
//! up nothing that goes elsewhere.

use super::Deferred;
use super::disks::Destination;
use super::mover::Moves;
use crate::looker::Looker;
use crate::user::keep_to_quotas;
use anyhow::Context;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So often it is looked for destinations without a thread.
const LOOK: Duration = Duration::from_millis(200);
/// How often the operator is told of files that no link leads to.
const TELL_LEFT: Duration = Duration::from_secs(86_400);
/// So long a destination may take to answer where the service begins or ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// And so long all of them, however much there is to be seen to. A service manager waits a minute and a half for a service to begin.
const PATIENCE_OF_ALL: Duration = Duration::from_secs(30);

/// Starts the thread that sees to the others. What an earlier process left has been seen to when this returns, except at destinations that
/// do not answer: there it will be once they do. Its end waits for the pieces that are under way.
pub(crate) fn start(deferred: Arc<Deferred>) -> anyhow::Result<Looker> {
    let mut threads = Threads { deferred: Arc::clone(&deferred), running: BTreeMap::new() };
    threads.start_missing().context("failed to start a thread")?;
    threads.wait_until_settled();
    deferred.tell_left();
    let mut told_left = Instant::now();
    Looker::start("movers", move |stop| {
        while !stop.comes_within(LOOK) {
            if told_left.elapsed() > TELL_LEFT {
                told_left = Instant::now();
                deferred.tell_left();
            }
            // Where there is no room for a thread there may be later.
            let _ = threads.start_missing();
            threads.tell_silence();
        }
        threads.stop();
    })
}

/// One for each destination.
struct Threads {
    deferred: Arc<Deferred>,
    running: BTreeMap<Destination, Running>,
}

struct Running {
    stop: Sender<()>,
    /// Ends once what an earlier process left there has been seen to.
    settled: Receiver<()>,
    /// Ends when the thread does.
    ended: Receiver<()>,
    /// When it last did not wait for its destination.
    answered: Arc<Mutex<Instant>>,
    thread: JoinHandle<()>,
}

impl Threads {
    fn start_missing(&mut self) -> std::io::Result<()> {
        self.running.retain(|_, running| !running.thread.is_finished());
        for destination in self.deferred.destinations() {
            if !self.running.contains_key(&destination) {
                let running = Running::start(Arc::clone(&self.deferred), destination)?;
                self.running.insert(destination, running);
            }
        }
        Ok(())
    }

    fn wait_until_settled(&self) {
        let begun = Instant::now();
        for (destination, running) in &self.running {
            while running.settled.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if running.silent() > PATIENCE {
                    eprintln!(
                        "minerva-fs: the disk of {:?} does not answer; files that are to go there wait until it does",
                        self.deferred.directory_at(*destination)
                    );
                    break;
                }
                if begun.elapsed() > PATIENCE_OF_ALL {
                    eprintln!(
                        "minerva-fs: what an earlier process left of files that are to go elsewhere is still being looked at; they move \
                         once it has been"
                    );
                    return;
                }
            }
        }
    }

    /// Users of files are told why theirs do not move.
    fn tell_silence(&self) {
        for (destination, running) in &self.running {
            let silent = running.silent();
            if silent > PATIENCE {
                self.deferred.tell_silence(*destination, silent);
            }
        }
    }

    /// Tells all of them to end, then waits for each.
    fn stop(self) {
        let Self { deferred, running } = self;
        let mut threads = Vec::new();
        for (destination, Running { stop, ended, .. }) in running {
            drop(stop);
            threads.push((destination, ended));
        }
        let until = Instant::now() + PATIENCE;
        for (destination, ended) in threads {
            if ended.recv_timeout(until.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Timeout) {
                eprintln!(
                    "minerva-fs: the disk of {:?} does not answer; what waits to go there moves after the next start",
                    deferred.directory_at(destination)
                );
            }
        }
    }
}

impl Running {
    fn start(deferred: Arc<Deferred>, destination: Destination) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let (settling, settled) = channel();
        let (ending, ended) = channel();
        let answered = Arc::new(Mutex::new(Instant::now()));
        let answers = Arc::clone(&answered);
        let work = move || {
            let has_answered = || *answers.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            become_idle();
            if let Err(error) = keep_to_quotas() {
                eprintln!("minerva-fs: disk quotas do not hold for files that are moved: {error}");
            }
            deferred.settle_found(destination, has_answered);
            // Whoever waits for it is told by its end.
            drop::<Sender<()>>(settling);
            let mut moves = Moves::new(&deferred, destination);
            while let Some(pause) = moves.look() {
                has_answered();
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            moves.abandon();
            drop::<Sender<()>>(ending);
        };
        let thread = thread::Builder::new().name("mover".to_owned()).spawn(work)?;
        Ok(Self { stop, settled, ended, answered, thread })
    }

    /// For how long its destination has not answered.
    fn silent(&self) -> Duration {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// This thread's requests come after everybody else's, where the elevator knows classes (ioprio_set(2)).
fn become_idle() {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_IDLE: libc::c_int = 3 << 13;
    // SAFETY: the call takes three numbers; 0 is the calling thread.
    let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
}
