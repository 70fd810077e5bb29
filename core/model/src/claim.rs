//! Claims on a level: what a tenant set, what its connections hold, and what its schedule says.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a tenant steps back of its own will (Malensek et al. 2016, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As everyone.
    #[default]
    Normal,
    /// A part of what it would have.
    Low,
    /// A small part of it.
    Lowest,
    /// Only when nobody else uses the disk. No floor: it may be kept waiting for as long as others are busy.
    Idle,
}

impl Level {
    /// Every level, from the least to the greatest step back.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Low, Self::Lowest, Self::Idle];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Low => "low",
            Self::Lowest => "lowest",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A level that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetClaim {
    /// How far to step back.
    pub level: Level,
    /// When it ends by itself; absent: when it is released.
    pub until: Option<Nanos>,
}

/// What a schedule says. Schedules are of the clock on the wall in a time zone, which is the driver's to know: here are the level
/// of the moment and the next change, in the engine's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledClaim {
    /// How far to step back now.
    pub level: Level,
    /// From when on how far; absent: this stays.
    pub next: Option<(Nanos, Level)>,
}

/// All claims of a tenant. The furthest step back of them is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelClaims {
    /// The level that was set.
    pub set: Option<SetClaim>,
    /// Levels that are held, one a connection.
    pub held: Vec<Level>,
    /// What the schedule says.
    pub scheduled: Option<ScheduledClaim>,
}
