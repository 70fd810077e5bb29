//! Operations that may go to the cache's pool.

use crate::{LONG, SHORT, connected, place};
use minerva_client::cache::Pool;
use minerva_client::v1::coordinate_response::Answer as WireAnswer;
use minerva_client::{Access, Answer, Begun, Operation, v1};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// A pool's service that answers so, one question each; what it was asked.
fn pool_service(socket: &Path, answers: Vec<String>) -> std::thread::JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).expect("a socket");
    std::thread::spawn(move || {
        let serve = |answer: String| {
            let (stream, _) = listener.accept().expect("a question");
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).expect("a line");
            writeln!(&stream, "{answer}").expect("answered");
            asked
        };
        answers.into_iter().map(serve).collect()
    })
}

#[tokio::test]
async fn an_operation_that_may_go_to_the_pool_is_written_there_when_it_is_told_so() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = Some(WireAnswer::WriteToPool(v1::WriteToPool {}));
    let (socket, data, path) = (place.path().join("pool"), place.path().join("data"), place.path().join("out"));
    fs::write(&data, "").expect("a file");
    let tree = r#""path":"/","is_served":true,"has_passthrough":true,"bytes":0,"bytes_max":9,"files":0,"files_max":9,"open":0,
        "spilled_files":0,"spilled_bytes":0,"bytes_written":0,"bytes_read":0,"refused":0,"deferrable_bytes":7,"device":"8:16""#
        .replace('\n', "");
    let status =
        format!(r#"{{"answer":"status","tenants":[{{"name":"web","temporary":{{{tree}}},"stable":{{{tree}}}}}]}}"#);
    let deferring = format!(r#"{{"answer":"deferring","id":1,"data":"{}"}}"#, data.display());
    let refused = r#"{"answer":"refused","why":"the pool is full"}"#.to_owned();
    let service = pool_service(&socket, vec![status.clone(), deferring, status, refused]);
    for (at, text) in [(&data, "text"), (&path, "other")] {
        let operation = Operation::of_bytes(4).access(Access::SequentialWrite).path(&path);
        let operation = operation.or_pool(Pool::Stable).cache_socket(&socket);
        let mut told = client.coordinate(operation).await.expect("an answer");
        assert_eq!((told.answer(), told.wait().await), (Answer::Pool, Begun::InPool));
        told.create(&path).expect("a file").write_all(text.as_bytes()).expect("written");
        told.finish().await.expect("nothing to tell");
        assert_eq!(fs::read_to_string(at).expect("read"), text);
    }
    let asked = service.join().expect("served");
    assert!(asked[1].contains(r#""ask":"defer""#) && asked[1].contains(r#""bytes":4"#), "{}", asked[1]);
    assert_eq!(server.script.calls_of("finish").len(), 0, "the server knows of no operation");
    let offered = server.script.offered.lock().expect("no panic").clone();
    assert_eq!(offered, [Some((7, "8:16".to_owned())), Some((7, "8:16".to_owned()))]);
}

#[tokio::test]
async fn a_service_of_the_pool_that_does_not_answer_delays_no_operation() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = Some(WireAnswer::BeginNow(v1::BeginNow {}));
    let socket = place.path().join("pool");
    let _silent = UnixListener::bind(&socket).expect("a socket");
    let operation = Operation::of_bytes(4).access(Access::SequentialWrite).path(place.path().join("out"));
    let operation = operation.or_pool(Pool::Stable).cache_socket(&socket).begin_within(SHORT);
    let mut coordinated = client.coordinate(operation).await.expect("it may begin");
    // The server would have said so, had it been asked before.
    assert_eq!(coordinated.wait().await, Begun::InTime);
}

#[test]
fn a_program_ends_while_the_service_of_the_pool_still_answers_piece_by_piece() {
    let place = place();
    let socket = place.path().join("pool");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let (has_ended, ended) = channel();
    let dripping = std::thread::spawn(move || {
        let (mut stream, begin) = (listener.accept().expect("a question").0, Instant::now());
        while begin.elapsed() < LONG {
            if ended.recv_timeout(SHORT / 10) != Err(RecvTimeoutError::Timeout) {
                return true;
            }
            // Nobody may listen any more.
            let _ = stream.write_all(b" ");
        }
        false
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (_server, client) = connected(place.path()).await;
        let operation = Operation::of_bytes(4).access(Access::SequentialWrite).path(place.path().join("out"));
        let operation = operation.or_pool(Pool::Stable).cache_socket(&socket).begin_within(2 * SHORT);
        let mut coordinated = client.coordinate(operation).await.expect("it may begin");
        assert_eq!(coordinated.wait().await, Begun::InTime);
    });
    drop(runtime);
    // It may have been too late for that.
    let _ = has_ended.send(());
    assert!(dripping.join().expect("it dripped"), "the program waited for the service");
}
