//! Output that cannot be written: nobody reads it, or there is no room.

use std::fs::File;
use std::process::{Child, Command, Stdio};

#[test]
fn output_that_nobody_takes_ends_it_without_a_panic() {
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ends = |out: Stdio| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_minerva-sim"));
        program.args(["reproduce", "background", "--traces", "absent"]).stdout(out).stderr(Stdio::piped());
        let ended = program.spawn().and_then(Child::wait_with_output).expect("the program");
        (ended.status.code(), String::from_utf8(ended.stderr).expect("UTF-8"))
    };
    assert_eq!(ends(closed.into()), (Some(141), String::new()));
    let full = File::options().write(true).open("/dev/full").expect("a disk without room");
    let (code, said) = ends(full.into());
    assert!(said.starts_with("minerva-sim: failed to write to standard output: No space left"), "{said}");
    assert_eq!(code, Some(2));
}
