//! Alibaba block traces 2020 (Li et al., IISWC '20): `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length are bytes, the timestamp is in microseconds, the opcode R or W.

use super::read_or_write;
use crate::trace::fields::{columns, scaled, volume, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::record::Raw;

#[derive(Default)]
pub(in crate::trace) struct Alibaba;

impl LineFormat for Alibaba {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"device_id") {
            return Ok(Line::Aside);
        }
        let [device, opcode, offset, length, at] = columns(line)?;
        Ok(Line::Request(Raw {
            at_ns: scaled(whole(at, "timestamp")?, 1_000, "timestamp")?,
            kind: read_or_write(opcode)?,
            offset_bytes: whole(offset, "offset")?,
            length_bytes: whole(length, "length")?,
            volume: volume(device, "device number")?,
            latency: None,
        }))
    }
}
