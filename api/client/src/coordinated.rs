//! An operation that was asked about: waits until it may begin, and tells when it is done.

mod begin;

use crate::backoff::Backoff;
use crate::cache::{Deferral, Pool};
use crate::error::{Error, is_refusal, is_worth_another_try, retry_after};
use crate::link::{Link, SILENCE};
use crate::operation::{Answer, Operation, asked_ago};
use begin::{Either, Limit};
use minerva_api::cache::socket;
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tonic::{Code, Status};

pub use begin::Begun;

/// An operation that was asked about. Dropping it without [`Coordinated::finish`] tells the server that it will not be done.
#[derive(Debug)]
#[must_use = "dropping it cancels the operation"]
pub struct Coordinated {
    key: String,
    bytes: u64,
    /// Where it goes in place of its disk: the pool, and who serves that.
    pool: Option<(Pool, PathBuf)>,
    answer: Answer,
    begun: watch::Receiver<Option<Begun>>,
    /// How the operation ends; dropped, as cancelled. Absent without a server.
    end: Option<oneshot::Sender<End>>,
}

/// A server, or a pool's service, that kept a question so long made the deadline too near, and not the program.
const LATE: Duration = Duration::from_secs(1);

/// How an operation ends.
#[derive(Debug)]
enum End {
    /// It is done; told when the server knows.
    Finished(oneshot::Sender<Result<(), Error>>),
    /// It goes on without this program.
    Left,
}

impl Coordinated {
    /// Without a server everything begins at once.
    pub(crate) fn without_server(key: &str, operation: &Operation) -> Self {
        let (_, begun) = watch::channel(Some(Begun::Unserved));
        Self { key: key.to_owned(), bytes: operation.bytes, pool: None, answer: Answer::Now, begun, end: None }
    }

    /// Returns with the first answer, or, when the server does not give one, when the operation may begin without it. If the server
    /// refused it until then, that is an error.
    pub(crate) async fn ask(link: Link, key: &str, operation: &Operation) -> Result<Self, Error> {
        let (tell, begun) = watch::channel(None);
        let (first, answered) = oneshot::channel();
        let (end, ending) = oneshot::channel();
        let limit = Limit::new(operation, link.patience);
        let pool = operation.pool.map(|pool| (pool, operation.cache_socket.clone().unwrap_or_else(socket)));
        let offer = match pool.clone() {
            Some((pool, at)) => limit.offer(pool, at).await,
            None => None,
        };
        let request = operation.request(key, offer);
        let coordinator = Coordinator { limit, link, request, refusal: None, first: Some(first), begun: tell };
        tokio::spawn(coordinator.drive(ending));
        // The task answers before it ends, unless the runtime does.
        let answer = answered.await.unwrap_or(Ok(Answer::Now))?;
        let pool = pool.filter(|_| answer == Answer::Pool);
        Ok(Self { key: key.to_owned(), bytes: operation.bytes, pool, answer, begun, end: Some(end) })
    }

    /// The key it was asked for under.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The server's first answer.
    pub const fn answer(&self) -> Answer {
        self.answer
    }

    /// Makes the file that the operation writes, empty, in place of what was there: in the pool, with a link at `path`, where the
    /// server said so ([`Begun::InPool`]), and else at `path` itself. Where the pool refuses after all, it is at `path` too.
    pub fn create(&self, path: impl Into<PathBuf>) -> io::Result<File> {
        let path = path.into();
        match &self.pool {
            Some((pool, socket)) => Deferral::new(path).pool(*pool).socket(socket).bytes(self.bytes).create(),
            None => File::options().read(true).write(true).create(true).truncate(true).open(path),
        }
    }

    /// Waits until the operation may begin; never beyond its deadline, whatever becomes of the server. May be dropped and
    /// called again.
    pub async fn wait(&mut self) -> Begun {
        match self.begun.wait_for(Option::is_some).await.map(|begun| *begun) {
            Ok(Some(begun)) => begun,
            // The runtime is ending.
            _ => Begun::Unserved,
        }
    }

    /// It is done; the measured time makes the next estimate better. An error says that the server could not be told, which
    /// changes nothing for this program.
    pub async fn finish(mut self) -> Result<(), Error> {
        let (told, result) = oneshot::channel();
        match self.end.take().map(|end| end.send(End::Finished(told))) {
            Some(Ok(())) => result.await.unwrap_or(Ok(())),
            _ => Ok(()),
        }
    }

    /// Somebody else does it, such as the next command of a script. The server finds out by itself when it is over.
    pub fn leave(mut self) {
        if let Some(end) = self.end.take() {
            // A task that has ended has nothing to leave.
            let _ = end.send(End::Left);
        }
    }

    /// It will not be done. Dropping does the same without waiting for it.
    pub async fn cancel(mut self) {
        drop(self.end.take());
        // The task ends, and with it its side of the channel, when the server was told.
        while self.begun.changed().await.is_ok() {}
    }
}

/// What the task works with.
struct Coordinator {
    link: Link,
    /// As it was asked first.
    request: v1::CoordinateRequest,
    limit: Limit,
    /// What the server said to the last try, if it said no; nothing once it has taken the next, or hangs over it.
    refusal: Option<Error>,
    /// Used once: with the first answer.
    first: Option<oneshot::Sender<Result<Answer, Error>>>,
    begun: watch::Sender<Option<Begun>>,
}

impl Coordinator {
    /// From the question to the end of the operation.
    async fn drive(mut self, mut ending: oneshot::Receiver<End>) {
        let end = tokio::select! {
            begun = self.wait_to_begin() => match begun {
                Ok(begun) => {
                    self.answer(Ok(if begun == Begun::InPool { Answer::Pool } else { Answer::Now }));
                    self.begun.send_replace(Some(begun));
                    match begun {
                        // The server knows of no operation.
                        Begun::InPool => return,
                        Begun::Told => ending.await,
                        Begun::InTime | Begun::Unserved => self.tell_begun_until(ending).await,
                    }
                }
                Err(refusal) => {
                    self.answer(Err(refusal));
                    return;
                }
            },
            end = &mut ending => end,
        };
        match end {
            Ok(End::Finished(told)) => {
                // Whoever finished it may not wait for the answer.
                let _ = told.send(self.end(true).await);
            }
            Ok(End::Left) => {}
            // A server that cannot be told finds out by itself.
            Err(_) => drop(self.end(false).await),
        }
    }

    fn answer(&mut self, answer: Result<Answer, Error>) {
        if let Some(first) = self.first.take() {
            let _ = first.send(answer);
        }
    }

    /// Asks, and asks again under the same key when the server was away.
    async fn wait_to_begin(&mut self) -> Result<Begun, Error> {
        let mut backoff = Backoff::new();
        loop {
            let passed = self.limit.passed();
            let status = match self.ask_once(&mut backoff, passed).await {
                Ok(begun) => return self.unless_refused(begun),
                Err(status) => status,
            };
            let is_absent = self.first.is_some() && self.link.is_absence(&status);
            if is_absent || !is_worth_another_try(&status) {
                let refusal = Error::refused(&status);
                if self.is_late(passed, &refusal) {
                    return Ok(Begun::InTime);
                }
                self.refusal = Some(refusal);
                return self.unless_refused(Begun::Unserved);
            }
            self.refusal = is_refusal(&status).then(|| Error::refused(&status));
            self.limit.away_since.get_or_insert_with(Instant::now);
            let wait = sleep(backoff.after(retry_after(&status), fastrand::f64()));
            if let Some((at, why)) = self.limit.next() {
                tokio::select! {
                    () = wait => {}
                    () = sleep_until(at) => return self.unless_refused(why),
                }
            } else {
                wait.await;
            }
        }
    }

    /// An operation that was answered already is not failed by a server that knows it no more.
    fn unless_refused(&mut self, begun: Begun) -> Result<Begun, Error> {
        self.refusal.take().filter(|_| self.first.is_some()).map_or(Ok(begun), Err)
    }

    /// Whether it is refused only because it could not be asked about sooner: what can no longer be done in time is to begin at once.
    fn is_late(&self, passed: Duration, refusal: &Error) -> bool {
        let is_bound = matches!(self.request.deadline, Some(Deadline::DoneWithinNs(_)));
        is_bound && passed >= LATE && matches!(refusal.refusal(), Some("out-of-range" | "too-late"))
    }

    /// One stream, until it may begin or the stream ends. So much has passed since the program asked.
    async fn ask_once(&mut self, backoff: &mut Backoff, passed: Duration) -> Result<Begun, Status> {
        let (begin, mut server) = (Instant::now(), self.link.participation());
        let mut answers = match self.limit.or_in_time(server.coordinate(asked_ago(&self.request, passed))).await {
            Either::Came(answers) => answers?.into_inner(),
            Either::Begin(why) => {
                self.refusal = self.refusal.take().filter(|_| begin.elapsed() < SILENCE);
                return Ok(why);
            }
        };
        self.refusal = None;
        loop {
            let answer = match self.limit.or_in_time(answers.message()).await {
                Either::Came(answer) => answer?,
                Either::Begin(why) => return Ok(why),
            };
            let Some(answer) = answer else { return Err(Status::unavailable("the server ended the wait")) };
            backoff.reset();
            self.link.was_served();
            self.limit.away_since = None;
            let answer = Answer::of_response(&answer);
            self.answer(Ok(answer));
            match answer {
                Answer::Now => return Ok(Begun::Told),
                Answer::Pool => return Ok(Begun::InPool),
                Answer::After { .. } | Answer::Wait { .. } => (),
            }
            if let Some(span) = answer.promise() {
                self.limit.promised(span);
            }
        }
    }

    /// Tells the server that it has begun by itself, for as long as that takes and no longer than until its end.
    async fn tell_begun_until(&self, mut ending: oneshot::Receiver<End>) -> Result<End, oneshot::error::RecvError> {
        let request = v1::BeginRequest { request_id: self.request.request_id.clone() };
        let told = self.link.call(|mut server| {
            let request = request.clone();
            async move { server.begin(request).await }
        });
        tokio::select! {
            // The server learns of the operation's begin or does not; the operation is under way.
            _ = told => ending.await,
            end = &mut ending => end,
        }
    }

    async fn end(&self, done: bool) -> Result<(), Error> {
        let key = self.request.request_id.clone();
        let result = if done {
            let request = v1::FinishRequest { request_id: key };
            let told = self.link.call(|mut server| {
                let request = request.clone();
                async move { server.finish(request).await }
            });
            told.await.map(drop)
        } else {
            let request = v1::CancelRequest { request_id: key };
            let told = self.link.call(|mut server| {
                let request = request.clone();
                async move { server.cancel(request).await }
            });
            told.await.map(drop)
        };
        match result {
            // It is over, by whatever way the server learnt it.
            Err(Error::Refused { code: Code::NotFound, .. }) => Ok(()),
            result => result,
        }
    }
}
