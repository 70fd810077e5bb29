//! Minerva's own data path: a vhost-user-blk server for the disks of unmodified QEMU guests, in which the schedulers of
//! `core/blocksched` order single requests.

pub mod tag;
