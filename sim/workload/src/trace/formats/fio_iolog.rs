//! fio's own log of requests, versions 2 and 3 (fio(1), TRACE FILE FORMAT).
//!
//! Version 2 is `filename action [offset length]`, where the action `wait` moves the clock to `offset` microseconds after the
//! wait before it. Version 3 has a timestamp in front of each line, in microseconds from the start, and no `wait`.
//! A volume is a file. fio ignores waits below 100 µs; here they count.

use crate::trace::fields::{scaled, whole};
use crate::trace::lines::{Line, LineFormat, Reason};
use crate::trace::names::Names;
use crate::trace::record::Raw;
use minerva_blocksched::Kind;

#[derive(Clone, Copy, PartialEq)]
enum Version {
    Two,
    Three,
}

#[derive(Default)]
pub(in crate::trace) struct FioIolog {
    version: Option<Version>,
    waited_us: u64,
    names: Names,
}

impl LineFormat for FioIolog {
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason> {
        let Some(version) = self.version else {
            self.version = match line {
                b"fio version 2 iolog" => Some(Version::Two),
                b"fio version 3 iolog" => Some(Version::Three),
                _ => return Err("the first line is not `fio version 2 iolog` or `fio version 3 iolog`".into()),
            };
            return Ok(Line::Aside);
        };
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let at_us = match version {
            Version::Two => self.waited_us,
            Version::Three => whole(words.next().unwrap_or_default(), "timestamp")?,
        };
        let file = words.next().ok_or("no file name")?;
        let action = words.next().ok_or("no action")?;
        let (offset, length) = (words.next(), words.next());
        if words.next().is_some() {
            return Err("more words than this format has".into());
        }
        if matches!(action, b"add" | b"open" | b"close") {
            return Ok(Line::Aside);
        }
        let kind = match action {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Discard,
            b"sync" | b"datasync" => Kind::Flush,
            b"wait" if version == Version::Two => {
                let wait_us = whole(offset.unwrap_or_default(), "time to wait")?;
                self.waited_us = self.waited_us.checked_add(wait_us).ok_or("the time to wait is too great")?;
                return Ok(Line::Aside);
            }
            b"wait" => return Err("`wait` is not allowed as of version 3".into()),
            _ => return Err("not an action of fio's".into()),
        };
        let (offset_bytes, length_bytes) = match kind {
            Kind::Flush => (0, 0),
            _ => (whole(offset.unwrap_or_default(), "offset")?, whole(length.unwrap_or_default(), "length")?),
        };
        let at_ns = scaled(at_us, 1_000, "timestamp")?;
        Ok(Line::Request(Raw {
            at_ns,
            kind,
            offset_bytes,
            length_bytes,
            volume: self.names.number(file)?,
            latency: None,
        }))
    }

    fn volume_names(&self) -> &[String] {
        self.names.list()
    }
}
