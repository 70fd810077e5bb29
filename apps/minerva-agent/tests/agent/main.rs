//! The agent as programs and the server meet it: a real process between a client and a server that breaks when told to.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod bed;
mod debts;
mod server;
mod waits;

use bed::{Bed, until, until_async};
use minerva_api::v1;
use minerva_api::v1::set_level_request::Lifetime;
use minerva_client::{Begun, Level, Operation};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tonic::Code;

#[tokio::test]
async fn calls_answers_and_refusals_are_carried_as_they_are() {
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut client = bed.raw().await;
    let mut request = tonic::Request::new(v1::DescribeRequest {});
    request.metadata_mut().insert("minerva-trace", "7".parse().expect("a value"));
    request.metadata_mut().insert("authorization", "Bearer of-the-program".parse().expect("a value"));
    let response = client.describe(request).await.expect("an answer");
    assert_eq!(response.metadata().get("minerva-test").expect("metadata"), "kept");
    assert_eq!(response.get_ref().tenant, "a guest");
    // The first to ask was the agent itself.
    let metadata = bed.script.asked(|asked| asked.metadata.pop()).expect("asked");
    assert_eq!(metadata.get("minerva-trace").expect("metadata"), "7");
    // Who the guest is, the agent shows, and no program in it.
    assert!(!metadata.contains_key("authorization"));

    let refusal = client.boost(v1::BoostRequest::default()).await.expect_err("a refusal");
    assert_eq!((refusal.code(), refusal.message()), (Code::FailedPrecondition, "A boost costs more than there is."));
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "not-enough-credits");
    // One that may pass is the program's to ask about again.
    let unstored = v1::BoostRequest { request_id: "unstored".to_owned(), ..v1::BoostRequest::default() };
    let refusal = client.boost(unstored).await.expect_err("a refusal");
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "not-committed");
    assert_eq!(bed.script.asked(|asked| asked.keys.len()), 1);
    let refusal = client.credits(v1::CreditsRequest::default()).await.expect_err("a refusal");
    assert_eq!((refusal.code(), refusal.message()), (Code::Unimplemented, "this server has none"));
    let answer = client.set_schedule(v1::SetScheduleRequest::default()).await.expect("an answer");
    assert_eq!(answer.into_inner().level, 1);
    client.begin(v1::BeginRequest::default()).await.expect("an answer");
    client.finish(v1::FinishRequest::default()).await.expect("an answer");
    client.cancel(v1::CancelRequest::default()).await.expect("an answer");
    let reports = tokio_stream::iter([v1::ReportRequest::default(), v1::ReportRequest::default()]);
    assert_eq!(client.report(reports).await.expect("an answer").into_inner().reports, 2);
}

/// Of 160 descriptors the agent leaves 32 to connections, of which one user may have 24.
#[tokio::test]
async fn no_user_takes_all_connections() {
    let bed = Bed::new();
    let _server = bed.serve();
    let mut limited = Command::new("prlimit");
    let agent = bed.command(Path::new(env!("CARGO_BIN_EXE_minerva-agent")), &[]);
    limited.arg("--nofile=160").arg(agent.get_program()).args(agent.get_args());
    let _agent = bed.listening(limited);
    let crowd: Vec<_> = (0..64).map(|_| UnixStream::connect(bed.socket()).expect("connected")).collect();
    let is_closed = |stream: &UnixStream| {
        stream.set_nonblocking(true).expect("a socket");
        matches!((&mut &*stream).read(&mut [0]), Ok(0))
    };
    until("those beyond are closed", || crowd.iter().filter(|stream| is_closed(stream)).count() >= 40);
    // That which found out whether the agent listens may still count.
    let stayed = crowd.iter().filter(|stream| !is_closed(stream)).count();
    assert!((23..=24).contains(&stayed), "{stayed} stayed");
    drop(crowd);
    // The agent sees their end in its own time.
    until("there is room for all again", || {
        let again: Vec<_> = (0..24).map(|_| UnixStream::connect(bed.socket()).expect("connected")).collect();
        // What is closed is closed after it was accepted.
        std::thread::sleep(Duration::from_millis(20));
        !again.iter().any(is_closed)
    });
}

#[tokio::test]
async fn a_request_waits_for_a_server_that_is_being_restarted() {
    let bed = Bed::new();
    let server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut client = bed.raw().await;
    client.describe(v1::DescribeRequest {}).await.expect("an answer");
    drop(server);
    let asking = tokio::spawn(async move { client.set_level(v1::SetLevelRequest { level: 3, lifetime: None }).await });
    let _server = bed.serve();
    assert_eq!(asking.await.expect("a task").expect("an answer").into_inner().level, 3);
    assert_eq!(bed.script.asked(|asked| asked.levels.clone()), [3]);
}

#[tokio::test]
async fn without_a_server_programs_go_on_at_once_and_are_served_when_there_is_one() {
    let bed = Bed::new();
    let _agent = bed.agent(&[]);
    let mut raw = bed.raw().await;
    let refusal = raw.boost(v1::BoostRequest::default()).await.expect_err("nobody is there");
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "no-server");
    assert!(refusal.message().contains(&*bed.upstream().to_string_lossy()), "{refusal}");
    let refusal = raw.hold_level(v1::HoldLevelRequest { level: 4 }).await.expect_err("nobody is there");
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "no-server");
    // A client whose patience would let it wait for a minute does nothing instead.
    let client = bed.client().await;
    assert_eq!(client.hold_level(Level::Idle).await.expect("nothing").level(), None);
    let mut coordinated = client.coordinate(Operation::of_bytes(1 << 20)).await.expect("nothing");
    assert_eq!(coordinated.wait().await, Begun::Unserved);
    assert!(client.absence().is_some_and(|why| why.contains("No server answers")), "{:?}", client.absence());

    let _server = bed.serve();
    let begin = std::time::Instant::now();
    while let Err(refusal) = raw.describe(v1::DescribeRequest {}).await {
        assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "no-server");
        assert!(begin.elapsed() < bed::PATIENCE, "{refusal}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let held = bed.client().await.hold_level(Level::Idle).await.expect("held");
    assert_eq!(held.level(), Some(Level::Idle));
}

#[tokio::test]
async fn a_hold_and_a_wait_outlive_the_server_and_end_with_the_program() {
    let bed = Bed::new();
    let server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut client = bed.raw().await;
    let mut held = client.hold_level(v1::HoldLevelRequest { level: 4 }).await.expect("a stream").into_inner();
    assert_eq!(held.message().await.expect("no error").expect("an answer").level, 4);
    let request = v1::CoordinateRequest { request_id: "load".to_owned(), ..v1::CoordinateRequest::default() };
    let mut waiting = client.coordinate(request).await.expect("a stream").into_inner();
    waiting.message().await.expect("no error").expect("wait");

    drop(server);
    let server = bed.serve();
    until_async("both are asked for again", || bed.script.asked(|asked| asked.holds == 2 && asked.keys.len() == 2))
        .await;
    assert_eq!(bed.script.asked(|asked| asked.keys.clone()), ["load", "load"]);
    assert_eq!(held.message().await.expect("the program noticed nothing").expect("an answer").level, 4);
    waiting.message().await.expect("the program noticed nothing").expect("wait, again");
    bed.script.begins.send_replace(true);
    let answer = waiting.message().await.expect("no error").expect("an answer").answer;
    assert!(matches!(answer, Some(v1::coordinate_response::Answer::BeginNow(_))));
    assert!(waiting.message().await.expect("a good end").is_none());

    drop(held);
    until_async("the hold ends", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    drop(server);
}

#[tokio::test]
async fn after_a_killed_agent_programs_hold_and_wait_through_the_next() {
    let bed = Bed::new();
    let _server = bed.serve();
    let agent = bed.agent(&[]);
    let client = bed.client().await;
    let held = client.hold_level(Level::Idle).await.expect("held");
    let mut coordinated = client.coordinate(Operation::of_bytes(1 << 20)).await.expect("asked");
    until_async("both are asked for", || bed.script.asked(|asked| asked.holds_open == 1 && asked.keys.len() == 1))
        .await;

    agent.kill();
    until_async("the hold is gone", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    // The socket of the killed one is in the way of nobody.
    let _agent = bed.agent(&[]);
    until_async("both are asked for again", || {
        bed.script.asked(|asked| asked.holds_open == 1 && asked.keys.len() >= 2)
    })
    .await;
    assert!(bed.script.asked(|asked| asked.keys.iter().all(|key| *key == asked.keys[0])));
    bed.script.begins.send_replace(true);
    assert_eq!(coordinated.wait().await, Begun::Told);
    coordinated.finish().await.expect("finished");
    drop(held);
    until_async("the hold ends", || bed.script.asked(|asked| asked.holds_open == 0)).await;
}

#[tokio::test]
async fn a_level_until_a_process_ends_is_held_until_then() {
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut client = bed.raw().await;
    let low = v1::Level::Low as i32;
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("a process");
    let request = |process| v1::SetLevelRequest { level: low, lifetime: Some(Lifetime::Process(process)) };
    client.set_level(request(sleeper.id())).await.expect("set");
    // What was set before is replaced, and what counts is held.
    assert_eq!(bed.script.asked(|asked| (asked.levels.clone(), asked.holds_open)), (vec![1], 1));
    sleeper.kill().expect("killed");
    sleeper.wait().expect("reaped");
    until_async("the level ends", || bed.script.asked(|asked| asked.holds_open == 0)).await;

    client.set_level(request(0)).await.expect("set for this process");
    assert_eq!(bed.script.asked(|asked| asked.holds_open), 1);
    client.set_level(v1::SetLevelRequest { level: low, lifetime: None }).await.expect("set for ever");
    until_async("it is replaced", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    let refusal = client.set_level(request(u32::MAX)).await.expect_err("no process");
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "bad-process");
}

#[tokio::test]
async fn a_level_until_a_process_ends_survives_a_kill_of_the_agent() {
    let bed = Bed::new();
    let server = bed.serve();
    let agent = bed.agent(&[]);
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("a process");
    let lifetime = Some(Lifetime::Process(sleeper.id()));
    let request = v1::SetLevelRequest { level: v1::Level::Low as i32, lifetime };
    bed.raw().await.set_level(request).await.expect("set");
    agent.kill();
    until_async("the server misses it", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    let agent = bed.agent(&[]);
    until_async("the next agent holds on", || bed.script.asked(|asked| asked.holds_open == 1)).await;
    // Both are away, and the server is the later to come back. What the first server still counted would pass for what the second
    // hears, so it has to have missed the agent before it goes.
    agent.kill();
    until_async("the server misses it", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    drop(server);
    let agent = bed.agent(&[]);
    let _server = bed.serve();
    until_async("the next agent holds on", || bed.script.asked(|asked| asked.holds_open == 1)).await;
    sleeper.kill().expect("killed");
    sleeper.wait().expect("reaped");
    until_async("the level ends", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    let record = bed.socket().with_extension("level");
    until_async("nothing is kept", || !record.exists()).await;

    // One that ends while no agent looks is over.
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("a process");
    let lifetime = Some(Lifetime::Process(sleeper.id()));
    bed.raw().await.set_level(v1::SetLevelRequest { lifetime, ..request }).await.expect("set");
    agent.kill();
    sleeper.kill().expect("killed");
    sleeper.wait().expect("reaped");
    let holds = bed.script.asked(|asked| asked.holds);
    let _agent = bed.agent(&[]);
    bed.raw().await.describe(v1::DescribeRequest {}).await.expect("it serves");
    assert!(!record.exists());
    assert_eq!(bed.script.asked(|asked| asked.holds), holds);
}

#[test]
fn reports_name_a_process_and_the_file_that_it_reads() {
    let bed = Bed::new();
    let mut file = tempfile::NamedTempFile::new_in(bed.directory.path()).expect("a file");
    file.as_file().set_len(5 << 20).expect("a size");
    file.seek(SeekFrom::Start(2 << 20)).expect("a position");
    let _agent = bed.agent(&["--report-period", "100ms"]);
    // The agent looks for its server with growing patience, and then finds it.
    let _server = bed.serve();
    let path = file.path().to_string_lossy().into_owned();
    until("the file is reported", || {
        let reports = bed.script.asked(|asked| std::mem::take(&mut asked.reports));
        reports.iter().flat_map(|report| &report.processes).any(|process| {
            let known = process.files.iter().find(|file| file.path == path);
            known.is_some_and(|file| {
                assert_eq!((file.size_bytes, file.position_bytes, file.writable), (5 << 20, 2 << 20, true));
                process.pid == std::process::id()
            })
        })
    });
}

#[test]
fn an_agent_without_privileges_serves_its_user_alone() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root, to become nobody");
    }
    let bed = Bed::new();
    let _server = bed.serve();
    std::fs::set_permissions(bed.upstream(), PermissionsExt::from_mode(0o666)).expect("opened");
    // The build directory may lie where nobody may look.
    let program = bed.directory.path().join("minerva-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_minerva-agent"), &program).expect("a copy");
    std::fs::set_permissions(bed.directory.path(), PermissionsExt::from_mode(0o777)).expect("opened");
    let agent = bed.command(&program, &["--report-period", "100ms"]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
    command.arg("--no-new-privs").arg("--").arg(agent.get_program()).args(agent.get_args());
    let agent = bed.listening(command);
    let mode = std::fs::metadata(bed.socket()).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    until("it reports itself", || {
        bed.script.asked(|asked| {
            asked.reports.iter().flat_map(|report| &report.processes).any(|process| process.pid == agent.0.id())
        })
    });
    // Of this process, which is root's, it tells no more than everyone may see.
    let reports = bed.script.asked(|asked| std::mem::take(&mut asked.reports));
    let mut own = reports.iter().flat_map(|report| &report.processes).filter(|one| one.pid == std::process::id());
    assert!(own.all(|process| process.files.is_empty() && process.read_bytes.is_none()));
}

#[test]
fn one_agent_listens_at_a_socket_and_leaves_it_tidy() {
    let bed = Bed::new();
    let mut agent = bed.agent(&["--shared"]);
    let mode = std::fs::metadata(bed.socket()).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let second =
        bed.command(Path::new(env!("CARGO_BIN_EXE_minerva-agent")), &[]).stderr(std::process::Stdio::piped()).output();
    let second = second.expect("ran");
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && message.contains("another agent runs at"), "{message}");
    agent.signal("-TERM");
    assert!(agent.0.wait().expect("its end").success());
    assert!(!bed.socket().exists());
}

#[tokio::test]
async fn an_idle_agent_ends_and_one_that_is_needed_stays() {
    let bed = Bed::new();
    let _server = bed.serve();
    let mut agent = bed.agent(&["--idle-exit", "200ms"]);
    let mut client = bed.raw().await;
    let mut held = client.hold_level(v1::HoldLevelRequest { level: 2 }).await.expect("a stream").into_inner();
    held.message().await.expect("no error").expect("an answer");
    // Five times as long as an idle agent stays; calls show that it lives.
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.describe(v1::DescribeRequest {}).await.expect("it lives");
    }
    drop((held, client));
    until_async("it ends", || agent.0.try_wait().expect("a child").is_some()).await;
    assert!(agent.0.wait().expect("its end").success());
    assert!(!bed.socket().exists());
}

#[test]
fn a_report_is_printed_for_people_and_for_programs() {
    let print = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_minerva-agent")).arg("--print-report").args(arguments).output();
        let output = output.expect("ran");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(print(&[]).contains("MiB available"));
    let report: serde_json::Value = serde_json::from_str(&print(&["--json"])).expect("JSON");
    assert!(report["processes"].as_array().is_some_and(|processes| !processes.is_empty()), "{report}");
}

#[test]
fn an_agent_that_would_be_its_own_server_is_refused() {
    let bed = Bed::new();
    let address = format!("unix:{}", bed.socket().display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-agent"));
    let output = command.arg("--socket").arg(bed.socket()).args(["--upstream", &address]).output().expect("ran");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && message.contains("the agent itself"), "{message}");
}
