//! Claims on a level: what a tenant set, what its connections hold, and what its schedule says.

use crate::{Level, Nanos};
use serde::{Deserialize, Serialize};

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
