//! The program as a user runs it: what it prints, what it writes, and what it says about bad input.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod admit;
mod bad_arguments;
mod bad_input;
mod jobs;
mod reproduce;
mod traces;
mod unread;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program came to.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    /// Standard output of a run that went well.
    fn out(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Standard output of a run that went well, as JSON.
    fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.out()).expect("one JSON value")
    }

    /// Standard error of a run that failed, and printed nothing else.
    fn refusal(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{}", self.err);
        self.err
    }
}

/// Runs the program in `directory`, so that the names in its messages are as they were typed here.
fn sim(directory: &Path, arguments: &[&str]) -> Ran {
    fed(directory, arguments, &[])
}

/// The same with something on standard input.
fn fed(directory: &Path, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_minerva-sim"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // The inputs of these tests fit a pipe, so this cannot wait for a program that waits for us. One that refuses to read
    // closes the pipe, which is no failure of the test.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A directory with these files in it.
fn place(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("minerva-test-sim-").tempdir().expect("a directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a file");
    }
    directory
}
