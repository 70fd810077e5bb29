//! C programs, compiled as a user compiles them, against a server at a real socket. `cargo xtask sdk check` installs the library
//! and says where by `MINERVA_C_PREFIX`.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

#[path = "../../../api/client/tests/client/server.rs"]
#[expect(dead_code, reason = "the Rust client's tests need more of it")]
mod server;

use minerva_client::v1;
use minerva_client::v1::coordinate_response::Answer;
use server::Listening;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_header_is_what_the_sources_say() {
    let mut header = Vec::new();
    cbindgen::generate(HERE).expect("a header").write(&mut header);
    // UPDATE_EXPECT=1 writes it.
    expect_test::expect_file!["../include/minerva.h"].assert_eq(std::str::from_utf8(&header).expect("UTF-8"));
}

fn place() -> TempDir {
    tempfile::Builder::new().prefix("minerva-test-c-").tempdir().expect("a directory")
}

/// Where the library is installed; nothing, with the reason printed, where it is not or cannot be used.
fn prefix() -> Option<PathBuf> {
    let Some(prefix) = std::env::var_os("MINERVA_C_PREFIX") else {
        eprintln!("skipped: needs MINERVA_C_PREFIX, as `cargo xtask sdk check` sets it");
        return None;
    };
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    // Apart from the prefix: without it these tests are run again, without one of these they are not.
    if let Some(program) = ["cc", "pkg-config"].into_iter().find(|program| !has(program)) {
        eprintln!("skipped: needs {program}");
        return None;
    }
    Some(PathBuf::from(prefix))
}

/// Compiles a program with the flags that pkg-config knows; the program.
fn compile(prefix: &Path, source: &str, directory: &Path, is_static: bool) -> PathBuf {
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs"]).args(is_static.then_some("--static")).arg("minerva");
    let answer = asked.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).output().expect("pkg-config");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let mut flags = String::from_utf8(answer.stdout).expect("flags");
    if is_static {
        flags = flags.replace("-lminerva", "-l:libminerva.a");
    }
    let program = directory.join(if is_static { "static" } else { "shared" });
    let warnings = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"];
    let mut compiler = Command::new("cc");
    compiler.args(warnings).arg(Path::new(HERE).join(source)).arg("-o").arg(&program).args(flags.split_whitespace());
    let output = compiler.output().expect("cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs it where nothing of this machine is found but what `address` names.
fn run(prefix: &Path, program: &[&Path], address: Option<&str>, arguments: &[&Path]) -> Output {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(arguments).env_clear().env("LD_LIBRARY_PATH", prefix.join("lib"));
    command.env("MINERVA_ADDRESS", address.unwrap_or("unix:/nonexistent/minerva-test.sock"));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("MINERVA_AGENT", "");
    command.output().expect("the program")
}

fn good(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server that refuses the first request and lets everything begin; its address.
fn serve(directory: &Path) -> (Listening, String) {
    let socket = directory.join("tenant.sock");
    let server = Listening::at(&socket);
    *server.script.first.lock().expect("no panic") = Some(Answer::BeginNow(v1::BeginNow {}));
    (server, format!("unix:{}", socket.display()))
}

fn refuse_once(server: &Listening, code: Code, word: &'static str, sentence: &str) {
    let mut metadata = MetadataMap::new();
    metadata.insert("minerva-refusal", word.parse().expect("a word"));
    let refusal = Status::with_metadata(code, sentence, metadata);
    server.script.refusals.lock().expect("no panic").push_back(refusal);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_function_does_what_its_header_says() {
    let Some(prefix) = prefix() else { return };
    let place = place();
    let (server, address) = serve(place.path());
    for is_static in [false, true] {
        let program = compile(&prefix, "tests/check.c", place.path(), is_static);
        refuse_once(&server, Code::FailedPrecondition, "not-enough-credits", "The account holds 3 credits.");
        // Asked again, under the same key.
        refuse_once(&server, Code::DeadlineExceeded, "no-answer", "There was no answer within 5 s.");
        let (prefix, address) = (prefix.clone(), address.clone());
        let output = spawn_blocking(move || run(&prefix, &[&program], Some(&address), &[])).await.expect("a thread");
        assert_eq!(good(&output), "good\n");
    }
    let keys = server.script.calls_of("boost");
    assert!(keys[1] == "own-key" && keys[2] == "own-key" && keys.len() == 8, "{keys:?}");
    assert_eq!(server.script.calls_of("finish").len(), 2);
    assert_eq!(server.script.calls_of("cancel").len(), 2);
    // Every level that was held is given back.
    server.script.holds.subscribe().wait_for(|holds| *holds == 0).await.expect("the server is there");
}

#[test]
fn without_a_server_nothing_fails_and_one_line_says_so() {
    let Some(prefix) = prefix() else { return };
    let place = place();
    let program = compile(&prefix, "tests/check.c", place.path(), false);
    let output = run(&prefix, &[&program], None, &[Path::new("unserved")]);
    assert_eq!(good(&output), "good\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.lines().filter(|line| line.contains("going on without")).count(), 1, "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_an_agent_without_a_server_nothing_fails_and_one_line_says_so() {
    let Some(prefix) = prefix() else { return };
    let place = place();
    let (server, address) = serve(place.path());
    let program = compile(&prefix, "tests/check.c", place.path(), false);
    refuse_once(&server, Code::Unavailable, "no-server", "No server answers at vsock:2:7420.");
    let run = move || run(&prefix, &[&program], Some(&address), &[Path::new("unserved")]);
    let output = spawn_blocking(run).await.expect("a thread");
    assert_eq!(good(&output), "good\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.lines().filter(|line| line.contains("going on without")).count(), 1, "{errors}");
    assert_eq!(server.script.calls_of("boost").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_copies_a_file_and_leaks_nothing() {
    let Some(prefix) = prefix() else { return };
    let place = place();
    let (server, address) = serve(place.path());
    let program = compile(&prefix, "examples/backup.c", place.path(), false);
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    std::fs::write(&from, "worth keeping").expect("a file");
    let valgrind: &[&str] = if Command::new("valgrind").arg("--version").output().is_ok() {
        &["valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite", "--error-exitcode=9"]
    } else {
        eprintln!("skipped: leaks are found with valgrind");
        &[]
    };
    let copied = to.clone();
    let run = move || {
        let words: Vec<&Path> = valgrind.iter().map(Path::new).chain([program.as_path()]).collect();
        run(&prefix, &words, Some(&address), &[&from, &to])
    };
    assert_eq!(good(&spawn_blocking(run).await.expect("a thread")), "copied; 75.0 credits\n");
    assert_eq!(std::fs::read(copied).expect("the copy"), b"worth keeping");
    assert_eq!(server.script.calls_of("coordinate"), server.script.calls_of("finish"));
}
