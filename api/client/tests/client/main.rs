//! The client against a server that fails at chosen moments.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod absence;
mod hangs;
mod holds;
mod pool;
mod server;
mod signals;
mod tcp;

use minerva_client::v1::coordinate_response::Answer as WireAnswer;
use minerva_client::{
    Agent, Answer, Begun, BoostAmount, Client, Credentials, Error, Level, Lifetime, Operation, Options, blocking, v1,
};
use server::{Listening, refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tonic::{Code, Status};

/// Longer than a test that does well takes.
const LONG: Duration = Duration::from_secs(60);
/// For what must not happen before it.
const SHORT: Duration = Duration::from_millis(200);

fn options(directory: &Path) -> Options {
    Options {
        address: None,
        credentials: Credentials::default(),
        sockets: vec![directory.join("tenant.sock")],
        agent: None,
        patience: LONG,
        look_period: LONG,
        quiet: true,
    }
}

fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("minerva-test-client-").tempdir().expect("a directory")
}

/// One that may pass, and does not for longer than any client of the tests waits.
fn refuse_for_long(server: &Listening) {
    let status =
        refusal(Code::ResourceExhausted, "too-many", "16 operations wait or are under way. Finish some first.");
    server.script.refusals.lock().expect("no panic").extend(vec![status; 100]);
}

async fn connected(directory: &Path) -> (Listening, Client) {
    let server = Listening::at(&directory.join("tenant.sock"));
    let client = options(directory).connect().await.expect("a client");
    assert_eq!(client.absence(), None);
    (server, client)
}

fn wait_answer() -> Option<WireAnswer> {
    Some(WireAnswer::Wait(v1::Wait { at_most_ns: None }))
}

#[tokio::test]
async fn a_purchase_whose_answer_is_lost_is_made_once() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.cuts.lock().expect("no panic") = 3;
    let bought = client.boost(BoostAmount::Slices(3), None).await.expect("bought");
    assert_eq!((bought.slices, bought.price_micro_credits), (3, 75_000_000));
    let keys = server.script.calls_of("boost");
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(server.script.purchases.lock().expect("no panic").len(), 1);
    client.boost(BoostAmount::For(Duration::from_secs(1)), Some("8:0")).await.expect("bought");
    assert_eq!(server.script.purchases.lock().expect("no panic").len(), 2, "another request has another key");
}

#[tokio::test]
async fn a_refusal_is_told_and_not_asked_again() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let status = refusal(Code::FailedPrecondition, "not-enough-credits", "It costs 75 credits and there are 2.");
    server.script.refusals.lock().expect("no panic").push_back(status);
    let error = client.boost(BoostAmount::Slices(3), None).await.expect_err("refused");
    assert_eq!(error.refusal(), Some("not-enough-credits"));
    assert_eq!(error.to_string(), "It costs 75 credits and there are 2.");
    assert_eq!(server.script.calls_of("boost").len(), 1);
}

#[tokio::test]
async fn what_may_have_been_done_is_asked_again_under_its_key_and_not_called_refused() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let silence = refusal(Code::DeadlineExceeded, "no-answer", "There was no answer within 5 s.");
    server.script.refusals.lock().expect("no panic").extend(vec![silence.clone(); 2]);
    assert_eq!(client.boost(BoostAmount::Slices(3), None).await.expect("bought").slices, 3);
    let keys = server.script.calls_of("boost");
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    // One that stays silent, or is merely busy afterwards, may have done it.
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    let busy = refusal(Code::ResourceExhausted, "busy", "The server is busy.");
    server.script.refusals.lock().expect("no panic").extend([vec![silence], vec![busy; 100]].concat());
    let error = client.boost(BoostAmount::Slices(3), None).await.expect_err("no answer");
    let keys = server.script.calls_of("boost").split_off(3);
    let Error::Unreachable { request_id, .. } = &error else { panic!("{error:?}") };
    assert!(keys.iter().all(|key| Some(key) == request_id.as_ref()), "{keys:?}");
    assert!(error.to_string().contains(&keys[0]), "{error}");
}

#[tokio::test]
async fn who_asks_too_often_asks_again_when_the_server_likes() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let status = refusal(Code::ResourceExhausted, "too-often", "Too many requests.");
    server.script.refusals.lock().expect("no panic").push_back(status.clone());
    assert_eq!(client.set_level(Level::Low, Lifetime::UntilReleased).await.expect("an answer"), Level::Low);
    assert_eq!(server.script.calls_of("set_level").len(), 2);
    // One that never stops refusing is not asked for ever.
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    server.script.refusals.lock().expect("no panic").extend(vec![status; 100]);
    let error = client.credits(1).await.expect_err("refused");
    assert_eq!(error.refusal(), Some("too-often"));
}

#[tokio::test]
async fn levels_and_schedules_are_set_with_their_lifetimes() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    for lifetime in [Lifetime::UntilReleased, Lifetime::For(Duration::from_secs(2)), Lifetime::Process(7)] {
        client.set_level(Level::Idle, lifetime).await.expect("an answer");
    }
    assert_eq!(server.script.calls_of("set_level"), ["None", "Some(ForNs(2000000000))", "Some(Process(7))"]);
    let entry = v1::ScheduleEntry { begin_minute: 1320, end_minute: 360, days: 0, level: v1::Level::Idle.into() };
    assert_eq!(client.set_schedule(&[entry], "Europe/Berlin").await.expect("an answer"), Level::Idle);
    assert_eq!(server.script.calls_of("set_schedule"), ["Europe/Berlin"]);
    assert_eq!(client.describe().await.expect("an answer").tenant, "scripted");
}

#[tokio::test]
async fn an_operation_waits_for_the_callback_and_is_finished() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = wait_answer();
    let mut coordinated = client.coordinate(Operation::of_bytes(500)).await.expect("an answer");
    assert_eq!(coordinated.answer(), Answer::Wait { at_most: None });
    assert!(tokio::time::timeout(SHORT, coordinated.wait()).await.is_err(), "nobody said so");
    server.script.release.notify_one();
    assert_eq!(coordinated.wait().await, Begun::Told);
    let key = coordinated.key().to_owned();
    // Lost on its way, it is told again.
    *server.script.cuts.lock().expect("no panic") = 1;
    coordinated.finish().await.expect("finished");
    assert_eq!(server.script.calls_of("finish"), [key.clone(), key]);
    assert!(server.script.calls_of("begin").is_empty(), "it was told to begin");
}

#[tokio::test]
async fn a_wait_goes_on_under_its_key_when_the_connection_is_lost() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = wait_answer();
    let mut coordinated = client.coordinate(Operation::of_bytes(500)).await.expect("an answer");
    server.script.cut();
    server.script.called("coordinate", 2).await;
    server.kill().await;
    server.restart();
    server.script.called("coordinate", 3).await;
    server.script.release.notify_one();
    assert_eq!(coordinated.wait().await, Begun::Told);
    let keys = server.script.calls_of("coordinate");
    assert!(keys.iter().all(|key| key == coordinated.key()), "{keys:?}");
}

#[tokio::test]
async fn a_wait_does_not_outlast_its_deadline_because_the_server_is_away() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = wait_answer();
    let mut coordinated = client.coordinate(Operation::of_bytes(500).begin_within(SHORT)).await.expect("an answer");
    server.kill().await;
    assert_eq!(coordinated.wait().await, Begun::InTime);
    // The server hears of it when it is back, and of the end.
    server.restart();
    server.script.called("begin", 1).await;
    let key = coordinated.key().to_owned();
    coordinated.finish().await.expect("finished");
    assert_eq!((server.script.calls_of("begin"), server.script.calls_of("finish")), (vec![key.clone()], vec![key]));
}

#[tokio::test]
async fn a_server_that_never_answers_holds_up_nobody() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let operation = Operation::of_bytes(500).done_within(SHORT);
    let mut coordinated = client.coordinate(operation).await.expect("it may begin");
    assert_eq!(coordinated.wait().await, Begun::InTime);
    assert_eq!(server.script.calls_of("coordinate").len(), 1);
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    let mut coordinated = client.coordinate(Operation::of_bytes(500)).await.expect("it may begin");
    assert_eq!(coordinated.wait().await, Begun::Unserved);
}

#[tokio::test]
async fn what_the_server_promised_holds_without_it() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    let slice_ns = u64::try_from(SHORT.as_nanos()).expect("short") / 2;
    let promises = [
        WireAnswer::BeginAfter(v1::BeginAfter { slices: 1, slice_ns }),
        WireAnswer::Wait(v1::Wait { at_most_ns: Some(slice_ns) }),
    ];
    for promise in promises {
        *server.script.first.lock().expect("no panic") = Some(promise);
        let mut coordinated = client.coordinate(Operation::of_bytes(500).done_within(LONG)).await.expect("an answer");
        assert_ne!(coordinated.answer(), Answer::Now);
        server.kill().await;
        assert_eq!(coordinated.wait().await, Begun::InTime);
        server.restart();
    }
}

#[tokio::test]
async fn an_operation_that_is_dropped_is_cancelled() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = wait_answer();
    let waiting = client.coordinate_as("one", Operation::of_bytes(500)).await.expect("an answer");
    drop(waiting);
    server.script.called("cancel", 1).await;
    server.script.release.notify_one();
    let mut begun = client.coordinate_as("two", Operation::of_bytes(500)).await.expect("an answer");
    begun.wait().await;
    begun.cancel().await;
    client.coordinate_as("three", Operation::of_bytes(500)).await.expect("an answer").leave();
    drop(client.coordinate_as("four", Operation::of_bytes(500)).await.expect("an answer"));
    server.script.called("cancel", 3).await;
    assert_eq!(server.script.calls_of("cancel"), ["one", "two", "four"], "what was left is not cancelled");
    assert!(server.script.calls_of("finish").is_empty());
}

#[tokio::test]
async fn a_question_that_is_refused_is_an_error() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    server.script.refusals.lock().expect("no panic").push_back(Status::invalid_argument("There is no disk 9:9."));
    let error = client.coordinate(Operation::of_bytes(1).device("9:9")).await.expect_err("refused");
    assert_eq!(error.to_string(), "There is no disk 9:9.");
}

#[tokio::test]
async fn a_question_that_is_refused_until_it_may_begin_without_an_answer_is_an_error() {
    let place = place();
    let server = Listening::at(&place.path().join("tenant.sock"));
    *server.script.first.lock().expect("no panic") = wait_answer();
    let operation = Operation::of_bytes(500);
    for (patience, operation) in [(3 * SHORT, operation.clone()), (LONG, operation.begin_within(3 * SHORT))] {
        refuse_for_long(&server);
        let client = Options { patience, ..options(place.path()) }.connect().await.expect("a client");
        let error = client.coordinate(operation.clone()).await.expect_err("refused");
        assert_eq!(error.refusal(), Some("too-many"), "{error:?}");
        assert!(error.to_string().starts_with("16 operations"), "{error}");
        // One that was answered before begins.
        server.script.refusals.lock().expect("no panic").clear();
        let mut coordinated = client.coordinate(operation).await.expect("an answer");
        refuse_for_long(&server);
        server.script.cut();
        assert!(matches!(coordinated.wait().await, Begun::Unserved | Begun::InTime));
    }
}

#[tokio::test]
async fn a_server_that_went_away_after_it_had_refused_is_away() {
    let place = place();
    let server = Listening::at(&place.path().join("tenant.sock"));
    let stopping = refusal(Code::Unavailable, "stopping", "The server is stopping.");
    let broken = Status::unavailable("broken pipe");
    server.script.refusals.lock().expect("no panic").extend([vec![stopping], vec![broken; 100]].concat());
    let client = Options { patience: 5 * SHORT, ..options(place.path()) }.connect().await.expect("a client");
    let mut coordinated = client.coordinate(Operation::of_bytes(500)).await.expect("it may begin");
    assert_eq!((coordinated.answer(), coordinated.wait().await), (Answer::Now, Begun::Unserved));
}

#[tokio::test]
async fn reports_go_on_after_a_lost_connection() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let report = |agent: &str| v1::ReportRequest { agent: agent.to_owned(), ..v1::ReportRequest::default() };
    let reporter = client.reporter();
    reporter.send(report("first"));
    server.script.called("report", 1).await;
    server.script.cut();
    reporter.send(report("second"));
    while server.script.calls_of("report").last().is_none_or(|last| last != "second") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn without_a_server_everything_goes_on() {
    let place = place();
    // A socket that is left of a server that was killed is no server.
    drop(std::os::unix::net::UnixListener::bind(place.path().join("tenant.sock")).expect("a socket"));
    let client = options(place.path()).connect().await.expect("a client");
    assert!(client.absence().is_some_and(|why| why.contains("tenant.sock")), "{:?}", client.absence());
    assert_eq!(client.set_level(Level::Idle, Lifetime::Process(0)).await.expect("nothing"), Level::Normal);
    assert_eq!(client.set_schedule(&[], "").await.expect("nothing"), Level::Normal);
    assert_eq!(client.hold_level(Level::Idle).await.expect("nothing").level(), None);
    assert_eq!(client.job("sort", None).await.expect("nothing").place(), None);
    assert_eq!(client.boost(BoostAmount::Slices(1), None).await.expect("nothing").slices, 0);
    assert_eq!(client.credits(1).await.expect("nothing").held_micro_credits, 0);
    assert_eq!(client.describe().await.expect("nothing").role, "silent");
    client.reporter().send(v1::ReportRequest::default());
    let mut coordinated = client.coordinate(Operation::of_bytes(1)).await.expect("nothing");
    assert_eq!((coordinated.answer(), coordinated.wait().await), (Answer::Now, Begun::Unserved));
    coordinated.finish().await.expect("nothing");
    for address in ["unix:/nonexistent/minerva.sock", "http://127.0.0.1:1", "vsock:2:7420"] {
        let options = Options { address: Some(address.parse().expect(address)), ..options(place.path()) };
        let client = options.connect().await.expect(address);
        assert!(client.absence().is_some_and(|why| why.contains(address)), "{:?}", client.absence());
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_told_when_the_patience_is_over() {
    let place = place();
    let mut server = Listening::at(&place.path().join("tenant.sock"));
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    server.kill().await;
    let error = client.credits(1).await.expect_err("nobody answers");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("is minervad running?"), "{error}");
    assert_eq!(client.hold_level(Level::Low).await.expect("kept trying").level(), None);
}

/// The agent's part is played by a script that notes how it was started; its server is the test's.
#[tokio::test]
async fn the_agent_is_started_when_nobody_listens_and_again_when_it_was_killed() {
    let place = place();
    let (program, log) = (place.path().join("agent"), place.path().join("log"));
    let text = format!("#!/bin/sh\necho \"$* for $MINERVA_UPSTREAM\" >> {}\n", log.display());
    fs::write(&program, text).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let socket = place.path().join("own/agent.sock");
    let agent = Agent { program, upstream: "vsock:2:7420".to_owned(), socket: socket.clone() };
    let options = Options { agent: Some(agent), ..options(place.path()) };
    let started = |times: usize| {
        let log = log.clone();
        async move {
            while fs::read_to_string(&log).unwrap_or_default().lines().count() < times {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    };
    let serve = async {
        started(1).await;
        Listening::at(&socket)
    };
    let (client, mut server) = tokio::join!(options.connect(), serve);
    let client = client.expect("a client");
    assert_eq!(client.address(), Some(format!("unix:{}", socket.display())));
    server.kill().await;
    let serve = async {
        started(2).await;
        server.restart();
    };
    let (answer, ()) = tokio::join!(client.describe(), serve);
    assert_eq!(answer.expect("an answer").tenant, "scripted");
    let line = format!("--socket {} --idle-exit 60s for vsock:2:7420", socket.display());
    assert_eq!(fs::read_to_string(&log).expect("a log").lines().collect::<Vec<_>>(), [line.as_str(); 2]);
}

#[test]
fn a_program_without_a_runtime_does_the_same() {
    let place = place();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime for the server");
    let server = runtime.block_on(async { Listening::at(&place.path().join("tenant.sock")) });
    *server.script.first.lock().expect("no panic") = Some(WireAnswer::BeginNow(v1::BeginNow {}));
    let client = blocking::Client::with_options(options(place.path())).expect("a client");
    assert_eq!(client.describe().expect("an answer").tenant, "scripted");
    let held = client.hold_level(Level::Lowest).expect("held");
    assert_eq!(held.level(), Some(Level::Lowest));
    // It stays when only the guard is left.
    let other = client.clone();
    drop(client);
    let mut holds = server.script.holds.subscribe();
    assert_eq!(*holds.borrow(), 1);
    drop(held);
    runtime.block_on(async { holds.wait_for(|holds| *holds == 0).await.map(drop) }).expect("released");
    let mut coordinated = other.coordinate(Operation::of_bytes(1)).expect("an answer");
    assert_eq!((coordinated.answer(), coordinated.wait()), (Answer::Now, Begun::Told));
    coordinated.finish().expect("finished");
    drop(other.coordinate(Operation::of_bytes(1)).expect("an answer"));
    assert_eq!((server.script.calls_of("finish").len(), server.script.calls_of("cancel").len()), (1, 1));
}
