//! Asks for all processes of a round at once, and waits for a bounded time. The thread that looks at them stays for the next round, unless it
//! does not come back from one process: then it is left to itself, and the next round has another. Where it gets on, and there is merely more
//! than a round has time for, it leaves the rest out, and nobody is to blame.

use crate::aside::AsideThreads;
use crate::open_files::FileTurns;
use crate::process_files::{Answer, Looks, Procfs, Question};
use crate::read::Reader;
use crate::silences::Silences;
use crate::skips::Skips;
use minerva_model::Tenant;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a round waits for its processes. They take microseconds each, and milliseconds with hundreds of files.
const ROUND: Duration = Duration::from_millis(250);
/// One that takes longer does not answer.
const PATIENCE: Duration = Duration::from_millis(200);
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
    /// The same, but answers came until the time of the round was over: whoever was asked then may be about to give its own.
    UnderWay,
    /// There is no thread to ask.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct ProcessAsker {
    procfs: Procfs,
    threads: AsideThreads,
    thread: Option<Asked>,
    /// Whose process it looks at, if it did not come back from the last round.
    suspect: Suspect,
    left: Vec<Left>,
    silences: Silences,
}

/// A thread that answers.
#[derive(Debug)]
struct Asked {
    requests: Sender<Request>,
    done: Receiver<Request>,
    progress: Arc<Mutex<Progress>>,
    /// It did not come back from the last round.
    is_late: bool,
}

#[derive(Debug)]
struct Progress {
    /// In the order of the questions.
    answers: Vec<Answer>,
    /// When the last of them came, or the first was asked for.
    heard: Instant,
    /// Nobody waits for more of them.
    is_over: bool,
}

#[derive(Debug, Default)]
struct Suspect {
    tenant_name: String,
    maker: String,
    pid: u32,
}

/// A thread that does not come back, and whose process it looks at.
#[derive(Debug)]
struct Left {
    maker: String,
    done: Receiver<Request>,
}

impl ProcessAsker {
    pub(crate) fn new(procfs: Procfs) -> Self {
        // One looks on beside those that are left.
        let threads = AsideThreads::new(LEFT_MAX + 1);
        let silences = Silences::default();
        Self { procfs, threads, thread: None, suspect: Suspect::default(), left: Vec::new(), silences }
    }

    /// Forgets those that came back, and leaves the thread to itself that has not come back from the last round.
    pub(crate) fn begin_round(&mut self, skips: &mut Skips) {
        self.silences.begin_round();
        self.left.retain(|left| matches!(left.done.try_recv(), Err(TryRecvError::Empty)));
        let Some(mut asked) = self.thread.take_if(|asked| asked.is_late) else { return };
        let patience = PATIENCE.saturating_sub(lock(&asked.progress).heard.elapsed());
        match asked.done.recv_timeout(patience) {
            Ok(_) => {
                asked.is_late = false;
                self.thread = Some(asked);
            }
            Err(RecvTimeoutError::Timeout) => self.leave(asked, skips),
            Err(RecvTimeoutError::Disconnected) => {}
        }
    }

    /// Whether nobody of this maker's ([`Tenant::maker`]) is to be asked: a process of it has not answered yet, or did so late just now.
    pub(crate) fn is_left_out(&self, maker: &str) -> bool {
        self.silences.is_left_out(maker) || self.left.iter().any(|left| left.maker == maker)
    }

    /// Whether those of this maker's are to be asked last.
    pub(crate) fn is_last(&self, maker: &str) -> bool {
        self.silences.is_recent(maker)
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
        let Some(mut asked) = self.thread.take().or_else(|| Asked::start(&self.threads, &self.procfs)) else {
            return Outcome::Nobody;
        };
        let begin = Instant::now();
        *lock(&asked.progress) = Progress { answers: std::mem::take(answers), heard: begin, is_over: false };
        let round = request.round;
        let sent = asked.requests.send(std::mem::take(request));
        let back = sent.ok().and_then(|()| asked.wait(begin + ROUND));
        let mut progress = lock(&asked.progress);
        std::mem::swap(&mut progress.answers, answers);
        if let Some(back) = back {
            drop(progress);
            *request = back;
            self.thread = Some(asked);
            return Outcome::Answered;
        }
        progress.is_over = true;
        let is_silent = progress.heard.elapsed() >= PATIENCE;
        drop(progress);
        *request = Request { questions: Vec::new(), file_turns: turns, round };
        if answers.len() == count {
            // It came back just now.
            return Outcome::Answered;
        }
        asked.is_late = true;
        self.thread = Some(asked);
        if is_silent { Outcome::Silent } else { Outcome::UnderWay }
    }

    /// Whose process it is that was asked when the round ended.
    pub(crate) fn suspect(&mut self, tenant: &Tenant, pid: u32) {
        let (tenant_name, maker) = (tenant.name.clone(), tenant.maker().to_owned());
        self.suspect = Suspect { tenant_name, maker, pid };
    }

    /// What the outcome means for whoever waits for more, and leaves the thread to itself that looks at a process that does not answer.
    pub(crate) fn tell(&mut self, outcome: &Outcome, skips: &mut Skips) {
        match outcome {
            Outcome::Answered | Outcome::UnderWay => {}
            Outcome::Silent => {
                if let Some(asked) = self.thread.take() {
                    self.leave(asked, skips);
                }
            }
            Outcome::Nobody => {
                let why = "too many processes do not answer, so that none is looked at until one does";
                skips.note("what processes use", 1, || why.to_owned());
            }
        }
    }

    /// The tenants of the suspect's maker are left out until it answers, so that nobody keeps more than one thread.
    fn leave(&mut self, asked: Asked, skips: &mut Skips) {
        let Suspect { tenant_name, maker, pid } = std::mem::take(&mut self.suspect);
        self.silences.note(&maker);
        self.left.push(Left { maker, done: asked.done });
        skips.note(&format!("what {tenant_name} uses"), 1, || {
            format!(
                "process {pid} of it does not answer, as while it begins another program and closes a file whose file system \
                 hangs; of whoever runs it nothing is looked at until it does, and for some rounds if that happens again"
            )
        });
    }
}

impl Asked {
    fn start(threads: &AsideThreads, procfs: &Procfs) -> Option<Self> {
        let (requests, asked) = channel();
        let (tell, done) = channel();
        let progress = Progress { answers: Vec::new(), heard: Instant::now(), is_over: false };
        let progress = Arc::new(Mutex::new(progress));
        let (procfs, told) = (procfs.clone(), Arc::clone(&progress));
        threads.start(move || answer_all(&procfs, &asked, &tell, &told)).ok()?;
        Some(Self { requests, done, progress, is_late: false })
    }

    /// What comes back while answers come, until the end of the round.
    fn wait(&self, end: Instant) -> Option<Request> {
        loop {
            let until = end.min(lock(&self.progress).heard + PATIENCE);
            let left = until.saturating_duration_since(Instant::now());
            match self.done.recv_timeout(left) {
                Ok(back) => return Some(back),
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                Err(_) => return None,
            }
        }
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
            if progress.is_over {
                break;
            }
            progress.answers.push(answer);
            progress.heard = Instant::now();
        }
        if done.send(request).is_err() {
            return;
        }
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "process_asker_tests.rs"]
mod tests;
