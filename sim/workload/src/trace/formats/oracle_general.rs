//! libCacheSim's oracleGeneral: 24 bytes little-endian, time u32 in seconds, object u64, size u32, next access i64.
//!
//! It is a cache's trace: there is no kind of access, so all are reads, and objects are numbers. Traces made from block
//! traces number by block; a number is taken as that block's place in units of `object_bytes`.

use crate::trace::fields::scaled;
use crate::trace::fixed::{FixedFormat, bytes};
use crate::trace::lines::{Line, Reason};
use crate::trace::record::Raw;
use minerva_blocksched::Kind;

/// Bytes of a record.
const SIZE: usize = 24;

pub(in crate::trace) struct OracleGeneral {
    pub(in crate::trace) object_bytes: u64,
}

impl OracleGeneral {
    /// Whether these first bytes could be one: the format has no mark, but times do not go back and next accesses lie ahead.
    pub(in crate::trace) fn could_be(head: &[u8]) -> bool {
        let mut before = 0;
        let mut records = 0;
        for (index, record) in head.chunks_exact(SIZE).enumerate() {
            let (time, size, next) = (
                u32::from_le_bytes(bytes(record, 0)),
                u32::from_le_bytes(bytes(record, 12)),
                i64::from_le_bytes(bytes(record, 16)),
            );
            let ahead = next == -1 || next == i64::MAX || (next > index as i64 && next < 1 << 40);
            if time < before || size == 0 || size > 1 << 28 || !ahead {
                return false;
            }
            before = time;
            records += 1;
        }
        records >= 2
    }
}

impl FixedFormat for OracleGeneral {
    fn size(&self) -> usize {
        SIZE
    }

    fn record(&mut self, record: &[u8]) -> Result<Line, Reason> {
        let object = u64::from_le_bytes(bytes(record, 4));
        let offset_bytes = object.checked_mul(self.object_bytes).ok_or_else(|| {
            Reason::from(format!(
                "object {object} is no block number of {} bytes; if objects are hashes, set the object size to 1",
                self.object_bytes
            ))
        })?;
        Ok(Line::Request(Raw {
            at_ns: scaled(u64::from(u32::from_le_bytes(bytes(record, 0))), 1_000_000_000, "time")?,
            kind: Kind::Read,
            offset_bytes,
            length_bytes: u64::from(u32::from_le_bytes(bytes(record, 12))),
            volume: 0,
            latency: None,
        }))
    }
}
