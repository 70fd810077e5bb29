//! Clients of a real socket.

use super::{Clients, FIRST_BYTE_MAX, Groups, OPERATORS_MAX, STREAMS_PER_VIEWER};
use crate::access::Access;
use crate::call::{BackgroundCall, CallSink, NotTaken, OperatorCall};
use crate::service::Service;
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::operator_client::OperatorClient;
use minerva_api::v1::operator_server::{Operator, OperatorServer};
use minerva_linux_observe::PeerCredentials;
use minerva_model::Nanos;
use minerva_store_thread::{Memory, MemorySettings, StoreMetrics};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::convert::Infallible;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

#[test]
fn connections_are_bounded_and_one_that_says_nothing_ends() {
    // The clock of the test jumps to the next timer when nothing else is to be done.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
        let connect = || {
            let stream = UnixStream::connect(&path).expect("the kernel's queue has room");
            stream.set_nonblocking(true).expect("a stream");
            stream
        };
        let mut held: Vec<UnixStream> = (0..OPERATORS_MAX).map(|_| connect()).collect();
        let mut beyond = connect();
        let service = tower::service_fn(async |_: http::Request<hyper::body::Incoming>| {
            Ok::<_, Infallible>(http::Response::new(tonic::body::Body::empty()))
        });
        let clients = Arc::new(Clients::new(service, Groups { operators: 0, viewers: None }));
        tokio::spawn(async move { clients.accept(listener).await });
        // Whatever the server says at first is no end; an end is a read of nothing.
        let has_ended = |stream: &mut UnixStream| loop {
            match stream.read(&mut [0; 64]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        };
        tokio::time::sleep(FIRST_BYTE_MAX / 2).await;
        assert!(has_ended(&mut beyond), "one more than there is room for");
        assert!(held.iter_mut().all(|stream| !has_ended(stream)));
        tokio::time::sleep(FIRST_BYTE_MAX).await;
        assert!(held.iter_mut().all(has_ended), "none said anything");
    });
}

/// A loop that does whatever it is asked, and remembers that it was.
#[derive(Debug, Default)]
struct Obliging(Mutex<Vec<String>>);

impl CallSink for Obliging {
    fn send(&self, call: OperatorCall) -> Result<(), NotTaken> {
        let (what, answer) = match call {
            OperatorCall::Status(answer) => {
                let _ = answer.send(v1::StatusResponse::default());
                return Ok(());
            }
            OperatorCall::Background(BackgroundCall::Add(_, answer)) => ("add".to_owned(), answer),
            OperatorCall::Background(BackgroundCall::Change(request, answer)) => {
                (request.change().as_str_name().to_owned(), answer)
            }
            OperatorCall::Background(BackgroundCall::Show(_, answer)) => {
                let _ = answer.send(Err("the store has not been read yet".to_owned()));
                return Ok(());
            }
            other => panic!("{other:?}"),
        };
        self.0.lock().expect("nobody panics").push(what);
        answer.send(Ok(v1::BackgroundQueue::default())).expect("somebody waits");
        Ok(())
    }
}

/// Connects as a user of a group: the kernel has credentials by thread, and tells those that connected.
fn connect_as(path: &Path, uid: u32, group: u32) -> UnixStream {
    let path = path.to_owned();
    let connect = move || {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(65_534));
        set_thread_groups(&[Gid::from_raw(group)]).expect("root may");
        set_thread_res_gid(gid, gid, gid).expect("root may");
        set_thread_res_uid(uid, uid, uid).expect("root may");
        UnixStream::connect(path).expect("the daemon listens")
    };
    std::thread::spawn(connect).join().expect("connected")
}

async fn speak(stream: UnixStream) -> OperatorClient<Channel> {
    stream.set_nonblocking(true).expect("a stream");
    let mut stream = Some(TokioIo::new(tokio::net::UnixStream::from_std(stream).expect("a stream")));
    let connector = tower::service_fn(move |_: http::Uri| {
        let stream = stream.take();
        async move { stream.ok_or_else(|| std::io::Error::other("it is connected once")) }
    });
    let channel = Endpoint::from_static("http://minervad.invalid").connect_with_connector(connector).await;
    OperatorClient::new(channel.expect("a connection"))
}

/// Runs a test with a service and the loop behind it, and with a directory of its own.
fn run<T>(test: impl AsyncFnOnce(Arc<Obliging>, Service, &Path) -> T) -> T {
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    std::fs::create_dir(&state_dir).expect("a directory");
    let settings = MemorySettings { state_dir, boot_id: String::new(), ledger_keep: Nanos::from_secs(1) };
    let memory = Memory::start(settings, StoreMetrics::default(), Box::new(|| {})).expect("a store");
    let calls = Arc::new(Obliging::default());
    let slices = tokio::sync::broadcast::channel(1).0;
    let service = Service::new(Arc::clone(&calls) as _, slices, memory.questions(), <_>::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.expect("a runtime").block_on(test(calls, service, directory.path()));
    memory.close();
    outcome
}

/// Serves whoever connects to a socket in the directory, which is its path.
fn serve(service: Service, directory: &Path, groups: Groups) -> PathBuf {
    let path = directory.join("socket");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    for (path, mode) in [(directory, 0o711), (&path, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let clients = Arc::new(Clients::new(OperatorServer::new(service), groups));
    tokio::spawn(async move { clients.accept(listener).await });
    path
}

/// What is called background work are commands that run as root.
#[test]
fn a_member_of_the_sockets_group_who_is_not_root_adds_and_resumes_no_background_work_and_may_stop_it() {
    const GROUP: u32 = 4321;
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root, to become others");
    }
    let taken = run(async |calls, service, directory| {
        let path = serve(service, directory, Groups { operators: GROUP, viewers: None });
        let add = || v1::AddBackgroundRequest { command: vec!["id".to_owned()], ..<_>::default() };
        let change =
            |change: v1::BackgroundChange| v1::ChangeBackgroundRequest { change: change.into(), ..<_>::default() };
        let mut member = speak(connect_as(&path, 65_534, GROUP)).await;
        let refused = [
            member.add_background(add()).await.map(drop),
            member.change_background(change(v1::BackgroundChange::Resume)).await.map(drop),
        ];
        for refused in refused {
            let status = refused.expect_err("no root");
            assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
            assert!(status.message().contains("do that as root"), "{status:?}");
        }
        for stops in [v1::BackgroundChange::Pause, v1::BackgroundChange::Remove] {
            member.change_background(change(stops)).await.expect("an operator");
        }
        let mut root = speak(connect_as(&path, 0, GROUP)).await;
        root.add_background(add()).await.expect("root");
        root.change_background(change(v1::BackgroundChange::Resume)).await.expect("root");
        calls.0.lock().expect("nobody panics").clone()
    });
    let [pause, remove, resume] = ["PAUSE", "REMOVE", "RESUME"].map(|word| format!("BACKGROUND_CHANGE_{word}"));
    assert_eq!(taken, [pause, remove, "add".to_owned(), resume]);
}

#[test]
fn a_user_reads_one_long_audit_at_a_time_and_a_viewer_ten_thousand_entries_at_most() {
    run(async |_, service, _| {
        let audit = async |access: Access, uid, entries_max| {
            let mut request = tonic::Request::new(v1::AuditRequest { entries_max, ..<_>::default() });
            request.extensions_mut().insert(access);
            request.extensions_mut().insert(PeerCredentials { uid, gid: 1, groups: Vec::new() });
            service.audit(request).await.map(tonic::Response::into_inner)
        };
        let too_long = audit(Access::Viewer, 7, 10_001).await.err().expect("too many");
        assert_eq!(too_long.code(), Code::InvalidArgument);
        assert!(too_long.message().contains("at most 10000 entries at a time: ask for no more"), "{too_long:?}");
        let first = audit(Access::Viewer, 7, 10_000).await.expect("the first");
        let second = audit(Access::Viewer, 7, 1_001).await.err().expect("the first is not read");
        assert_eq!(second.code(), Code::ResourceExhausted);
        assert!(second.message().contains("end that, or ask for fewer with --entries"), "{second:?}");
        assert!(audit(Access::Viewer, 7, 0).await.is_ok(), "as many as usual");
        assert!(audit(Access::Operator, 8, 100_000).await.is_ok(), "another user");
        drop(first);
        assert!(audit(Access::Viewer, 7, 1_001).await.is_ok(), "the first is over");
    });
}

#[test]
fn a_viewer_has_few_calls_under_way_on_a_connection() {
    const GROUP: u32 = 4322;
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root, to become others");
    }
    run(async |_, service, directory| {
        let path = serve(service, directory, Groups { operators: 4321, viewers: Some(GROUP) });
        let mut viewer = speak(connect_as(&path, 65_534, GROUP)).await;
        let mut watching = Vec::new();
        for _ in 0..STREAMS_PER_VIEWER {
            watching.push(viewer.watch(v1::WatchRequest {}).await.expect("a viewer"));
        }
        let mut one_more = tokio::spawn(async move { viewer.status(v1::StatusRequest {}).await });
        // On other connections all goes on.
        let mut other = speak(connect_as(&path, 65_534, GROUP)).await;
        for _ in 0..20 {
            other.status(v1::StatusRequest {}).await.expect("a viewer");
        }
        assert!(!one_more.is_finished(), "as many as there may be are under way");
        watching.pop();
        (&mut one_more).await.expect("no panic").expect("one is over");
    });
}

/// `minerva-ctl rm` waits for work as long as the daemon is unavailable, and takes what is in no list for removed.
#[test]
fn while_nobody_knows_what_background_work_there_is_the_daemon_is_unavailable() {
    run(async |_, service, _| {
        for span in [v1::BackgroundSpan::Unspecified, v1::BackgroundSpan::Day] {
            let asked = service.background(tonic::Request::new(v1::BackgroundRequest { span: span.into() })).await;
            let refused = asked.expect_err("it was not read");
            assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "the store has not been read yet"));
        }
    });
}
