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
//! | `hdd` | a hard disk: queue and buffer on top of those |
//! | `ssd` | an SSD |

mod device;
mod geometry;
mod hdd;
mod mechanism;
mod profile;
mod random;
mod seek;
mod ssd;

pub use device::{Completion, DeviceModel, Kind, Request, RequestError, Statistics, check_request};
pub use profile::{
    CacheProfile, HddProfile, Layout, Media, Overhead, Profile, ProfileError, Sparing, WriteBack, Zone, profile,
    profile_names,
};
pub use seek::Seek;
pub use ssd::{Collection, PageTime, SsdProfile};
