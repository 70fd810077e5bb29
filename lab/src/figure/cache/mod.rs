//! The cache, measured from outside: what its users do goes through its mounts and its socket.

mod acts;
mod burst;
mod crowd;
mod hostile;
mod migration;
mod neighbours;
mod service;
mod throughput;
mod trees;

pub use acts::{HOSTILE_OPENED, Hostility, hostile_main};
pub use burst::MigrationArm;
pub use crowd::{CacheCrowdPlan, CacheCrowdResult, cache_crowd};
pub use hostile::{HostilePlan, HostileResult, HostileWindow, cache_hostile};
pub use migration::{MigrationPlan, cache_migration};
pub use neighbours::{MigrationRun, NEIGHBOURS, NeighbourRun};
pub use throughput::{ThroughputResult, Transfer, cache_throughput};
pub use trees::ThroughputPlan;
