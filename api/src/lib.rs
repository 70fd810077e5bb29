//! The wire contract and its Rust client.
