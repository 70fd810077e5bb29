//! Batch jobs: what a tenant that runs one moved, slice by slice, and what that says of its kind (Matteussi and Geyer 2018).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A batch job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSettings {
    /// What runs: runs of one name are taken to be alike.
    pub name: String,
    /// What it will read and write in all, if that is known.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl JobSettings {
    /// The longest name of a job, in bytes.
    pub const NAME_BYTES_MAX: usize = 64;

    /// Why this is no name of a job.
    pub fn refusal_of_name(name: &str) -> Option<String> {
        let most = Self::NAME_BYTES_MAX;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if (1..=most).contains(&name.len()) && name.bytes().all(plain) {
            return None;
        }
        let shown: String = name.chars().take(most).collect();
        Some(format!("'{shown}' is no name of a job: use 1 to {most} letters, digits, '.', '_' or '-'"))
    }
}

/// What a job mostly does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobPhaseKind {
    /// It reads.
    Read,
    /// It uses the disk little.
    Compute,
    /// It writes.
    Write,
    /// It reads and writes at once, as MapReduce does between map and reduce.
    Shuffle,
}

impl JobPhaseKind {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Compute => "compute",
            Self::Write => "write",
            Self::Shuffle => "shuffle",
        }
    }
}

impl fmt::Display for JobPhaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One phase of a job, with means over its length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPhase {
    /// What it does.
    pub kind: JobPhaseKind,
    /// How long.
    pub seconds: f64,
    /// Read from disks.
    pub read_bytes_per_second: f64,
    /// Written to disks.
    pub write_bytes_per_second: f64,
}

/// A stretch of a job's time, a slice or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStep {
    /// How long.
    pub seconds: f64,
    /// Read from disks.
    pub read_bytes: u64,
    /// Written to disks.
    pub write_bytes: u64,
    /// Processors in use; `None` where nobody looked.
    pub cores: Option<f64>,
    /// Resident memory; `None` where nobody looked.
    pub memory_bytes: Option<u64>,
}

/// How much a job lives by the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskIntensity {
    /// Most of its time.
    Intensive,
    /// A good part of its time.
    Moderate,
    /// Little: others can use the disk meanwhile.
    Light,
}

impl DiskIntensity {
    /// The words people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intensive => "disk-intensive",
            Self::Moderate => "moderately disk-intensive",
            Self::Light => "not disk-intensive",
        }
    }
}

/// What one run of a job was like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobProfile {
    /// From its first transfer to its last, or to when its processes last computed.
    pub seconds: f64,
    /// Read in all.
    pub read_bytes: u64,
    /// Written in all.
    pub write_bytes: u64,
    /// In the order of time; a bounded number, the longer the job the coarser.
    pub steps: Vec<JobStep>,
    /// In the order of time.
    pub phases: Vec<JobPhase>,
    /// Correlation (Pearson) of bytes a second with processors in use, -1 to 1; `None` where one of them does not vary or is not known.
    pub cpu_correlation: Option<f64>,
    /// The same with resident memory.
    pub memory_correlation: Option<f64>,
    /// The part of its time for which it kept the disk busy, of the time that others left, 0 to 1.
    pub disk_part: f64,
    /// What that makes it.
    pub intensity: DiskIntensity,
}

#[cfg(test)]
mod tests {
    use super::JobSettings;

    #[test]
    fn names_of_jobs_are_plain_words() {
        for good in ["sort", "wordcount-2.1", "A_b", &"x".repeat(64)] {
            assert_eq!(JobSettings::refusal_of_name(good), None, "{good}");
        }
        for bad in ["", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert!(JobSettings::refusal_of_name(bad).is_some_and(|why| why.contains("use 1 to 64")), "{bad}");
        }
    }
}
