//! Disk models: service times of hard disks and SSDs, in virtual time.
//!
//! A [`Profile`] holds every parameter of a disk; [`profile`] knows some by name, [`Profile::parse`] reads one from TOML.
//! [`Profile::build`] makes a [`DeviceModel`] of it: requests in, completions out, no clock and no thread of its own.
//!
//! | file | what |
//! |---|---|
//! | `device` | the trait, requests, statistics |
//! | `profile` | parameters and their text form |
//! | `seek`, `geometry`, `mechanism` | arm, platters, addresses |
//! | `cache`, `timing`, `hdd` | a hard disk: buffer, electronics and queue on top of those |
//! | `ssd` | an SSD |
//! | `disksim` | profiles of measured drives, from DiskSim's parameter files |
//! | `service` | what a unit and a jump cost, for an admission test |
//! | `fit` | an SSD's parameters from a fio run |
//! | `validate` | replays a measured trace and compares the distributions of service times |

mod build;
mod cache;
mod device;
pub mod disksim;
pub mod fit;
mod geometry;
mod hdd;
mod limits;
mod mechanism;
mod profile;
mod random;
mod seek;
mod service;
mod ssd;
mod timing;
pub mod validate;

pub use device::{Completion, DeviceModel, Kind, Request, RequestError, Statistics, check_request};
pub use profile::{
    CacheProfile, Collection, HddProfile, Layout, Media, Overhead, PageTime, Profile, ProfileError, ReadAhead,
    Serpentine, Sparing, SsdProfile, WriteBack, Zone, profile, profile_names,
};
pub use seek::Seek;
pub use service::{JUMPS, ROW, ServiceTimesMeasured, Site, measure};
