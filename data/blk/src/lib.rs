//! Minerva's own data path: a vhost-user-blk server for the disks of unmodified QEMU guests, in which the schedulers of
//! `core/blocksched` order single requests.
//!
//! | file | question |
//! |---|---|
//! | `server` | which disks are there, who serves them, and how do they change? |
//! | `session` | what does a front end say over its socket? |
//! | `device` | what is a guest offered? |
//! | `frame` | how do descriptors get to another process? |
//! | `worker` | one thread for each physical disk: from rings to the scheduler, to the disk, and back |
//! | `memory`, `mapped` | what does a front end share, and where does it lie here? |
//! | `ring`, `split`, `chain` | what did a guest make available? Judged, and copied once |
//! | `signal` | how is a guest told of answers, without waiting for it? |
//! | `ahead` | what of it will be looked at soon? |
//! | `request`, `tag` | what does a request ask for, and how urgent is it? Pure |
//! | `failure` | what did an image fail, and what is to be done about it? Pure |
//! | `measure` | how are disks doing, and is what was promised kept? Pure |
//! | `inflight` | what was under way when a process was killed? |
//! | `image`, `transfer` | how do bytes get to the disk and back? |
//!
//! A guest is hostile: whatever it writes to its rings is answered with an error or not at all, and touches neither another
//! disk nor the thread that serves it. A front end has to share memory whose length is sealed (`memory-backend-memfd`), as one that
//! shortens it would kill this process.

mod ahead;
mod chain;
mod device;
mod error;
mod failure;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod image;
mod inflight;
mod mapped;
mod measure;
mod memory;
pub mod request;
mod ring;
mod server;
mod session;
mod signal;
mod split;
pub mod tag;
mod transfer;
mod worker;

pub use error::{HangUp, ImageError, ServerError};
pub use failure::{Failure, TellFailure};
pub use image::{Image, ImageOptions, LOCK_PATIENCE, UnlockedImage};
pub use measure::ContractTerms;
pub use server::{
    FrontEndState, Listening, PhysicalDisk, ReservedSocket, Resumption, Server, SuspendedDisk, TellHangUp, VmDisk,
    listen,
};
pub use transfer::TransferKind;
pub use worker::{DiskCounters, DiskMeasures, RequestLog, VmTerms};
