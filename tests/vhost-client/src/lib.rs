//! A vhost-user-blk front end without a guest: what QEMU and the driver of its guest do together, over a real socket, with real
//! shared memory and real rings. A test drives a server with it, honestly or not; a measurement compares servers.
//!
//! Memory: each ring has a page-aligned part with its tables and then its slots. A slot is room for one request: header, status,
//! an indirect table, and data of [`ClientOptions::data_bytes`]. Errors are panics: a test wants to know where.

#![allow(clippy::expect_used, reason = "only tests and measurements use it, and they want to know where it failed")]

mod client;
mod request;
mod ring;

pub use client::{Client, ClientOptions};
pub use request::{Answer, Layout, Request};
pub use ring::ClientRing;

/// Types of requests (Virtual I/O Device specification 1.3, section 5.2.6).
pub mod kind {
    /// Read.
    pub const IN: u32 = 0;
    /// Write.
    pub const OUT: u32 = 1;
    /// Make durable.
    pub const FLUSH: u32 = 4;
    /// Serial number.
    pub const GET_ID: u32 = 8;
    /// Forget a range.
    pub const DISCARD: u32 = 11;
    /// Zero a range.
    pub const WRITE_ZEROES: u32 = 13;
}
