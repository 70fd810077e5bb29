//! Calls of the contract by a client that keeps to HTTP/2 and to nothing else: any method, any bytes as messages, of any
//! claimed length, in any order, reset at any point.

use super::script::Script;
use super::{LONG, Stage, play};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request};
use minerva_tenant_server::test_server::{BEARER, Who};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

const METHODS: [&str; 15] = [
    "Describe",
    "SetLevel",
    "HoldLevel",
    "HoldJob",
    "HoldDebt",
    "ReportDebt",
    "SetSchedule",
    "Credits",
    "Boost",
    "Coordinate",
    "Begin",
    "Finish",
    "Cancel",
    "Report",
    "Nonsense",
];
const CALLS_MAX: usize = 32;
/// Headers that gRPC or a listener gives a meaning to.
const HEADERS: [&str; 5] = ["grpc-timeout", "grpc-encoding", "authorization", "content-type", "some-binary-bin"];

/// What became of a call: its status, or why there is none.
type Outcome = Result<Option<i32>, h2::Error>;

struct Call {
    body: Option<SendStream<Bytes>>,
    /// Not read before the end.
    unread: Option<ResponseFuture>,
    outcome: Option<JoinHandle<Outcome>>,
    is_complete: bool,
    is_reset: bool,
}

/// One byte says who comes. Then one byte says what is done, and what follows belongs to it.
pub fn calls(input: &[u8]) {
    play(input, async |stage, mut script| {
        let who = script.byte();
        let pipe = stage.connect(who);
        let Some((mut client, _connection)) = client(pipe).await else { return };
        let mut calls = Vec::new();
        while let Some(step) = script.next() {
            match step % 8 {
                0 if calls.len() < CALLS_MAX => calls.extend(open(&mut client, &mut script).await),
                0..=2 => message(&mut calls, &mut script),
                3 => of_number(&mut calls, &mut script, |call, script| {
                    let bytes = Bytes::copy_from_slice(script.some());
                    call.say(bytes, false);
                }),
                4 => of_number(&mut calls, &mut script, |call, _| call.say(Bytes::new(), true)),
                5 => of_number(&mut calls, &mut script, |call, script| {
                    call.is_reset = true;
                    if let Some(mut body) = call.body.take() {
                        body.send_reset(Reason::from(u32::from(script.byte() % 14)));
                    }
                }),
                6 => stage.trial.say_to_streams(),
                _ => {
                    stage.manner = script.byte();
                    stage.settle(Duration::from_secs(u64::from(script.byte() & 15))).await;
                }
            }
        }
        judge(stage, calls).await;
    });
}

/// Another client is still answered.
pub(super) async fn assert_served(stage: &mut Stage) {
    let (mut client, _connection) = client(stage.trial.connect(Who::B)).await.expect("b can connect");
    let mut script = Script(&[]);
    let mut call = open(&mut client, &mut script).await.expect("b can call");
    call.say(Bytes::from_static(&[0; 5]), true);
    stage.settle(Duration::ZERO).await;
    let answer = call.outcome.expect("it is read").await.expect("reading does not panic");
    assert_eq!(answer.expect("an answer"), Some(0));
}

/// The name of a call.
pub(super) fn method(number: u8) -> &'static str {
    METHODS[usize::from(number) % METHODS.len()]
}

/// A client's end of a connection. What it says is carried by a task, which ends with the guard.
async fn client(pipe: DuplexStream) -> Option<(SendRequest<Bytes>, Guard)> {
    let (client, connection) = h2::client::handshake(pipe).await.ok()?;
    Some((client, Guard(tokio::spawn(async move { drop(connection.await) }))))
}

struct Guard(JoinHandle<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn open(client: &mut SendRequest<Bytes>, script: &mut Script<'_>) -> Option<Call> {
    let (number, flags) = (script.byte(), script.byte());
    let path = format!("http://minervad.invalid/minerva.v1.Participation/{}", method(number));
    let mut request = Request::post(path).header("te", "trailers").header("content-type", "application/grpc");
    if flags & 8 != 0 {
        request = request.header("authorization", BEARER);
    }
    if flags & 1 != 0 {
        let name = HEADERS[usize::from(script.byte()) % HEADERS.len()];
        if let Ok(value) = HeaderValue::from_bytes(script.some()) {
            request.headers_mut()?.insert(name, value);
        }
    }
    let ready = tokio::time::timeout(LONG, client.clone().ready()).await.expect("there is room for a call");
    let (answer, body) = ready.ok()?.send_request(request.body(()).ok()?, flags & 2 != 0).ok()?;
    let is_unread = flags & 4 != 0;
    let (unread, outcome) = if is_unread { (Some(answer), None) } else { (None, Some(tokio::spawn(outcome(answer)))) };
    let is_complete = flags & 2 != 0;
    Some(Call { body: (!is_complete).then_some(body), unread, outcome, is_complete, is_reset: false })
}

impl Call {
    fn say(&mut self, bytes: Bytes, is_end: bool) {
        let Some(body) = &mut self.body else { return };
        // The server may have refused the call by now.
        let _ = body.send_data(bytes, is_end);
        if is_end {
            self.is_complete = true;
            self.body = None;
        }
    }
}

fn of_number(calls: &mut [Call], script: &mut Script<'_>, act: impl FnOnce(&mut Call, &mut Script<'_>)) {
    let number = usize::from(script.byte());
    let count = calls.len().max(1);
    if let Some(call) = calls.get_mut(number % count) {
        act(call, script);
    }
}

/// A message of a call, under a head that need not be true.
fn message(calls: &mut [Call], script: &mut Script<'_>) {
    of_number(calls, script, |call, script| {
        let flags = script.byte();
        let claimed = (flags & 2 != 0).then(|| script.number());
        let message = script.some();
        let length = claimed.unwrap_or(message.len() as u32).to_be_bytes();
        let bytes = [&[flags & 1], length.as_slice(), message].concat();
        call.say(bytes.into(), flags & 4 != 0);
    });
}

/// Reads an answer to its end.
async fn outcome(answer: ResponseFuture) -> Outcome {
    let (head, mut body) = answer.await?.into_parts();
    assert_eq!(head.status, 200);
    if let Some(status) = status(&head.headers) {
        return Ok(Some(status));
    }
    while let Some(bytes) = body.data().await {
        let bytes = bytes?;
        release(&mut body, bytes.len());
    }
    Ok(body.trailers().await?.as_ref().and_then(status))
}

fn release(body: &mut RecvStream, count: usize) {
    // Refused only when more is given back than was taken.
    let _ = body.flow_control().release_capacity(count);
}

fn status(headers: &HeaderMap) -> Option<i32> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}

/// Whatever was asked to its end is answered with a status.
async fn judge(stage: &mut Stage, calls: Vec<Call>) {
    // Some of them wait for the end of what is held.
    stage.settle(LONG).await;
    stage.trial.hang_up_streams();
    let was_any_reset = calls.iter().any(|call| call.is_reset);
    for call in calls {
        let outcome = match (call.outcome, call.unread) {
            (Some(outcome), _) => outcome,
            (None, Some(answer)) => tokio::spawn(outcome(answer)),
            (None, None) => continue,
        };
        if call.is_reset || !call.is_complete {
            outcome.abort();
            continue;
        }
        let ended = tokio::time::timeout(LONG, outcome).await.expect("a complete request is answered");
        match ended.expect("reading does not panic") {
            Ok(status) => assert!(status.is_some(), "an answer without a status"),
            // Too many resets end the connection, and all that is on it.
            Err(error) => assert!(was_any_reset && error.is_go_away(), "{error}"),
        }
    }
}
