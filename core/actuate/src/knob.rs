//! A knob, and the way from a file's text to its setting and back. One file a back end holds the formats; this one only knows
//! which file has which.

use crate::groups::GroupNumber;
use crate::server_weight::ServedNumber;
use crate::setting::{Reading, Setting};
use crate::{bfq, bfq_v1, disk, io_max, iocost, server_weight, throttle_v1, weight_file};
use minerva_model::{BackEnd, DeviceId, KnobFile, TenantId};
use serde::{Deserialize, Serialize};

/// Whose knob it is, as a number: the ledger compares these thousands of times a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Holder {
    /// A tenant's cgroup.
    Tenant(TenantId),
    /// A group above tenants.
    Group(GroupNumber),
    /// A disk's own settings, in sysfs or in the root group.
    Disk(DeviceId),
    /// A guest's disk at a server of ours.
    Served(ServedNumber),
}

/// One knob: a holder's file, for one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct KnobKey {
    pub(crate) holder: Holder,
    pub(crate) device: DeviceId,
    pub(crate) file: KnobFile,
}

impl KnobKey {
    /// It is one of a cgroup.
    pub(crate) fn is_of_cgroup(&self) -> bool {
        matches!(self.holder, Holder::Tenant(_) | Holder::Group(_))
    }

    /// It belongs to a disk, so weights may depend on it: set before them and put back after them.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(self.holder, Holder::Disk(_))
    }
}

impl Setting {
    /// The text that sets it for `device`.
    pub(crate) fn render(&self, device: DeviceId) -> String {
        match self {
            Self::Weight(weight) => weight_file::render(device, *weight),
            Self::ServerWeight(weight) => weight.to_string(),
            Self::Limits { read, write } => io_max::render(device, *read, *write),
            Self::Limit(limit) => throttle_v1::render(device, *limit),
            Self::Elevator(name) => name.clone(),
            Self::LowLatency(on) | Self::StrictGuarantees(on) => disk::render_switch(*on),
            Self::IoCost(enabled) => iocost::render_enable(device, *enabled),
        }
    }
}

/// Reads the whole text of `file` for `device`; `None` if it says nothing that can be understood.
pub(crate) fn parse(file: KnobFile, device: DeviceId, text: &str) -> Option<Reading> {
    match file {
        KnobFile::BfqWeight => Some(bfq::parse(device, text)),
        KnobFile::BfqV1WeightDevice => Some(bfq_v1::parse(device, text)),
        KnobFile::IoWeight => Some(iocost::parse(device, text)),
        KnobFile::IoMax => Some(io_max::parse(device, text)),
        KnobFile::ThrottleReadBps | KnobFile::ThrottleWriteBps => Some(throttle_v1::parse(device, text)),
        KnobFile::IoCostQos => Some(iocost::parse_qos(device, text)),
        KnobFile::Elevator => disk::parse_elevator(text),
        KnobFile::BfqLowLatency => disk::parse_switch(text, Setting::LowLatency),
        KnobFile::BfqStrictGuarantees => disk::parse_switch(text, Setting::StrictGuarantees),
        KnobFile::ServerWeight => server_weight::parse(text),
        // The group's weight on every disk is never written: decisions are per disk.
        KnobFile::BfqV1Weight => None,
    }
}

/// A back end that takes weights: its file, and the largest weight the kernel accepts there.
pub(crate) fn weight_knob(back_end: BackEnd) -> Option<(KnobFile, u32)> {
    match back_end {
        BackEnd::Bfq => Some((KnobFile::BfqWeight, bfq::WEIGHT_MAX)),
        BackEnd::BfqV1 => Some((KnobFile::BfqV1WeightDevice, bfq_v1::WEIGHT_MAX)),
        BackEnd::IoCost => Some((KnobFile::IoWeight, iocost::WEIGHT_MAX)),
        BackEnd::Blk | BackEnd::Max | BackEnd::ThrottleV1 | BackEnd::Observe => None,
    }
}

/// A back end that takes caps: what to set in which file so that a tenant reads and writes no faster than this, in bytes a
/// second.
pub(crate) fn cap_settings(back_end: BackEnd, read: Option<u64>, write: Option<u64>) -> Vec<(KnobFile, Setting)> {
    match back_end {
        BackEnd::Max => vec![(KnobFile::IoMax, Setting::Limits { read, write })],
        BackEnd::ThrottleV1 => {
            vec![(KnobFile::ThrottleReadBps, Setting::Limit(read)), (KnobFile::ThrottleWriteBps, Setting::Limit(write))]
        }
        BackEnd::Bfq | BackEnd::BfqV1 | BackEnd::IoCost | BackEnd::Blk | BackEnd::Observe => Vec::new(),
    }
}
