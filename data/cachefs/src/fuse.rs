//! A file system of ours as the kernel's FUSE wants it. The only file that names the FUSE crate.

mod adapter;
mod backing;
mod session;

pub use session::{Forgetting, MountOptions, Mounted, mount};
