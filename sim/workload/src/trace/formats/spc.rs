//! SPC traces (Storage Performance Council, trace file format 1.0.1; UMass repository): `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! LBA is in blocks of 512 bytes, Size in bytes, Opcode R or W in either case, Timestamp seconds from the start with
//! decimals. Further columns are optional there and say nothing to us. A volume is an application storage unit.

use super::{SECTOR_BYTES, read_or_write};
use crate::trace::fields::{leading_columns, scaled, seconds, volume, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::record::Raw;

#[derive(Default)]
pub(in crate::trace) struct Spc;

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"ASU") {
            return Ok(Line::Aside);
        }
        let ([asu, lba, size, opcode, at], _optional_columns) = leading_columns(line)?;
        Ok(Line::Request(Raw {
            at_ns: seconds(at, "timestamp")?,
            kind: read_or_write(opcode)?,
            offset_bytes: scaled(whole(lba, "LBA")?, SECTOR_BYTES, "LBA")?,
            length_bytes: whole(size, "size")?,
            volume: volume(asu, "ASU")?,
            latency: None,
        }))
    }
}
