//! A worker that takes part in its own scheduling (Malensek et al. 2016, section 3), as a real tenant does: its process, in its own
//! cgroup, asks the daemon. How that is spoken is the program's, not the laboratory's.

use super::WorkloadSpec;
use crate::error::Result;
use minerva_model::{Level, Nanos};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a worker tells the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// It steps back this far while it works.
    StepsBack(Level),
    /// It asks when to begin, and will have begun within this time.
    BeginsWithin(Nanos),
    /// It asks when to begin, and wants to be done within this time.
    DoneWithin(Nanos),
}

impl Part {
    /// In words, for tables.
    pub fn words(self) -> String {
        match self {
            Self::StepsBack(level) => format!("steps back ({level})"),
            Self::BeginsWithin(within) => format!("coordinates, begins within {within}"),
            Self::DoneWithin(within) => format!("coordinates, done within {within}"),
        }
    }
}

/// A worker's part, and whom it asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakesPart {
    /// The daemon's socket for tenants.
    pub socket: PathBuf,
    /// What it says.
    pub part: Part,
}

/// Asks on the worker's behalf and returns when the work may begin. What it returns is called when the work is done.
pub type Begin<'a> = &'a dyn Fn(&WorkloadSpec, &TakesPart) -> Result<Box<dyn FnOnce()>>;
