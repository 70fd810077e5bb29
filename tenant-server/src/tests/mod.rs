//! The server with a loop that answers as scripted: what tenants, unknown clients and attackers meet.

mod crowd;
mod fuzzed_server;
mod hostile;
mod messages;
mod network;
mod raw;
mod stage;
