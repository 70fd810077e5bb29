//! The program as an operator has it: its file, its answers, and what guests keep when it ends, well or badly.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod adding;
mod bad_input;
mod command_line;
mod contracts;
mod control;
mod guest;
mod guest_under_load;
mod hand_over;
#[path = "../../../../data/blk/tests/common/hanging.rs"]
mod hanging;
mod kill;
mod limits;
mod load;
mod operator;
mod pause;
mod power_cut;
mod retry;
mod server_folder;
mod share;
mod silent_storage;
mod time_slice;
mod verifier;
