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

/// A greater object is none.
const OBJECT_BYTES_MAX: u32 = 1 << 28;

pub(in crate::trace) struct OracleGeneral {
    object_bytes: u64,
    /// Records before this one.
    index: u64,
}

impl OracleGeneral {
    pub(in crate::trace) fn new(object_bytes: u64) -> Self {
        Self { object_bytes: object_bytes.max(1), index: 0 }
    }

    /// Whether these first bytes could be one: the format has no mark, but times do not go back and next accesses lie ahead.
    pub(in crate::trace) fn could_be(head: &[u8]) -> bool {
        let mut before = 0;
        let mut records = 0;
        for (index, record) in head.chunks_exact(SIZE).enumerate() {
            let time = u32::from_le_bytes(bytes(record, 0));
            if time < before || objection(record, index as u64).is_some() {
                return false;
            }
            before = time;
            records += 1;
        }
        records >= 2
    }
}

/// Why a record with so many before it is none, if so. Whether time goes back is the reader's to judge.
fn objection(record: &[u8], index: u64) -> Option<Reason> {
    let size = u32::from_le_bytes(bytes(record, 12));
    if size == 0 {
        return Some("an object of no bytes".into());
    }
    if size > OBJECT_BYTES_MAX {
        return Some(format!("an object of {size} bytes, and the greatest has {OBJECT_BYTES_MAX}").into());
    }
    let next = i64::from_le_bytes(bytes(record, 16));
    let is_never = next == -1 || next == i64::MAX;
    let is_ahead = u64::try_from(next).is_ok_and(|next| next > index && next < 1 << 40);
    (!is_never && !is_ahead).then(|| format!("its next access, {next}, does not lie ahead of record {index}").into())
}

impl FixedFormat for OracleGeneral {
    fn size(&self) -> usize {
        SIZE
    }

    fn record(&mut self, record: &[u8]) -> Result<Line, Reason> {
        let index = self.index;
        self.index += 1;
        if let Some(objection) = objection(record, index) {
            return Err(objection);
        }
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
