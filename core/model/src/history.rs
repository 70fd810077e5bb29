//! What is remembered of a tenant from one run of the daemon to the next.

use crate::{DeviceId, Nanos};
use serde::{Deserialize, Serialize};

/// A decaying average of bytes a second: an exponential moving average over time, not over samples, so that a slice that
/// came late weighs what it lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageAverage {
    /// Over the recent horizon, in bytes a second.
    pub recent_bytes_per_second: f64,
    /// Over the long horizon, in bytes a second.
    pub long_term_bytes_per_second: f64,
}

/// A tenant's past on one disk. Stored by key, because numbers change with every start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantHistory {
    /// [`crate::Tenant::history_key`].
    pub key: String,
    /// The disk's kernel number.
    pub device: DeviceId,
    /// The averages.
    pub usage: UsageAverage,
    /// The part of the disk's time that it took, 0 to 1, over the recent horizon; 0 where that is not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disk_part: f64,
    /// The priority group it was in.
    pub group: u8,
    /// How long ago the averages were true: zero when written, set by the store when read back.
    pub age: Nanos,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
