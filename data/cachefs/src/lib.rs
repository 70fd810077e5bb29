//! The cache's data path: a tenant's tree in memory (`temporary`) or on a disk set aside (`stable`), served through FUSE.
//!
//! | file | question |
//! |---|---|
//! | `file_system` | what is a file system to us? One trait, without FUSE |
//! | `fuse` | how does the kernel ask? The only file that names the FUSE crate |
//! | `tree` | the trait over a directory: names, attributes, data, each accounted |
//! | `node` | what is known of one file while the kernel knows it? |
//! | `account` | how much does a tenant use, and may it use more? Pure |
//! | `descriptors` | how many files may the kernel know of a tenant at once? Pure |
//! | `disk_queue` | who may use the pool's disk now? |
//! | `census` | what lies in a directory: the same numbers by a walk |
//! | `descent` | the way of a walk, with few directories open |
//! | `project` | what does the kernel count by itself? |
//! | `caller` | in whose name is a file made? |
//! | `spill` | how does a closed file go from memory to the disk? |
//! | `requests` | how many passed the service, and how long did each take? |
//! | `lease` | who else has a file open, and who comes? |
//! | `write_back` | what was written, on its way to the disk |
//! | `failures` | what did the disk fail, and who was told? Pure |
//! | `reopen` | a file that is known by descriptor only, opened or named |
//!
//! Everything that was acknowledged is in the page cache of the file system below, so that the end of this process, however sudden,
//! loses none of it. What `fsync` and `close` promise beyond that says [`TreeOptions::is_durable`]. What each call
//! promises says `docs/cache-semantics.md`.

mod account;
mod blocks;
mod caller;
mod census;
mod descent;
mod descriptors;
mod disk_queue;
mod disk_room;
mod failures;
mod file_system;
mod fuse;
mod lease;
mod node;
mod project;
mod reopen;
mod requests;
mod spill;
mod tree;
mod write_back;

pub use account::{Account, Usage};
pub use census::{Census, take_census, take_census_up_to};
pub use descriptors::Descriptors;
pub use disk_queue::{DiskFlow, DiskQueue, QueueFigures};
pub use file_system::{
    Attributes, Caller, Changes, DirectoryEntry, FileSystem, Moment, NewTime, Opened, Result, Space, WriteOrigin,
};
pub use fuse::{Forgetting, MountOptions, Mounted, mount};
pub use project::{ProjectUsage, change_project, count_without_project, project_of, project_usage};
pub use requests::{LATENCY_BOUNDS_NS, Operation, RequestCounters, RequestFigures};
pub use spill::{SpillArea, SpillError, SpillPass};
pub use tree::{DEFERRED, MoveRefusal, Moving, Tree, TreeCounters, TreeError, TreeOptions, UNITS, Whereabouts};
