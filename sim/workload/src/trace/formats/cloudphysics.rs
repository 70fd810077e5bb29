//! CloudPhysics traces decoded to text: `t_us,op,bytes,lbn`, blocks of 512 bytes, op R or W.

use super::{SECTOR_BYTES, read_or_write};
use crate::trace::fields::{columns, scaled, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::record::Raw;

#[derive(Default)]
pub(in crate::trace) struct CloudPhysics;

impl LineFormat for CloudPhysics {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"t_us") {
            return Ok(Line::Aside);
        }
        let [at, op, bytes, lbn] = columns(line)?;
        Ok(Line::Request(Raw {
            at_ns: scaled(whole(at, "time")?, 1_000, "time")?,
            kind: read_or_write(op)?,
            offset_bytes: scaled(whole(lbn, "block number")?, SECTOR_BYTES, "block number")?,
            length_bytes: whole(bytes, "size")?,
            volume: 0,
            latency: None,
        }))
    }
}
