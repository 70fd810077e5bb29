//! How a disk of a guest is doing, as its server tells it: times of the last seconds, by priority too, and whether its contract was kept.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Priorities of a disk of which a server tells figures: those with the most requests.
pub const TAGS_TOLD_MAX: usize = 16;

/// What became of a disk's requests. Absent where an older server tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskFigures {
    /// All requests of the last seconds.
    pub recent: RecentFigures,
    /// The part of the host's disk that it had since the server began: of each moment, by how many of the requests there were its.
    pub device_time: Nanos,
    /// Each priority that came, the one with the most requests first; at most [`TAGS_TOLD_MAX`].
    pub tags: Vec<TagFigures>,
    /// All priorities that applications of the guest gave, in rising order.
    pub tags_seen: Vec<u8>,
    /// Why the last front end was hung up on; none once one is served again.
    pub hung_up: Option<String>,
    /// The last request that its image's file or disk failed, since the server began.
    pub failure: Option<FailureFigures>,
    /// Its image has no name any more: what to do while it is served.
    pub image_removed: Option<String>,
    /// Its contract, if it has one.
    pub contract: Option<ContractFigures>,
}

/// A request that a disk's image failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFigures {
    /// The kernel's error number; 0 where the image ends before it.
    pub errno: i32,
    /// How long ago.
    pub ago: Nanos,
    /// Why, and what to do.
    pub why: String,
}

/// Requests that were done in the last 5 to 10 seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentFigures {
    /// So long.
    pub span: Nanos,
    /// Requests.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// How long they took from the guest's ring to their answer, all together.
    pub wait: Nanos,
    /// What half of them did not exceed. These are right to one part in 128 for a disk, and to one in 16 for a priority.
    pub median: Nanos,
    /// What 95 of 100 did not exceed.
    pub p95: Nanos,
    /// What 99 of 100 did not exceed.
    pub p99: Nanos,
    /// What 999 of 1000 did not exceed.
    pub p999: Nanos,
    /// The longest, to the same precision.
    pub longest: Nanos,
}

impl RecentFigures {
    /// Requests a second.
    pub fn ops_per_second(&self) -> f64 {
        self.ops as f64 / self.seconds()
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }

    /// Requests under way on average (Little's law).
    pub fn queue_mean(&self) -> f64 {
        self.wait.as_secs_f64() / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.span.as_secs_f64().max(1e-9)
    }
}

/// Requests of one priority, since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagFigures {
    /// The priority, 1 to 254, within the disk's bounds.
    pub tag: u8,
    /// Requests that were done.
    pub ops: u64,
    /// Those to which an application of the guest gave a priority; the others have it by default.
    pub given_ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Requests between their ring and their answer now.
    pub under_way: u64,
    /// Those of the last seconds.
    pub recent: RecentFigures,
}

/// Whether a contract was kept, since it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractFigures {
    /// Reads and writes that were done.
    pub requests: u64,
    /// Those of them that came before rate and burst allowed them: the guest asks for more than its contract says.
    pub early: u64,
    /// Those of them that were done later than a delay after they came, or after rate and burst allow them, whichever is later (Gulati
    /// and others, pClock, 2007).
    pub late: u64,
    /// Requests under way that are later than that already.
    pub overdue: u64,
    /// By how much the worst of both was later than that.
    pub late_max: Nanos,
    /// Whole seconds in which the guest asked for something.
    pub seconds: u64,
    /// Those of them in which a request was late.
    pub seconds_late: u64,
    /// Those of them in which the guest asked all the time and had less than the contract gives in any second: what the rate allows
    /// in a second less a delay, less a request.
    pub seconds_short: u64,
    /// What the worst of them lacked, in bytes.
    pub short_bytes_max: u64,
    /// Who had the host's disk in the seconds in which a request was late, the one with the most first; at most four.
    pub took: Vec<TookFigures>,
}

impl ContractFigures {
    /// Nothing was missed.
    pub fn is_kept(&self) -> bool {
        self.late == 0 && self.overdue == 0 && self.seconds_short == 0
    }
}

/// What a disk had of the host's disk while another's contract was missed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TookFigures {
    /// Its name.
    pub disk: String,
    /// Its part of the disk's time.
    pub device_time: Nanos,
}

#[cfg(test)]
mod tests {
    use super::{ContractFigures, DiskFigures, RecentFigures};
    use crate::Nanos;

    #[test]
    fn rates_are_per_second_and_an_older_server_tells_none() {
        let recent = RecentFigures {
            span: Nanos::from_secs(5),
            ops: 50,
            bytes: 500,
            wait: Nanos::from_secs(10),
            ..RecentFigures::default()
        };
        assert_eq!((recent.ops_per_second(), recent.bytes_per_second(), recent.queue_mean()), (10.0, 100.0, 2.0));
        assert_eq!(RecentFigures::default().ops_per_second(), 0.0);
        assert_eq!(serde_json::from_str::<DiskFigures>("{}").ok(), Some(DiskFigures::default()));
        assert!(ContractFigures::default().is_kept());
        assert!(!ContractFigures { late: 1, ..ContractFigures::default() }.is_kept());
    }
}
