//! CloudPhysics vscsi traces (Waldspurger et al., FAST '15), in the two layouts that libCacheSim's reader documents.
//!
//! All little-endian. Version 1, 32 bytes: serial u32, length u32, segments u32, command u16, version u16, block u64,
//! time u64. Version 2, 40 bytes: command u16, version u16, serial u32, length u32, segments u32, block u64, time u64,
//! response time u64. The version is in the upper byte of its field, the length in bytes, a block 512 bytes, times in
//! microseconds, and the command is a SCSI operation code.

use super::SECTOR_BYTES;
use crate::trace::fields::scaled;
use crate::trace::fixed::{FixedFormat, bytes};
use crate::trace::lines::{Line, Reason};
use crate::trace::record::Raw;
use minerva_blocksched::Kind;
use minerva_model::Nanos;

/// Which of the two layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Vscsi {
    One,
    Two,
}

impl Vscsi {
    /// The layout that these first bytes have, judged by the first two records, or by one if there is only one.
    pub(in crate::trace) fn of(head: &[u8]) -> Option<Self> {
        [Self::Two, Self::One].into_iter().find(|layout| {
            let mut records = head.chunks_exact(layout.size()).take(2).peekable();
            records.peek().is_some() && records.all(|record| layout.is_version_of(record))
        })
    }

    fn is_version_of(self, record: &[u8]) -> bool {
        let (field, version) = match self {
            Self::One => (14, 1),
            Self::Two => (2, 2),
        };
        u16::from_le_bytes(bytes(record, field)) >> 8 == version
    }
}

impl FixedFormat for Vscsi {
    fn size(&self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }

    fn record(&mut self, record: &[u8]) -> Result<Line, Reason> {
        if !self.is_version_of(record) {
            return Err("the version field differs from the first record's; another byte order, or damage?".into());
        }
        let (command, length, block, time) = match self {
            Self::One => (12, 4, 16, 24),
            Self::Two => (0, 8, 16, 24),
        };
        let kind = match u16::from_le_bytes(bytes(record, command)) {
            0x08 | 0x28 | 0xA8 | 0x88 => Kind::Read,
            0x0A | 0x2A | 0xAA | 0x8A => Kind::Write,
            0x35 | 0x91 => Kind::Flush,
            0x42 => Kind::Discard,
            // Inquiries, reservations and the like move no data on the disk.
            0..=0xFF => return Ok(Line::Dropped),
            other => return Err(format!("0x{other:x} is not a SCSI operation code").into()),
        };
        let at_us = u64::from_le_bytes(bytes(record, time));
        let latency = match self {
            Self::One => None,
            Self::Two => Some(Nanos(scaled(u64::from_le_bytes(bytes(record, 32)), 1_000, "response time")?)),
        };
        Ok(Line::Request(Raw {
            at_ns: scaled(at_us, 1_000, "time")?,
            kind,
            offset_bytes: scaled(u64::from_le_bytes(bytes(record, block)), SECTOR_BYTES, "block number")?,
            length_bytes: if kind == Kind::Flush { 0 } else { u64::from(u32::from_le_bytes(bytes(record, length))) },
            volume: 0,
            latency,
        }))
    }
}
