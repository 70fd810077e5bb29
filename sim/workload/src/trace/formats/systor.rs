//! SYSTOR '17 VDI traces (Lee et al., SNIA IOTTA 4928): `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! Timestamp is Unix seconds with nine decimals, Response seconds, Offset and Size bytes. A request without an answer has a
//! blank type and is dropped, as its authors ask.

use super::read_or_write;
use crate::trace::fields::{columns, seconds, volume, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::record::Raw;
use minerva_model::Nanos;

#[derive(Default)]
pub(in crate::trace) struct Systor;

impl LineFormat for Systor {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"Timestamp") {
            return Ok(Line::Aside);
        }
        let [at, response, kind, lun, offset, size] = columns(line)?;
        let at_ns = seconds(at, "timestamp")?;
        if kind.trim_ascii().is_empty() {
            return Ok(Line::Dropped);
        }
        let latency = match response.trim_ascii() {
            b"" => None,
            text => Some(Nanos(seconds(text, "response time")?)),
        };
        Ok(Line::Request(Raw {
            at_ns,
            kind: read_or_write(kind)?,
            offset_bytes: whole(offset, "offset")?,
            length_bytes: whole(size, "size")?,
            volume: volume(lun, "LUN")?,
            latency,
        }))
    }
}
