//! Streams that outlive a break of the server: a hold is taken again, a wait is asked for again under its key, and the program
//! at the other end notices nothing. They end when the program hangs up, when the server refuses, or when a wait is over.

use crate::message::carried_status;
use crate::upstream::{Carried, Upstream};
use bytes::Bytes;
use minerva_api::v1;
use minerva_client::{Backoff, retry_after};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tonic::{Code, Status};

/// Answers that wait for a slow program.
const ANSWERS_WAITING_MAX: usize = 4;

/// What the answers of a stream come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Held until the program hangs up.
    Hold,
    /// Over with the answer `begin_now`.
    Wait,
}

impl Kind {
    fn is_over_with(self, answer: &Bytes) -> bool {
        let begins = |response: v1::CoordinateResponse| {
            matches!(response.answer, Some(v1::coordinate_response::Answer::BeginNow(_)))
        };
        self == Self::Wait && v1::CoordinateResponse::decode(answer.clone()).is_ok_and(begins)
    }
}

/// The answers of a stream.
pub(crate) type Answers = mpsc::Receiver<Result<Bytes, Status>>;

/// Opens the stream, and opens it again whenever the server was away. Dropping the answers hangs up, on the server too.
pub(crate) fn open(upstream: Upstream, request: Carried, kind: Kind) -> Answers {
    start(upstream, request, kind, false)
}

/// The same for a stream that the agent before this one had: its program has been answered.
pub(crate) fn open_again(upstream: Upstream, request: Carried, kind: Kind) -> Answers {
    start(upstream, request, kind, true)
}

fn start(upstream: Upstream, request: Carried, kind: Kind, is_answered: bool) -> Answers {
    let (tell, answers) = mpsc::channel(ANSWERS_WAITING_MAX);
    tokio::spawn(async move {
        let resumed = Resumed { upstream, request, kind, tell: tell.clone(), is_answered };
        tokio::select! {
            () = resumed.run() => {}
            () = tell.closed() => {}
        }
    });
    answers
}

struct Resumed {
    upstream: Upstream,
    request: Carried,
    kind: Kind,
    tell: mpsc::Sender<Result<Bytes, Status>>,
    /// The program has had an answer: from then on it does not learn of what passes.
    is_answered: bool,
}

impl Resumed {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let status = match self.once(&mut backoff).await {
                Ok(()) => return,
                Err(status) => status,
            };
            let passes = self.is_answered && status.code() == Code::ResourceExhausted;
            if !self.upstream.is_away(&status) && !passes {
                // A program that has hung up meanwhile needs no answer.
                let _ = self.tell.send(Err(carried_status(&status))).await;
                return;
            }
            sleep(backoff.after(retry_after(&status), fastrand::f64())).await;
        }
    }

    /// One stream of the server, to its end; without an error when there is nothing more to come.
    async fn once(&mut self, backoff: &mut Backoff) -> Result<(), Status> {
        let mut answers = self.upstream.stream(&self.request).await?;
        while let Some(answer) = answers.message().await? {
            self.upstream.was_there();
            backoff.reset();
            self.is_answered = true;
            let is_over = self.kind.is_over_with(&answer);
            if self.tell.send(Ok(answer)).await.is_err() || is_over {
                return Ok(());
            }
        }
        Err(Status::unavailable("the server ended the stream"))
    }
}
