//! A line for each request that is done, for whoever judges afterwards, request by request, whether promises were kept.

use crate::tag::STREAMS;
use minerva_blocksched::{Kind, Request};
use minerva_model::Nanos;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// Lines wait here, so that a request costs no system call.
const BUFFER_BYTES: usize = 1 << 20;
/// What a line holds; instants are in nanoseconds of `CLOCK_MONOTONIC`.
const HEADER: &str = "disk,kind,tag,stream,offset_bytes,length_bytes,arrived_ns,sent_ns,done_ns,is_good";

/// A log of requests. It stays open from one worker to the next: a process that confined itself could not open it again.
#[derive(Clone, Debug)]
pub struct RequestLog(Arc<File>);

impl RequestLog {
    /// Begins one; a file that is there becomes empty.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o640).open(path)?;
        writeln!(file, "{HEADER}")?;
        Ok(Self(Arc::new(file)))
    }
}

/// What one worker writes of it.
pub(super) struct LogWriter {
    out: BufWriter<Arc<File>>,
}

impl LogWriter {
    /// Goes on where the log ends.
    pub(super) fn new(RequestLog(file): &RequestLog) -> Self {
        Self { out: BufWriter::with_capacity(BUFFER_BYTES, Arc::clone(file)) }
    }

    /// A request of `disk` is done.
    pub(super) fn note(
        &mut self,
        disk: &str,
        request: &Request,
        has_tags: bool,
        (sent, done): (Nanos, Nanos),
        is_good: bool,
    ) {
        let kind = match request.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Flush => "flush",
            Kind::Discard => "discard",
        };
        let stream = if has_tags { request.flow.0 % u32::from(STREAMS) } else { 0 };
        let (tag, arrived, done) = (request.tag.unwrap_or_default(), request.arrived.0, done.0);
        let (offset, length, sent) = (request.offset_bytes, request.length_bytes, sent.0);
        let good = u8::from(is_good);
        // A log that cannot be written is incomplete, which is no reason not to serve.
        let _ = writeln!(self.out, "{disk},{kind},{tag},{stream},{offset},{length},{arrived},{sent},{done},{good}");
    }
}
