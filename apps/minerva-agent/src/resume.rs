//! Streams that outlive a break of the server: a hold is taken again, a wait is asked for again under its key with what is left of its
//! deadline, and the program at the other end notices nothing. They end when the program hangs up, when the server refuses, or when a wait is over.

use crate::message::carried_status;
use crate::upstream::{Carried, Upstream};
use bytes::Bytes;
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::coordinate_response::Answer as CoordinateAnswer;
use minerva_client::{Backoff, retry_after};
use prost::Message;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

/// Answers that wait for a slow program.
const ANSWERS_WAITING_MAX: usize = 4;

/// A server that was away for so long made a deadline too near, and not the program.
const LATE: Duration = Duration::from_secs(1);

/// What the answers of a stream come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Held until the program hangs up.
    Hold,
    /// Over with the answer `begin_now` or `write_to_pool`.
    Wait,
}

impl Kind {
    fn is_over_with(self, answer: &Bytes) -> bool {
        let begins = |response: v1::CoordinateResponse| {
            matches!(response.answer, Some(CoordinateAnswer::BeginNow(_) | CoordinateAnswer::WriteToPool(_)))
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
        let resumed = Resumed { upstream, request, asked: Instant::now(), kind, tell: tell.clone(), is_answered };
        tokio::select! {
            () = resumed.run() => {}
            () = tell.closed() => {}
        }
    });
    answers
}

struct Resumed {
    upstream: Upstream,
    /// As the program asked.
    request: Carried,
    asked: Instant,
    kind: Kind,
    tell: mpsc::Sender<Result<Bytes, Status>>,
    /// The program has had an answer: from then on it does not learn of what passes.
    is_answered: bool,
}

impl Resumed {
    async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let passed = self.asked.elapsed();
            let status = match self.once(&mut backoff, passed).await {
                Ok(()) => return,
                Err(status) => status,
            };
            let passes = self.is_answered && matches!(status.code(), Code::ResourceExhausted | Code::Unavailable);
            if !self.upstream.is_away(&status) && !passes {
                let answer = if self.is_late(passed, &status) { Ok(begin_now()) } else { Err(carried_status(&status)) };
                // A program that has hung up meanwhile needs no answer.
                let _ = self.tell.send(answer).await;
                return;
            }
            sleep(backoff.after(retry_after(&status), fastrand::f64())).await;
        }
    }

    /// Whether an operation is refused only because it could not be asked about sooner: what can no longer be done in time is to begin at once.
    fn is_late(&self, passed: Duration, status: &Status) -> bool {
        let word = status.metadata().get("minerva-refusal").and_then(|word| word.to_str().ok());
        let is_bound = |asked: v1::CoordinateRequest| matches!(asked.deadline, Some(Deadline::DoneWithinNs(_)));
        self.kind == Kind::Wait
            && !self.is_answered
            && passed >= LATE
            && matches!(word, Some("out-of-range" | "too-late"))
            && v1::CoordinateRequest::decode(self.request.message.clone()).is_ok_and(is_bound)
    }

    /// What is asked so long after the program asked.
    fn question(&self, passed: Duration) -> Carried {
        let mut question = self.request.clone();
        if self.kind == Kind::Wait {
            question.message = asked_ago(question.message, passed);
        }
        question
    }

    /// One stream of the server, to its end; without an error when there is nothing more to come.
    async fn once(&mut self, backoff: &mut Backoff, passed: Duration) -> Result<(), Status> {
        let mut answers = self.upstream.stream(&self.question(passed)).await?;
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

/// The question when an operation may begin with what is left of its deadline, which is added at the end, as protocol buffers are merged, so
/// that what a newer contract has in it stays.
fn asked_ago(question: Bytes, passed: Duration) -> Bytes {
    let Ok(asked) = v1::CoordinateRequest::decode(question.clone()) else { return question };
    if asked.deadline.is_none() {
        return question;
    }
    let deadline = minerva_client::asked_ago(&asked, passed).deadline;
    let left = v1::CoordinateRequest { deadline, ..v1::CoordinateRequest::default() };
    [&question[..], &left.encode_to_vec()].concat().into()
}

/// To a program whose operation the server does not know. It hears so at the end, and takes that for a yes.
fn begin_now() -> Bytes {
    let answer = Some(CoordinateAnswer::BeginNow(v1::BeginNow {}));
    v1::CoordinateResponse { answer }.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::asked_ago;
    use bytes::Bytes;
    use minerva_api::v1::CoordinateRequest;
    use minerva_api::v1::coordinate_request::Deadline;
    use prost::Message;
    use std::time::Duration;

    /// Field 1,000 of a newer contract, three bytes long.
    const NEWER: [u8; 6] = [0xc2, 0x3e, 3, 1, 2, 3];

    #[test]
    fn a_question_says_what_is_left_of_its_deadline_and_keeps_what_else_is_in_it() {
        let asked = CoordinateRequest { request_id: "load".to_owned(), size_bytes: 7, ..CoordinateRequest::default() };
        for (deadline, left) in [
            (Some(Deadline::DoneWithinNs(3_000)), Some(Deadline::DoneWithinNs(1_000))),
            (Some(Deadline::BeginWithinNs(1_500)), Some(Deadline::BeginWithinNs(1))),
            (None, None),
        ] {
            let bytes = [&CoordinateRequest { deadline, ..asked.clone() }.encode_to_vec()[..], &NEWER].concat();
            let told = asked_ago(Bytes::from(bytes), Duration::from_nanos(2_000));
            assert!(told.windows(NEWER.len()).any(|part| part == NEWER));
            let read = CoordinateRequest::decode(told).expect("a message");
            assert_eq!(read, CoordinateRequest { deadline: left, ..asked.clone() });
        }
        let unread = Bytes::from_static(b"\xff");
        assert_eq!(asked_ago(unread.clone(), Duration::from_secs(1)), unread);
    }
}
