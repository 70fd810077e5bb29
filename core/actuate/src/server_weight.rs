//! The weight of a guest's disk at a server of ours: its text is a number.

use crate::setting::{Reading, Setting};
use serde::{Deserialize, Serialize};

/// A served disk; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ServedNumber(pub(crate) u64);

/// A server's knob for a disk holds a number.
pub(crate) fn parse(text: &str) -> Option<Reading> {
    let weight: u32 = text.trim().parse().ok()?;
    Some(Reading { setting: Setting::ServerWeight(weight), undo: weight.to_string() })
}
