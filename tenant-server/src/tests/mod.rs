//! The server with a loop that answers as scripted: what tenants, unknown clients and attackers meet.

mod crowd;
mod fuzzed_server;
#[path = "../../../linux/observe/tests/observe/hanging.rs"]
mod hanging;
mod held_up;
mod hostile;
mod messages;
mod network;
mod raw;
mod stage;

pub(crate) use held_up::OneGroup;
