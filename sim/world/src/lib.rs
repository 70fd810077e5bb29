//! The simulator's loop: virtual time, processes in tenants, a scheduler in each guest if wanted and one on the host, one
//! disk, and Minerva's own engine turning the weights each slice as `minervad` does.
//!
//! | file | what |
//! |---|---|
//! | `setup` | what a world is made of |
//! | `world` | the loop |
//! | `account` | what is measured of each process, in constant memory |
//! | `promise` | whether a process got what it was promised |
//! | `steering` | the engine with a virtual kernel under it |
//! | `throttle` | the layer that holds requests of capped tenants |
//! | `report` | what happened so far |
//! | `supposed` | outlooks of experiments in place of the engine's own |
//! | `usage` | what tenants use besides the disk |
//! | `fault` | slow disks and disks that stand still |
//! | `ideal` | servers of queueing theory |
//! | `sweep` | many worlds on several threads |
//!
//! A world has no clock, no thread and no chance of its own: the same setup gives the same report, byte for byte.

mod account;
mod fault;
mod ideal;
mod kind;
mod promise;
mod report;
mod setup;
mod steering;
mod supposed;
mod sweep;
mod throttle;
mod usage;
mod world;

pub use account::{Account, Report, ReportedProcess, ReportedTenant, Until};
pub use fault::{Fault, Faulty};
pub use ideal::{Ideal, Service};
pub use promise::{Promise, ReportedPromise};
pub use setup::{EngineSetup, GuestSetup, ProcessSetup, TenantSetup, WorldSetup};
pub use steering::{Counters, Disks, Steering};
pub use supposed::OutlookSource;
pub use sweep::sweep;
pub use world::World;
