//! MSR Cambridge (Narayanan et al., FAST '08; SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamp is a Windows file time, and ResponseTime a duration, in units of 100 ns; Offset and Size are bytes; Type is
//! `Read` or `Write`. A volume is a host and a disk, `usr_0` as the files are named.

use crate::trace::fields::{columns, scaled, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::names::Names;
use crate::trace::record::Raw;
use minerva_blocksched::Kind;
use minerva_model::Nanos;

/// A tick of the Windows clock.
const TICK_NS: u64 = 100;

#[derive(Default)]
pub(in crate::trace) struct Msr {
    names: Names,
    name: Vec<u8>,
}

impl LineFormat for Msr {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        if line.starts_with(b"Timestamp") {
            return Ok(Line::Aside);
        }
        let [at, host, disk, kind, offset, size, response] = columns(line)?;
        whole(disk, "disk number")?;
        let kind = match kind.trim_ascii() {
            b"Read" | b"read" => Kind::Read,
            b"Write" | b"write" => Kind::Write,
            _ => return Err("the type is neither Read nor Write".into()),
        };
        let raw = Raw {
            at_ns: scaled(whole(at, "timestamp")?, TICK_NS, "timestamp")?,
            kind,
            offset_bytes: whole(offset, "offset")?,
            length_bytes: whole(size, "size")?,
            volume: 0,
            latency: Some(Nanos(scaled(whole(response, "response time")?, TICK_NS, "response time")?)),
        };
        self.name.clear();
        self.name.extend_from_slice(host.trim_ascii());
        self.name.push(b'_');
        self.name.extend_from_slice(disk.trim_ascii());
        Ok(Line::Request(Raw { volume: self.names.number(&self.name)?, ..raw }))
    }

    fn volume_names(&self) -> &[String] {
        self.names.list()
    }
}
