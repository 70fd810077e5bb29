//! What a tenant should get of a disk, and why. The `Display` of a decision is the log line, the answer of
//! `minerva-ctl explain` and the golden test: one text (docs/ARCHITECTURE.md, section 3.3).

use crate::{DeviceId, Level, Reason, Share, TenantId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The name of a policy: who contributed a factor. Open, so that a policy need not be known here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyName(Cow<'static, str>);

impl PolicyName {
    /// Past use (Malensek et al. 2016, section 2.1).
    pub const FENNEL: Self = Self::new("fennel");
    /// Slices of high priority that were bought (Malensek et al. 2016, section 3.1).
    pub const CREDITS: Self = Self::new("credits");
    /// An operation that was coordinated (Malensek et al. 2016, section 3.2).
    pub const COORDINATION: Self = Self::new("coordination");
    /// Voluntary deprioritization (Malensek et al. 2016, section 3.1).
    pub const LEVELS: Self = Self::new("levels");
    /// Who is expected to be done soon goes ahead (Malensek et al. 2016, section 4.1).
    pub const FORESIGHT: Self = Self::new("foresight");
    /// Bursts take turns (Malensek et al. 2016, section 4.2).
    pub const INTERLEAVE: Self = Self::new("interleave");
    /// The operator's rule.
    pub const OPERATOR: Self = Self::new("operator");
    /// Background work that takes time from others.
    pub const BACKGROUND: Self = Self::new("background");
    /// What a server of ours needs for the contracts of its guests.
    pub const CONTRACTS: Self = Self::new("contracts");
    /// The floor below which nobody falls, and other protections.
    pub const GUARD: Self = Self::new("guard");

    /// A name in kebab case.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The word people see.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One policy's part in a decision: what the share was multiplied by, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Who says so.
    pub policy: PolicyName,
    /// Multiplier on the share; 1 changes nothing.
    pub value: f64,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{:.3} ({})", self.policy.as_str(), self.value, self.reason)
    }
}

/// How a batch job waits for others on a disk that only jobs use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "JobWaitAsKept")]
pub struct JobWait {
    /// What it keeps of the disk's time, 0 to 1.
    pub disk_part: f64,
    /// It is known by bytes when its turn comes.
    pub turn_is_known: bool,
}

/// The same, as snapshots have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum JobWaitAsKept {
    /// By earlier versions.
    Part(f64),
    Wait {
        disk_part: f64,
        turn_is_known: bool,
    },
}

impl From<JobWaitAsKept> for JobWait {
    fn from(kept: JobWaitAsKept) -> Self {
        match kept {
            JobWaitAsKept::Part(disk_part) => Self { disk_part, turn_is_known: false },
            JobWaitAsKept::Wait { disk_part, turn_is_known } => Self { disk_part, turn_is_known },
        }
    }
}

/// What one tenant should get of one disk. The share is [`Share::NEUTRAL`] times every factor, rounded and brought into
/// range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Who.
    pub tenant: TenantId,
    /// Where.
    pub device: DeviceId,
    /// The final number.
    pub share: Share,
    /// How it came about, in the order of composition.
    pub factors: Vec<Factor>,
}

impl Decision {
    /// The tenant is to use the disk only when nobody else does.
    pub fn is_only_when_idle(&self) -> bool {
        let is_idle = |factor: &Factor| matches!(factor.reason, Reason::SteppedBack { level: Level::Idle, .. });
        self.factors.iter().any(is_idle)
    }

    /// How it waits as a batch job for others, where only jobs use the disk.
    pub fn job_waits(&self) -> Option<JobWait> {
        self.factors.iter().find_map(|factor| match factor.reason {
            Reason::JobWaits { disk_part, turn_is_known, .. } => Some(JobWait { disk_part, turn_is_known }),
            _ => None,
        })
    }

    /// As it displays, with the disk's kernel name in place of its number: as people know it.
    pub fn on(&self, disk: &str) -> String {
        let mut text = format!("{} on {disk}: share {}", self.tenant, self.share);
        for (index, factor) in self.factors.iter().enumerate() {
            text.push_str(if index == 0 { " = 100 * " } else { " * " });
            text.push_str(&factor.to_string());
        }
        text
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.on(&self.device.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, Factor, JobWait, PolicyName, Reason, Share};
    use crate::{DeviceId, TenantId};

    #[test]
    fn shares_stay_in_range() {
        assert_eq!(Share::new(0), Share::MIN);
        assert_eq!(Share::new(70_000), Share::MAX);
        assert_eq!(Share::from_f64(f64::NAN), Share::NEUTRAL);
        assert_eq!(Share::from_f64(-3.0), Share::MIN);
        assert_eq!(Share::from_f64(f64::INFINITY), Share::MAX);
        assert_eq!(Share::from_f64(2.5).get(), 3);
    }

    #[test]
    fn how_a_job_waits_is_read_as_earlier_versions_kept_it() {
        let wait = JobWait { disk_part: 0.02, turn_is_known: true };
        let read = |text: &str| serde_json::from_str::<JobWait>(text).unwrap();
        assert_eq!(read(&serde_json::to_string(&wait).unwrap()), wait);
        assert_eq!(read("0.02"), JobWait { turn_is_known: false, ..wait });
    }

    #[test]
    fn a_decision_reads_as_one_line() {
        let reason = Reason::Group {
            group: 9,
            groups: 10,
            usage_bytes_per_second: 22.4e6,
            heaviest_bytes_per_second: 22.4e6,
            quiet: false,
            long_term: false,
        };
        let decision = Decision {
            tenant: TenantId(4),
            device: DeviceId { major: 7, minor: 0 },
            share: Share::new(4),
            factors: vec![
                Factor { policy: PolicyName::FENNEL, value: 0.02, reason },
                Factor { policy: PolicyName::OPERATOR, value: 2.0, reason: Reason::OperatorWeight { percent: 200 } },
            ],
        };
        expect_test::expect!["t4 on 7:0: share 4 = 100 * fennel x0.020 (group 9 of 0..9: recent average 22.4 MB/s per weight against 22.4 MB/s of the heaviest) * operator x2.000 (operator's weight 200 %)"].assert_eq(&decision.to_string());
        let named = decision.on("loop0");
        assert_eq!(named, decision.to_string().replace("7:0", "loop0"), "people know disks by their names");
    }
}
