//! A line for each request that is done, for whoever judges afterwards, request by request, whether promises were kept.

use crate::tag::STREAMS;
use minerva_blocksched::{Kind, Request};
use minerva_model::Nanos;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Lines wait here, so that a request costs no system call.
const BUFFER_BYTES: usize = 1 << 20;
/// What a line holds; instants are in nanoseconds of `CLOCK_MONOTONIC`.
const HEADER: &str = "disk,kind,tag,stream,offset_bytes,length_bytes,arrived_ns,sent_ns,done_ns,is_good";

/// The log of one worker.
pub(super) struct RequestLog {
    out: BufWriter<File>,
}

impl RequestLog {
    /// Begins a log in an empty file.
    pub(super) fn new(file: File) -> Self {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        // A log that cannot be written is incomplete, which is no reason not to serve; so everywhere below.
        let _ = writeln!(out, "{HEADER}");
        Self { out }
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
        let _ = writeln!(self.out, "{disk},{kind},{tag},{stream},{offset},{length},{arrived},{sent},{done},{good}");
    }
}
