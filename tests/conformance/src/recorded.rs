//! The real arm of a run, kept in a file: a change of the simulator is compared with it in seconds and without a kernel.

use crate::Outcome;
use crate::host::Host;
use crate::job::Job;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What a real arm measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// By the job's description.
    jobs: BTreeMap<String, Measured>,
}

/// One job of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The host as it was at the time.
    pub host: Host,
    /// What the job did.
    pub outcome: Outcome,
    /// What it did in each of the windows; none in a record of a job that was as short as one.
    #[serde(default)]
    pub windows: Vec<Outcome>,
    /// How long it was measured.
    pub seconds: u64,
}

impl Recorded {
    /// Adds a job, in place of an earlier measurement of the same.
    pub fn add(&mut self, job: &Job, measured: Measured) {
        self.jobs.insert(job.to_string(), measured);
    }

    /// What was measured of a job.
    pub fn get(&self, job: &Job) -> anyhow::Result<&Measured> {
        let found = self.jobs.get(&job.to_string());
        found.with_context(|| format!("the recorded arm lacks `{job}`; record it anew"))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("understand {}", path.display()))
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }
}
