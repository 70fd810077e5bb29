//! What a server of ours tells of itself and of its disks, and how its disks are changed while guests run: beside the knobs of
//! `served`, on the same socket.
//!
//! A request is a line: the word [`CONTROL_VERSION`], a space, and a [`ControlRequest`] as JSON; what it opens comes with it as
//! descriptors. The answer is a [`crate::ServerAnswer`], whose text is JSON too.
//!
//! ```text
//! v1 "list"                                     ok {"program":"minerva-blk 0.1.0",...}
//! v1 {"remove":{"name":"vm1","force":false}}    refused a guest is connected to `vm1` (process 4711); ...
//! ```

use crate::{DeviceId, DiskFigures, IoCounters, Nanos, Protection, WaitCounters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first word of a request. A server that speaks another version says so.
pub const CONTROL_VERSION: &str = "v1";
/// The longest line of a request or an answer, in bytes.
pub const CONTROL_BYTES_MAX: usize = 4 << 20;

/// `minervad` says again at least this often how contracts stand beside other processes.
pub const PROTECTION_TOLD_EVERY: Nanos = Nanos::from_secs(5);
/// What it said holds for so long.
pub const PROTECTION_LEASE: Nanos = Nanos::from_secs(20);

/// What a server is asked for besides its knobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlRequest {
    /// Tell everything: a [`ServerReport`].
    List,
    /// Serve another disk. With it come two descriptors: the open image, and the listening socket. Answered with its [`DiskReport`].
    Add {
        /// Which.
        disk: DiskSettings,
    },
    /// Promise a disk something else, at once. Answered with its [`DiskReport`].
    Set {
        /// Which.
        name: String,
        /// What is to be otherwise.
        change: DiskChange,
    },
    /// Serve a disk no more. Answered with the last [`DiskReport`].
    Remove {
        /// Which.
        name: String,
        /// Also if a guest uses it.
        force: bool,
    },
    /// Make a disk longer, and tell its guest. Answered with its [`DiskReport`].
    Resize {
        /// Which.
        name: String,
        /// How long; none for as long as the image or block device has become.
        bytes: Option<u64>,
    },
    /// How contracts stand beside the other processes of this host, by the kernel's name of the device: what `minervad` says, and
    /// says again at least every [`PROTECTION_TOLD_EVERY`]. Answered with an empty text.
    Protect {
        /// All devices on which the server serves something.
        devices: BTreeMap<String, Protection>,
    },
}

/// A disk of a guest, as it is to be served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSettings {
    /// Its name, which is also its serial number.
    pub name: String,
    /// The path of what it is made of.
    pub image: String,
    /// The path at which front ends connect.
    pub socket: String,
    /// Nothing is written.
    pub read_only: bool,
    /// Past the host's page cache.
    pub direct: bool,
    /// Rings.
    pub queues: u16,
    /// What it is promised.
    pub terms: DiskTerms,
}

/// What a disk is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskTerms {
    /// Its part beside others, 1 to 10,000; 100 is neutral.
    pub weight: u32,
    /// Its contract: bytes a second. None for no contract.
    pub rate_bytes_per_second: Option<u64>,
    /// How much more at once.
    pub burst_bytes: u64,
    /// Within what time.
    pub delay: Nanos,
    /// What it never has more of, in bytes a second.
    pub limit_bytes_per_second: Option<u64>,
    /// The priority of requests without one, 1 to 254.
    pub tag_default: u8,
    /// The greatest priority of any request, 1 to 254.
    pub tag_max: u8,
    /// The contract is judged for a guest that reads and writes here and there, and not in rows.
    pub is_random: bool,
    /// The contract is judged for requests of this length.
    pub request_bytes: u64,
    /// The contract is taken whether the disk can keep it or not.
    pub force: bool,
}

/// What of a disk's promises is to be otherwise; none for what stays. A contract or a limit of 0 bytes a second is none any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskChange {
    /// See [`DiskTerms::weight`].
    pub weight: Option<u32>,
    /// See [`DiskTerms::rate_bytes_per_second`].
    pub rate_bytes_per_second: Option<u64>,
    /// See [`DiskTerms::burst_bytes`].
    pub burst_bytes: Option<u64>,
    /// See [`DiskTerms::delay`].
    pub delay: Option<Nanos>,
    /// See [`DiskTerms::limit_bytes_per_second`].
    pub limit_bytes_per_second: Option<u64>,
    /// See [`DiskTerms::tag_default`].
    pub tag_default: Option<u8>,
    /// See [`DiskTerms::tag_max`].
    pub tag_max: Option<u8>,
    /// See [`DiskTerms::is_random`].
    pub is_random: Option<bool>,
    /// See [`DiskTerms::request_bytes`].
    pub request_bytes: Option<u64>,
    /// See [`DiskTerms::force`].
    pub force: Option<bool>,
}

impl DiskChange {
    /// What is promised after the change.
    #[must_use]
    pub fn applied_to(&self, terms: DiskTerms) -> DiskTerms {
        let rate = |change: Option<u64>, before| change.map_or(before, |rate| Some(rate).filter(|rate| *rate > 0));
        DiskTerms {
            weight: self.weight.unwrap_or(terms.weight),
            rate_bytes_per_second: rate(self.rate_bytes_per_second, terms.rate_bytes_per_second),
            burst_bytes: self.burst_bytes.unwrap_or(terms.burst_bytes),
            delay: self.delay.unwrap_or(terms.delay),
            limit_bytes_per_second: rate(self.limit_bytes_per_second, terms.limit_bytes_per_second),
            tag_default: self.tag_default.unwrap_or(terms.tag_default),
            tag_max: self.tag_max.unwrap_or(terms.tag_max),
            is_random: self.is_random.unwrap_or(terms.is_random),
            request_bytes: self.request_bytes.unwrap_or(terms.request_bytes),
            force: self.force.unwrap_or(terms.force),
        }
    }
}

/// A server, and all that it serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Program and version.
    pub program: String,
    /// Its process.
    pub process: u32,
    /// When it began, by `CLOCK_BOOTTIME`: with the process it tells this server from a later one of the same name.
    pub began: Nanos,
    /// The operator's file, to which drop-ins belong.
    pub config: String,
    /// Who it is now: sockets of new disks are to be this user's.
    pub user: u32,
    /// Whose members may connect to the sockets of disks.
    pub socket_group: Option<u32>,
    /// Disks of this host on which it serves something.
    pub devices: Vec<ServedDevice>,
    /// In the order of their names.
    pub disks: Vec<DiskReport>,
    /// Disks of the operator's file that could not be served when the server began.
    #[serde(default)]
    pub refused: Vec<RefusedDisk>,
}

/// A disk that is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedDisk {
    /// Its name.
    pub name: String,
    /// Why not, and what to do.
    pub why: String,
    /// In how long it is tried again by itself; none where that is no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in: Option<Nanos>,
}

/// A disk of this host on which disks of guests lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDevice {
    /// The kernel's name, or `other` for what lies on no disk.
    pub name: String,
    /// The kernel's number.
    pub device: Option<DeviceId>,
    /// What orders requests to it.
    pub scheduler: String,
    /// Processors on which its threads run; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u16>,
    /// The part of its time that the contracts on it take, in thousandths; 0 without contracts that the admission test judges.
    #[serde(default)]
    pub reserved_permille: u32,
    /// How they stand beside other processes of the host; none where `minervad` has not said so lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
}

/// A disk of a guest, and what became of its requests since the server began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskReport {
    /// How it is served.
    pub settings: DiskSettings,
    /// The name of the [`ServedDevice`] on which it lies.
    pub device: String,
    /// Its length.
    pub length_bytes: u64,
    /// What `minervad` set: a hundredth of this is what [`DiskTerms::weight`] is multiplied by. 100 until it is set.
    pub share: u32,
    /// The process of the front end that is connected.
    pub front_end: Option<u32>,
    /// Requests between their ring and their answer now.
    pub under_way: u64,
    /// What reads and writes moved.
    pub io: IoCounters,
    /// How long they took, from the ring to the answer.
    pub wait: WaitCounters,
    /// Flushes, discards and write-zeroes that were done.
    pub other_ops: u64,
    /// Requests with a priority of their own.
    pub tagged_ops: u64,
    /// Requests that the image's file or disk failed.
    pub failed_ops: u64,
    /// Requests that no disk could serve.
    pub refused_ops: u64,
    /// Times, priorities, and whether its contract was kept.
    #[serde(default)]
    pub figures: DiskFigures,
}

#[cfg(test)]
mod tests {
    use super::{DiskChange, DiskTerms};
    use crate::Nanos;

    const TERMS: DiskTerms = DiskTerms {
        weight: 100,
        rate_bytes_per_second: Some(1_000_000),
        burst_bytes: 4096,
        delay: Nanos::from_millis(20),
        limit_bytes_per_second: None,
        tag_default: 64,
        tag_max: 128,
        is_random: false,
        request_bytes: 4096,
        force: false,
    };

    #[test]
    fn a_change_leaves_what_it_does_not_name_and_zero_takes_a_promise_away() {
        assert_eq!(DiskChange::default().applied_to(TERMS), TERMS);
        let change = DiskChange { weight: Some(300), limit_bytes_per_second: Some(5), ..DiskChange::default() };
        let limited = DiskTerms { weight: 300, limit_bytes_per_second: Some(5), ..TERMS };
        assert_eq!(change.applied_to(TERMS), limited);
        let none =
            DiskChange { rate_bytes_per_second: Some(0), limit_bytes_per_second: Some(0), ..DiskChange::default() };
        let free = DiskTerms { weight: 300, rate_bytes_per_second: None, ..TERMS };
        assert_eq!(none.applied_to(limited), free);
    }
}
