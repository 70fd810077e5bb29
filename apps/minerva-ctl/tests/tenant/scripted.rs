//! What the tool says, and what it does all the same, when the server refuses, goes away or loses its answers.

use crate::bed::{text, tool};
use crate::server::{Listening, refusal};
use minerva_client::v1;
use minerva_client::v1::coordinate_response::Answer;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tokio::runtime::Runtime;
use tonic::Code;

/// A server that does what the test says. It ends with its runtime.
struct Stage {
    place: tempfile::TempDir,
    server: Listening,
    runtime: Runtime,
}

impl Stage {
    fn new(first: Option<Answer>) -> Self {
        let place = tempfile::Builder::new().prefix("minerva-test-tool-").tempdir().expect("a directory");
        let runtime = Runtime::new().expect("a runtime for the server");
        let server = runtime.block_on(async { Listening::at(&place.path().join("tenant.sock")) });
        *server.script.first.lock().expect("no panic") = first;
        Self { place, server, runtime }
    }

    fn tool(&self, arguments: &[&str]) -> Command {
        tool(&format!("unix:{}", self.place.path().join("tenant.sock").display()), arguments)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.tool(arguments).output().expect("the tool")
    }

    fn begin(&self, arguments: &[&str]) -> Child {
        self.tool(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool")
    }
}

#[test]
fn what_is_refused_until_it_must_begin_is_told_and_a_command_runs() {
    let stage = Stage::new(None);
    let refuse = || {
        let refused = refusal(Code::ResourceExhausted, "too-many", "16 operations wait or are under way.");
        *stage.server.script.refusals.lock().expect("no panic") = vec![refused; 100].into();
    };
    refuse();
    let ran = stage.run(&["run", "--when", "1M", "--begin-by", "1s", "--", "echo", "ran"]);
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(0), "ran\n"), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("16 operations wait or are under way; the command runs without"), "{ran:?}");
    refuse();
    let when = stage.run(&["when", "--bytes", "1M", "--begin-by", "1s"]);
    assert_eq!((when.status.code(), text(&when.stdout).as_str()), (Some(1), ""), "{}", text(&when.stderr));
    assert!(text(&when.stderr).contains("16 operations wait or are under way."), "{when:?}");
}

#[test]
fn whoever_goes_on_because_the_server_does_not_answer_is_told() {
    let silent = Stage::new(None);
    let mut stage = Stage::new(Some(Answer::Wait(v1::Wait { at_most_ns: None })));
    let run = stage.begin(&["run", "--when", "1M", "--", "echo", "ran"]);
    let when = stage.begin(&["when", "--bytes", "1M"]);
    let unanswered = silent.begin(&["when", "--bytes", "1M"]);
    stage.runtime.block_on(stage.server.script.called("coordinate", 2));
    stage.runtime.block_on(stage.server.kill());
    let answer_and_end = |child: Child| {
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = text(&output.stderr);
        assert_eq!(said.matches("the server does not answer; going on without").count(), 1, "{said}");
        text(&output.stdout)
    };
    assert_eq!(answer_and_end(run), "ran\n");
    assert!(answer_and_end(when).ends_with("now\n"));
    assert_eq!(answer_and_end(unanswered), "now\n");
}

#[test]
fn a_boost_whose_answer_is_lost_is_repeated_with_the_key_that_is_named_and_bought_once() {
    let stage = Stage::new(None);
    let script = &stage.server.script;
    *script.cuts.lock().expect("no panic") = u32::MAX;
    let lost = stage.run(&["boost", "3-slices"]);
    assert_eq!(lost.status.code(), Some(2), "{lost:?}");
    let said = text(&lost.stderr);
    let key = said.split_once("with `--key ").and_then(|(_, rest)| rest.split_once('`')).expect(&said).0;
    *script.cuts.lock().expect("no panic") = 0;
    let bought = stage.run(&["boost", "3-slices", "--key", key]);
    assert_eq!(text(&bought.stdout), "boosted for 3 slices: 75 credits spent, 0 left\n", "{bought:?}");
    assert_eq!(script.purchases.lock().expect("no panic").len(), 1);
}

#[test]
fn an_operation_is_for_the_disk_of_the_path_that_is_named() {
    let stage = Stage::new(Some(Answer::BeginNow(v1::BeginNow {})));
    let own = stage.place.path().to_str().expect("a path");
    let ask = |directory: &Path, arguments: &[&str]| {
        let asked = stage.tool(arguments).current_dir(directory).output().expect("the tool");
        assert_eq!(asked.status.code(), Some(0), "{asked:?}");
        stage.server.script.disks.lock().expect("no panic").pop().expect("asked")
    };
    let (here, elsewhere) = (stage.place.path(), Path::new("/proc"));
    let of_own = ask(here, &["when", "--bytes", "1M"]);
    assert_eq!(ask(elsewhere, &["when", "--bytes", "1M", "--path", own]), of_own);
    assert_eq!(ask(elsewhere, &["run", "--when", "1M", "--path", own, "--", "true"]), of_own);
    assert_eq!(ask(elsewhere, &["when", "--bytes", "1M"]), (String::new(), String::new()));
    assert_eq!(ask(here, &["when", "--bytes", "1M", "--device", "8:0"]), ("8:0".to_owned(), String::new()));
}
