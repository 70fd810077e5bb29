//! The real arms of a run, kept in a file: a change of the simulator is compared with them in seconds and without a kernel.

use crate::host::Host;
use crate::job::Job;
use crate::{Arm, Outcome};
use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What was measured of real jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded<M> {
    /// By the job's description.
    jobs: BTreeMap<String, M>,
}

/// One job on the kernel.
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

/// One job at a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedMeasured {
    /// The scheduler of the server.
    pub scheduler: String,
    /// The host as it was at the time, on the way through the server.
    pub host: Host,
    /// At the server.
    pub served: Arm,
    /// On the kernel.
    pub kernel: Arm,
    /// How long each was measured.
    pub seconds: u64,
}

impl<M> Default for Recorded<M> {
    fn default() -> Self {
        Self { jobs: BTreeMap::new() }
    }
}

impl<M: Serialize + DeserializeOwned> Recorded<M> {
    /// Adds a job, in place of an earlier measurement of the same.
    pub fn add(&mut self, job: &Job, measured: M) {
        self.jobs.insert(job.to_string(), measured);
    }

    /// What was measured of a job.
    pub fn get(&self, job: &Job) -> anyhow::Result<&M> {
        let found = self.jobs.get(&job.to_string());
        found.with_context(|| format!("the recorded arm lacks `{job}`; record it anew"))
    }

    /// Reads the file, or begins anew where there is none yet, or none was asked for.
    pub fn read_or_begin(path: Option<&Path>) -> anyhow::Result<Self> {
        path.filter(|path| path.exists()).map_or_else(|| Ok(Self::default()), Self::read)
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
