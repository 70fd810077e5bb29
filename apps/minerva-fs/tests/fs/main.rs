//! The service as a tenant's programs and an operator have it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

mod command_line;
mod databases;
mod deferred;
mod deferred_beside;
mod deferred_directories;
mod deferred_failures;
mod deferred_limits;
mod deferred_many;
mod deferred_places;
mod descriptors;
mod differential;
mod disk_queue;
mod doctor;
mod durable;
mod every_step;
mod frozen;
mod guest_doctor;
mod guest_role;
mod kill;
mod mapped;
mod metrics;
mod open_after_kill;
mod operations;
mod permissions;
mod pool_disk;
mod pool_folder;
mod posix;
mod quota;
mod reload;
mod second_account;
mod settling;
mod spill;
mod surroundings;
mod units;
mod unnamed;
