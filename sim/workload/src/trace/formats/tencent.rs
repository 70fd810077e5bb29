//! Tencent cloud block storage (Zhang et al., ATC '20; SNIA IOTTA 27917): `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Timestamp is Unix seconds, Offset and Size are sectors of 512 bytes, IOType 0 reads and 1 writes.

use super::SECTOR_BYTES;
use crate::trace::fields::{columns, scaled, seconds, volume, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::record::Raw;
use minerva_blocksched::Kind;

#[derive(Default)]
pub(in crate::trace) struct Tencent;

impl LineFormat for Tencent {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"Timestamp") {
            return Ok(Line::Aside);
        }
        let [at, offset, size, kind, volume_id] = columns(line)?;
        let kind = match kind.trim_ascii() {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            _ => return Err("the type is neither 0 (read) nor 1 (write)".into()),
        };
        Ok(Line::Request(Raw {
            at_ns: seconds(at, "timestamp")?,
            kind,
            offset_bytes: scaled(whole(offset, "offset")?, SECTOR_BYTES, "offset")?,
            length_bytes: scaled(whole(size, "size")?, SECTOR_BYTES, "size")?,
            volume: volume(volume_id, "volume number")?,
            latency: None,
        }))
    }
}
