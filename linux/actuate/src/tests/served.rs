//! Knobs of a server of ours, told over a real socket to a small server.

use super::testbed::{Runtime, inspection, knob_write, wait_until};
use crate::{RestoreResult, RestoreWhen, boottime_now, restore};
use minerva_model::{DeviceId, KnobFile, KnobTarget, Nanos, Outcome, ServerAnswer, ServerRequest};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
const WEIGHT: KnobFile = KnobFile::ServerWeight;

/// How the server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    Hangs,
    Babbles,
    HangsUp,
}

struct State {
    weights: BTreeMap<String, u32>,
    manner: Manner,
    connections: usize,
    ends: bool,
}

/// Serves the disks `a` and `b`.
struct Server {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(runtime: &Runtime, name: &str) -> Self {
        let folder = runtime.settings.runtime_dir.join("servers");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).unwrap();
        let weights = ["a", "b"].map(|disk| (disk.to_owned(), 100)).into();
        let state = State { weights, manner: Manner::Answers, connections: 0, ends: false };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            // Connections that are never answered stay open until the server ends.
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let mut state = shared.lock().unwrap();
                if state.ends {
                    return;
                }
                state.connections += 1;
                kept.extend(serve(&mut state, stream.unwrap()));
            }
        });
        Self { path, state, thread: Some(thread) }
    }

    fn weight(&self, disk: &str) -> u32 {
        self.state.lock().unwrap().weights[disk]
    }

    fn behave(&self, manner: Manner) {
        self.state.lock().unwrap().manner = manner;
    }

    fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }
}

/// The server ends, and its socket stays, as after a kill.
impl Drop for Server {
    fn drop(&mut self) {
        self.state.lock().unwrap().ends = true;
        drop(UnixStream::connect(&self.path));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        // A process that another test is just starting has the socket until it executes its program.
        wait_until("nobody listens", || UnixStream::connect(&self.path).is_err());
    }
}

fn serve(state: &mut State, mut stream: UnixStream) -> Option<UnixStream> {
    let mut line = String::new();
    let answer = match state.manner {
        Manner::Hangs => return Some(stream),
        Manner::HangsUp => {
            BufReader::new(&stream).read_line(&mut line).unwrap();
            return None;
        }
        Manner::Babbles => "ok ".repeat(100_000),
        Manner::Answers => {
            BufReader::new(&stream).read_line(&mut line).unwrap();
            answer(state, line.trim_end_matches('\n')).to_string()
        }
    };
    // Whoever asked may have heard enough.
    drop(stream.write_all(format!("{answer}\n").as_bytes()));
    None
}

fn answer(state: &mut State, line: &str) -> ServerAnswer {
    let ServerRequest { disk, text, .. } = match line.parse() {
        Ok(request) => request,
        Err(why) => return ServerAnswer::Refused(why),
    };
    let Some(weight) = state.weights.get_mut(&disk) else { return ServerAnswer::Gone };
    match text.map(|text| text.parse::<u32>()) {
        None => {}
        Some(Ok(new @ 1..=10_000)) => *weight = new,
        Some(_) => return ServerAnswer::Refused("weights go from 1 to 10000".to_owned()),
    }
    ServerAnswer::Holds(weight.to_string())
}

fn target(disk: &str) -> KnobTarget {
    KnobTarget::Server { server: "blk".to_owned(), disk: disk.to_owned() }
}

fn detail(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { detail, .. } => detail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_weight_at_a_server_is_journalled_told_and_undone() {
    let runtime = Runtime::new();
    let (_lock, mut writer, _) = runtime.start();
    assert_eq!(writer.inspect(&inspection(&target("a"), WEIGHT, DISK)), Outcome::Vanished, "no server yet");
    let server = Server::start(&runtime, "blk");
    assert_eq!(writer.inspect(&inspection(&target("a"), WEIGHT, DISK)), Outcome::Text("100".to_owned()));
    assert_eq!(writer.inspect(&inspection(&target("c"), WEIGHT, DISK)), Outcome::Vanished, "no such disk");
    for weight in ["400", "7"] {
        let written = writer.write(&knob_write(&target("a"), WEIGHT, DISK, weight, "100"));
        assert_eq!((written, server.weight("a")), (Outcome::Text(weight.to_owned()), weight.parse().unwrap()));
        assert_eq!((writer.held(), runtime.journal_lines()), (1, 2));
    }
    let refused = detail(writer.write(&knob_write(&target("a"), WEIGHT, DISK, "0", "100")));
    assert!(refused.contains("refused `set weight a 0`: weights go from 1 to 10000"), "{refused}");
    let undone = writer.write(&knob_write(&target("a"), WEIGHT, DISK, "100", "100"));
    assert_eq!((undone, server.weight("a")), (Outcome::Text("100".to_owned()), 100));
    assert_eq!((writer.held(), runtime.journal_path().exists()), (0, false));
}

#[test]
fn what_a_server_was_told_is_put_back_after_a_crash_and_when_a_lease_ends() {
    for when in [RestoreWhen::Always, RestoreWhen::IfLeaseExpired(boottime_now() + Nanos::from_secs(7_200))] {
        let runtime = Runtime::new();
        let server = Server::start(&runtime, "blk");
        let (lock, mut writer, _) = runtime.start();
        writer.write(&knob_write(&target("a"), WEIGHT, DISK, "400", "100"));
        writer.write(&knob_write(&target("b"), WEIGHT, DISK, "3", "100"));
        assert_eq!((server.weight("a"), server.weight("b")), (400, 3));
        // As a crash leaves it.
        drop((lock, writer));
        let report = restore(&runtime.settings, when).unwrap();
        assert!(report.is_complete() && report.knobs.len() == 2, "{report}");
        assert_eq!((server.weight("a"), server.weight("b")), (100, 100), "{report}");
        assert!(report.to_string().contains("a weight 8:0: restored (`100`)"), "{report}");
    }
}

#[test]
fn what_ended_with_its_server_is_not_put_back_to_the_next() {
    let runtime = Runtime::new();
    let server = Server::start(&runtime, "blk");
    let (lock, mut writer, _) = runtime.start();
    writer.write(&knob_write(&target("a"), WEIGHT, DISK, "400", "100"));
    drop(server);
    assert_eq!(writer.inspect(&inspection(&target("a"), WEIGHT, DISK)), Outcome::Vanished, "its socket is still there");
    // No server starts anew within a tick of the kernel's clock, by which files are dated.
    std::thread::sleep(Duration::from_millis(30));
    let next = Server::start(&runtime, "blk");
    next.state.lock().unwrap().weights.insert("a".to_owned(), 300);
    drop((lock, writer));
    let report = restore(&runtime.settings, RestoreWhen::Always).unwrap();
    assert!(
        matches!(&report.knobs[0].result, RestoreResult::Gone(why) if why.contains("of the same name")),
        "{report}"
    );
    assert_eq!((next.weight("a"), report.is_complete(), runtime.journal_path().exists()), (300, true, false));
}

#[test]
fn a_server_that_hangs_is_asked_once_and_then_left_alone_and_nonsense_is_refused() {
    for (manner, words) in
        [(Manner::Hangs, "did not answer"), (Manner::Babbles, "more than a line"), (Manner::HangsUp, "is no answer")]
    {
        let runtime = Runtime::new();
        let server = Server::start(&runtime, "blk");
        let (_lock, mut writer, _) = runtime.start();
        server.behave(manner);
        let first = detail(writer.inspect(&inspection(&target("a"), WEIGHT, DISK)));
        assert!(first.contains(words), "{first}");
        let written = detail(writer.write(&knob_write(&target("b"), WEIGHT, DISK, "400", "100")));
        assert_eq!((writer.held(), server.weight("b")), (0, 100), "{written}");
        if manner == Manner::Hangs {
            assert!(written.contains("a moment ago"), "{written}");
            wait_until("the one connection", || server.connections() == 1);
        }
    }
}

#[test]
fn only_names_of_disks_at_sockets_of_servers_are_told_anything() {
    let runtime = Runtime::new();
    let (_lock, mut writer, _) = runtime.start();
    let folder = runtime.settings.runtime_dir.join("servers");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    std::os::unix::fs::symlink("/dev/log", folder.join("link")).unwrap();
    let mut told = |server: &str, disk: &str, file| {
        let target = KnobTarget::Server { server: server.to_owned(), disk: disk.to_owned() };
        detail(writer.inspect(&inspection(&target, file, DISK)))
    };
    for (server, disk) in [("../lock", "a"), ("blk", "a 1\nset weight b 2"), ("", "a"), ("blk", ".")] {
        assert!(told(server, disk, WEIGHT).contains("is no name"), "{server} {disk}");
    }
    // A link is not followed.
    for server in ["file", "link"] {
        assert!(told(server, "a", WEIGHT).contains("is no socket"), "{server}");
    }
    assert!(told("blk", "a", KnobFile::IoMax).contains("io.max is a file of a cgroup, not of a server"));
    let disk = KnobTarget::Disk { name: "sda".to_owned() };
    assert!(detail(writer.inspect(&inspection(&disk, WEIGHT, DISK))).contains("weight is a knob of a server"));
}
