//! The tenant's side of Minerva for Rust programs: step back, earn and spend credits, and ask when to begin.
//!
//! ```no_run
//! # async fn backup() {}
//! # async fn load() {}
//! # async fn example() -> Result<(), minerva_client::Error> {
//! use minerva_client::{Client, Level, Operation};
//! use std::time::Duration;
//!
//! let minerva = Client::connect().await?;
//! let held = minerva.hold_level(Level::Idle).await?; // only the gaps that others leave
//! backup().await;
//! drop(held); // as everyone again
//!
//! let operation = Operation::of_bytes(500 << 20).done_within(Duration::from_secs(20));
//! let mut coordinated = minerva.coordinate(operation).await?;
//! coordinated.wait().await;
//! load().await;
//! coordinated.finish().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A program is unharmed by Minerva's absence. Where there is no server, [`Client::connect`] says so once on standard
//! error (see [`Options::quiet`]) and gives a client that does nothing: levels and boosts have no effect, and every operation
//! may begin now. So it is behind an agent that has not reached its server. A client without a server looks for one again, at a
//! call and at most every [`Options::look_period`]. When a server goes away later, requests are sent again, under the same keys, for [`Options::patience`];
//! levels that are held are taken again when it is back; an operation begins when its deadline comes, or when the server was
//! away for longer than the patience, whoever is there to say so.
//!
//! Where the server is found: [`Options::from_environment`]. Programs without a runtime use [`blocking`]. The tasks of a
//! client run on the runtime on which it connected, which must have its I/O and time drivers enabled.

mod address;
mod agent;
mod backoff;
pub mod blocking;
pub mod cache;
mod client;
mod coordinated;
mod credentials;
mod debt;
mod error;
mod find;
mod hold;
mod level;
mod link;
mod operation;
mod options;
mod reporter;
mod server;
mod signals;
mod tagged;
mod transport;
mod working_device;

pub use address::Address;
pub use agent::Agent;
pub use backoff::Backoff;
pub use client::{BoostAmount, Client, Lifetime};
pub use coordinated::{Begun, Coordinated};
pub use credentials::Credentials;
pub use debt::{Debt, HeldDebt, Owing};
pub use error::{Error, retry_after};
pub use hold::{Held, HeldJob};
pub use level::{Level, UnknownWord};
pub use minerva_api::v1;
pub use operation::{Access, Answer, Deadline, Operation, asked_ago};
pub use options::{Options, PORT_DEFAULT};
pub use reporter::Reporter;
pub use tagged::{Tag, TagLevels, Tagged, tag_levels, tagged};
pub use transport::{Authorization, Transport, open, open_lazily};
pub use working_device::DiskLooks;
