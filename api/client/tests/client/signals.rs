//! Signals go to the program and not to threads of the library.

use crate::server::Listening;
use crate::{LONG, options, place};
use minerva_client::{Agent, Options, blocking};
use nix::sys::signal::SigSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// SIGTERM, SIGALRM and SIGSEGV, as the kernel counts them.
const TERMINATE: u64 = 1 << 14;
const ALARM: u64 = 1 << 13;
const MISTAKE: u64 = 1 << 10;

/// The signals that a thread holds off; nothing of one that has ended.
fn held_off(thread: &Path) -> Option<u64> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    Some(u64::from_str_radix(line.trim(), 16).expect("a set of bits"))
}

/// What the threads of blocking clients hold off. Other tests have some too.
fn of_the_library() -> Vec<u64> {
    let threads = fs::read_dir("/proc/self/task").expect("threads").filter_map(Result::ok).map(|entry| entry.path());
    let own =
        threads.filter(|at| fs::read_to_string(at.join("comm")).is_ok_and(|name| name.trim() == "minerva-client"));
    own.filter_map(|thread| held_off(&thread)).collect()
}

#[test]
fn no_thread_of_the_library_takes_a_signal_and_the_programs_take_what_they_took() {
    let place = place();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime for the server");
    let _server = runtime.block_on(async { Listening::at(&place.path().join("tenant.sock")) });
    let own = Path::new("/proc/thread-self");
    let before = held_off(own);
    let client = blocking::Client::with_options(options(place.path())).expect("a client");
    assert_eq!((client.describe().expect("an answer").tenant.as_str(), held_off(own)), ("scripted", before));
    // A thread that another test has just started may be about to.
    let begin = Instant::now();
    loop {
        let all = of_the_library();
        assert!(!all.is_empty());
        if all.iter().all(|one| one & (TERMINATE | ALARM | MISTAKE) == TERMINATE | ALARM) {
            break;
        }
        assert!(begin.elapsed() < LONG, "{all:x?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The agent's part is played by a script that notes which signals it holds off, and what it has open.
#[test]
fn an_agent_takes_signals_and_no_descriptors_whatever_the_program_that_starts_it_has() {
    let place = place();
    let (program, log) = (place.path().join("agent"), place.path().join("log"));
    // As a shell holds a lock: programs that it starts have it too.
    let lock = fs::File::create(place.path().join("lock")).expect("a lock");
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty()).expect("it outlives exec");
    let text = format!(
        "#!/bin/sh\n(grep SigBlk /proc/self/status; ls -l /proc/$$/fd | grep -c /lock) > {0}.new\nmv {0}.new {0}\n",
        log.display()
    );
    fs::write(&program, text).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let socket = place.path().join("own/agent.sock");
    let agent = Agent { program, upstream: "vsock:2:7420".to_owned(), socket: socket.clone() };
    let options = Options { agent: Some(agent), ..options(place.path()) };
    SigSet::all().thread_block().expect("held off in the thread of this test");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let noted = runtime.block_on(async {
        let started = async {
            while !log.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Listening::at(&socket)
        };
        let (client, _server) = tokio::join!(options.connect(), started);
        client.expect("a client");
        fs::read_to_string(&log).expect("a log")
    });
    assert_eq!(noted.trim(), "SigBlk:\t0000000000000000\n0");
}
