//! The observer on trees that look like a host's, and on the real kernel.

#![expect(clippy::unwrap_used, reason = "what a test builds its case with fails the test when it fails")]

mod beginning;
mod disks;
mod fake_host;
mod fuzzed;
mod hanging;
mod identity;
mod kernel;
mod real_guest;
mod resting;
mod silent;
mod v1;
mod v2;
