//! A tenant's claim on a disk.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A tenant's relative claim on a disk: 1 to 10,000, and 100 is neutral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(u32);

impl Share {
    /// The least claim.
    pub const MIN: Self = Self(1);
    /// The claim of a tenant of which nothing is known; every kernel's default weight.
    pub const NEUTRAL: Self = Self(100);
    /// The greatest claim.
    pub const MAX: Self = Self(10_000);

    /// `value`, brought into 1 to 10,000.
    pub const fn new(value: u32) -> Self {
        match value {
            0 => Self::MIN,
            v if v > Self::MAX.0 => Self::MAX,
            v => Self(v),
        }
    }

    /// `value` rounded and brought into range; what is not a number is neutral.
    pub fn from_f64(value: f64) -> Self {
        if value.is_nan() {
            return Self::NEUTRAL;
        }
        Self::new(value.round().clamp(f64::from(Self::MIN.0), f64::from(Self::MAX.0)) as u32)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
