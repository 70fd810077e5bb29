//! The simulator's loop: virtual time, processes in tenants, a scheduler in each guest if wanted and one on the host, one
//! disk, and Minerva's own engine turning the weights each slice as `minervad` does.
//!
//! | file | what |
//! |---|---|
//! | `setup` | what a world is made of |
//! | `world` | the loop |
//! | `account` | what is measured of each process, in constant memory |
//! | `steering` | the engine with a virtual kernel under it |
//!
//! A world has no clock, no thread and no chance of its own: the same setup gives the same report, byte for byte.

mod account;
mod setup;
mod steering;
mod world;

pub use account::{Account, Report, ReportedProcess, ReportedTenant};
pub use setup::{GuestSetup, ProcessSetup, TenantSetup, WorldSetup};
pub use world::World;
