//! Asks for all processes of a round at once, and waits for a bounded time. The thread that looks at them stays for the next round, unless it
//! does not come back from one: then it is left to itself, and the next round has another.

use crate::aside::AsideThreads;
use crate::open_files::FileTurns;
use crate::process_files::{Answer, Looks, Procfs, Question};
use crate::read::Reader;
use crate::skips::Skips;
use minerva_model::Tenant;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a round waits for its processes. They take microseconds each.
const PATIENCE: Duration = Duration::from_millis(250);
/// Threads that may be left to themselves.
const LEFT_MAX: usize = 32;

/// What the thread is asked, and hands back when it has answered all.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) questions: Vec<Question>,
    pub(crate) file_turns: FileTurns,
    pub(crate) round: u64,
}

/// How a round ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Each question has its answer.
    Answered,
    /// As many questions as there are answers have theirs. The process of the next one does not answer.
    Silent,
    /// There is no thread to ask.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct ProcessAsker {
    procfs: Procfs,
    threads: AsideThreads,
    thread: Option<Asked>,
    left: Vec<Left>,
}

/// A thread that answers.
#[derive(Debug)]
struct Asked {
    requests: Sender<Request>,
    done: Receiver<Request>,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Debug, Default)]
struct Progress {
    /// In the order of the questions.
    answers: Vec<Answer>,
    /// Nobody waits for them any more.
    is_left: bool,
}

/// A thread that does not come back, and whose process it looks at.
#[derive(Debug)]
struct Left {
    owner: String,
    done: Receiver<Request>,
}

impl ProcessAsker {
    pub(crate) fn new(procfs: Procfs) -> Self {
        // One looks on beside those that are left.
        Self { procfs, threads: AsideThreads::new(LEFT_MAX + 1), thread: None, left: Vec::new() }
    }

    /// Forgets those that came back.
    pub(crate) fn begin_round(&mut self) {
        self.left.retain(|left| matches!(left.done.try_recv(), Err(TryRecvError::Empty)));
    }

    /// Whether a process of this owner has not answered yet.
    pub(crate) fn is_waiting_for(&self, owner: impl FnOnce() -> String) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let owner = owner();
        self.left.iter().any(|left| left.owner == owner)
    }

    /// Asks, and puts what is answered in time to `answers`, which are empty. If not all is, what the request held is as before, but for its
    /// questions.
    pub(crate) fn ask(&mut self, request: &mut Request, answers: &mut Vec<Answer>) -> Outcome {
        if request.questions.is_empty() {
            return Outcome::Answered;
        }
        let count = request.questions.len();
        let turns = request.file_turns;
        if self.left.len() >= LEFT_MAX {
            return Outcome::Nobody;
        }
        let Some(asked) = self.thread.take().or_else(|| Asked::start(&self.threads, &self.procfs)) else {
            return Outcome::Nobody;
        };
        std::mem::swap(&mut lock(&asked.progress).answers, answers);
        let round = request.round;
        let sent = asked.requests.send(std::mem::take(request));
        let back = sent.ok().and_then(|()| asked.done.recv_timeout(PATIENCE).ok());
        let mut progress = lock(&asked.progress);
        std::mem::swap(&mut progress.answers, answers);
        if let Some(back) = back {
            drop(progress);
            *request = back;
            self.thread = Some(asked);
            return Outcome::Answered;
        }
        progress.is_left = true;
        drop(progress);
        *request = Request { questions: Vec::new(), file_turns: turns, round };
        if answers.len() == count {
            // It came back just now.
            return Outcome::Answered;
        }
        self.left.push(Left { owner: String::new(), done: asked.done });
        Outcome::Silent
    }

    /// Whose process it is that did not answer just now. Its owner's tenants are left out until it does, so that nobody keeps more than one
    /// thread.
    pub(crate) fn waits_for(&mut self, tenant: &Tenant, pid: u32, skips: &mut Skips) {
        if let Some(left) = self.left.last_mut() {
            left.owner = tenant.history_key();
        }
        skips.note(&format!("what {} uses", tenant.name), 1, || {
            format!(
                "process {pid} of it does not answer, as while it begins another program and closes a file whose file system \
                 hangs; of whoever owns it nothing is looked at until it does"
            )
        });
    }
}

impl Asked {
    fn start(threads: &AsideThreads, procfs: &Procfs) -> Option<Self> {
        let (requests, asked) = channel();
        let (tell, done) = channel();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let (procfs, told) = (procfs.clone(), Arc::clone(&progress));
        threads.start(move || answer_all(&procfs, &asked, &tell, &told)).ok()?;
        Some(Self { requests, done, progress })
    }
}

/// Until nobody asks any more.
fn answer_all(procfs: &Procfs, requests: &Receiver<Request>, done: &Sender<Request>, progress: &Mutex<Progress>) {
    let mut reader = Reader::new();
    while let Ok(mut request) = requests.recv() {
        let Request { questions, file_turns, round } = &mut request;
        let mut looks = Looks { procfs, file_turns, reader: &mut reader, round: *round, network_of: None };
        for question in &*questions {
            let answer = looks.look(question);
            let mut progress = lock(progress);
            if progress.is_left {
                return;
            }
            progress.answers.push(answer);
        }
        if done.send(request).is_err() {
            return;
        }
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
