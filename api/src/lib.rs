//! The wire contract and its Rust client.
//!
//! The contract is `proto/minerva/v1/*.proto`, where every message, unit and rule of change is written down; [`v1`] is
//! what the compiler of protocol buffers makes of it. Today it has one service, [`v1::operator_server::Operator`], spoken
//! over a Unix socket on the host. What tenants may ask will be a second service in the same package.
//!
//! [`client`] connects to it. The cache has a socket and a contract of its own, [`cache`]: lines of JSON, which a program in any language
//! can speak without a library. The crate knows nothing of the rest of Minerva, so that a program outside this repository can
//! take it alone.

pub mod cache;
pub mod client;
mod pool;

/// Version 1 of the contract, generated from `proto/minerva/v1` by `tests/generated.rs`.
#[expect(missing_docs, reason = "generated: the .proto file documents every item")]
#[expect(
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    reason = "generated code is not ours to style"
)]
pub mod v1 {
    include!("generated/minerva.v1.rs");
}
