//! Operators' tools and the metrics: two sockets, served on a thread of their own.

pub(crate) mod access;
pub(crate) mod days;
pub(crate) mod explain;
mod forecast;
pub(crate) mod foreseen;
mod idle;
pub(crate) mod listen;
mod metrics_server;
mod refusals;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod status;
