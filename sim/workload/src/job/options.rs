//! What a job's settings add up to, before it meets a disk.

use super::problem::SourceLocation;
use super::value::{Amount, Extent};
use minerva_blocksched::Class;
use minerva_model::{Level, Nanos};
use std::collections::BTreeMap;

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
    Mixed,
    Trim,
}

/// What a flow is promised, in the words of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promise {
    pub(super) rate: Amount,
    pub(super) burst: Amount,
    pub(super) delay: Nanos,
}

#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Where each key's value stands, for errors that show only on a disk.
    pub(super) places: BTreeMap<&'static str, SourceLocation>,
    pub(super) direction: Direction,
    pub(super) random: bool,
    pub(super) read_percent: u8,
    pub(super) block_bytes: u32,
    pub(super) depth: u32,
    pub(super) synchronous: bool,
    pub(super) rate: Option<u64>,
    pub(super) rate_requests: Option<u64>,
    pub(super) poisson: bool,
    pub(super) think: Nanos,
    pub(super) think_blocks: u32,
    pub(super) size: Option<Extent>,
    pub(super) io_size: Option<Extent>,
    pub(super) offset: Extent,
    pub(super) offset_increment: Extent,
    pub(super) processes: u32,
    pub(super) class: Option<Class>,
    pub(super) level: Option<u8>,
    pub(super) nice: Option<i8>,
    pub(super) runtime: Option<Nanos>,
    pub(super) time_based: bool,
    pub(super) start_delay: Nanos,
    pub(super) zipf: Option<f64>,
    pub(super) fsync: Option<u32>,
    pub(super) fdatasync: Option<u32>,
    pub(super) sync_each: bool,
    pub(super) async_writes: bool,
    pub(super) weight: u32,
    pub(super) promise: Option<Promise>,
    pub(super) reservation: Option<Amount>,
    pub(super) limit: Option<Amount>,
    pub(super) tag: Option<u8>,
    pub(super) tag_max: u8,
    pub(super) tag_default: u8,
    pub(super) tenant: Option<String>,
    pub(super) tenant_weight: Option<u32>,
    pub(super) tenant_level: Option<Level>,
    pub(super) guest_scheduler: Option<String>,
}

impl Default for Options {
    /// fio's defaults, and for our own keys those of [`minerva_blocksched::FlowParameters`].
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            direction: Direction::Read,
            random: false,
            read_percent: 50,
            block_bytes: 4096,
            depth: 1,
            synchronous: true,
            rate: None,
            rate_requests: None,
            poisson: false,
            think: Nanos::ZERO,
            think_blocks: 1,
            size: None,
            io_size: None,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            processes: 1,
            class: None,
            level: None,
            nice: None,
            runtime: None,
            time_based: false,
            start_delay: Nanos::ZERO,
            zipf: None,
            fsync: None,
            fdatasync: None,
            sync_each: false,
            async_writes: false,
            weight: 100,
            promise: None,
            reservation: None,
            limit: None,
            tag: None,
            tag_max: 254,
            tag_default: 1,
            tenant: None,
            tenant_weight: None,
            tenant_level: None,
            guest_scheduler: None,
        }
    }
}
