//! The daemon; see `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    minervad::main()
}
