//! Reads cgroups, disks and processes into samples: with `linux/actuate` the only place that names `/sys`, `/proc` or a
//! cgroup path, and it writes nothing.
//!
//! | file | question |
//! |---|---|
//! | `roots` | where are this host's trees? |
//! | `tree`, `delegated`, `joined`, `classify`, `rules`, `tenants` | which cgroups are tenants, of what kind, under what name? |
//! | `guests` | which of them are QEMU guests? |
//! | `hidden` | which could be and are not, because the controller ends above them? |
//! | `disks`, `stack` | which disks are there, what do they stand on, which knob bites? |
//! | `free_space` | how much is free on their file systems? |
//! | `mounts` | what does the controller see of each file system? |
//! | `counters`, `disk_stats`, `processes`, `open_files` | what did everyone transfer and use? |
//! | `aside`, `process_asker`, `process_files`, `silences` | what does a process use that may never answer? |
//! | `machines` | which process is the virtual machine of a number on vsock? |
//! | `peer` | who connected to a socket? |
//! | `descriptors`, `parents`, `remainder` | which counter files stay open, and which need not be read? |
//! | `parse` | what does a kernel text say? Pure, lenient, fuzzed |
//! | `read`, `skips` | how is a file read safely, and what was passed over? |
//!
//! After it is made an [`Observer`] does not fail: what cannot be read is passed over and counted in
//! [`minerva_model::Sample::skipped`]; what vanished between two looks is not even that, for it is normal. It keeps files of counters
//! open, [`DESCRIPTORS_MAX`] at most and a quarter of what the process may have, and does with fewer. Every path below it is resolved by the kernel
//! without following a link or leaving the hierarchy.

mod aside;
mod classify;
mod counter_files;
mod counter_slice;
mod counters;
mod delegated;
mod descriptors;
mod disk_stats;
mod disks;
mod error;
mod free_space;
mod guests;
mod hidden;
mod identity;
mod images;
mod joined;
mod listing;
mod machines;
mod mounts;
mod network;
mod observer;
mod open_files;
mod parents;
pub mod parse;
mod peer;
mod pids;
mod process_asker;
mod process_files;
mod processes;
mod read;
mod remainder;
mod roots;
mod rules;
mod silences;
mod skips;
pub mod socket_path;
mod stack;
mod subtrees;
mod tenant_counters;
mod tenants;
mod tree;
mod turns;

pub use aside::AsideThreads;
pub use descriptors::DESCRIPTORS_MAX;
pub use error::ObserveError;
pub use free_space::{FreeSpaceAsker, FreeSpaceRound, SilentFileSystem};
pub use hidden::HiddenGroups;
pub use images::GuestDisk;
pub use machines::{Machines, NoMachine};
pub use mounts::{MountFacts, read_mount_facts};
pub use observer::{Observer, ReadCounts, disks_below};
pub use peer::PeerCredentials;
pub use roots::Roots;
