//! What a tenant did on a disk that is steered by caps, and what it may do.

use minerva_model::TenantId;
use serde::{Deserialize, Serialize};

/// One tenant's use of the disk in the slice, and its claim.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Use {
    pub(crate) tenant: TenantId,
    /// Above 0.
    pub(crate) share: f64,
    pub(crate) read_bytes_per_second: f64,
    pub(crate) write_bytes_per_second: f64,
    /// How large its requests were, in the mean.
    pub(crate) request_bytes: f64,
}

impl Use {
    /// Both ways.
    pub(crate) fn rate(&self) -> f64 {
        self.read_bytes_per_second + self.write_bytes_per_second
    }
}

/// Limits for one tenant, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cap {
    pub(crate) read: u64,
    pub(crate) write: u64,
}
