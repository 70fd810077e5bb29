//! The server for operators' tools, and where metrics are scraped: two sockets, on a thread of their own.
//!
//! The way of a call: [`listen`] opens the sockets; [`server`] accepts a connection, `access` says what its client may do; [`service`]
//! turns a call into an [`call::OperatorCall`], which the slice loop takes from its [`call::CallSink`] and answers. What is in the store
//! only (`explain`, `audit`) is asked of the store's thread.

mod access;
pub mod audit;
pub mod call;
pub mod explain;
mod idle;
pub mod job_runs;
pub mod listen;
mod looks;
mod plans;
mod refusals;
mod room;
pub mod server;
pub mod service;
