//! A run of a batch job.

use crate::{DeviceId, JobProfile, TenantId};
use serde::{Deserialize, Serialize};

/// A run of a job that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRun {
    /// The job's name.
    pub name: String,
    /// Who ran it.
    pub tenant: TenantId,
    /// The disk that it used most.
    pub device: DeviceId,
    /// What was declared that it would move.
    pub declared_bytes: Option<u64>,
    /// What it was like.
    pub profile: JobProfile,
}

impl JobRun {
    /// Read and written in all.
    pub fn bytes(&self) -> u64 {
        self.profile.read_bytes.saturating_add(self.profile.write_bytes)
    }
}
