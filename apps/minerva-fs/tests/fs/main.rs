//! The service as a tenant's programs and an operator have it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod operations;
mod place;
