//! The doors with a loop that answers by rote: what tenants, strangers and attackers meet.

mod crowd;
mod hostile;
mod messages;
mod network;
mod raw;
mod stage;
mod trial;
