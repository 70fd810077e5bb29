//! Formats of records of one size, one after the other.

use super::decode::Decode;
use super::input::Input;
use super::lines::{Line, Reason};
use super::record::{Found, Malformed, Position};
use std::io::BufRead;

/// A format whose entries are records of one size.
pub(super) trait FixedFormat: Send {
    /// Bytes of a record.
    fn size(&self) -> usize;

    /// Understands one record, which has that size.
    fn record(&mut self, record: &[u8]) -> Result<Line, Reason>;
}

/// Reads records by a format.
pub(super) struct Fixed<F> {
    input: Input,
    format: F,
    /// Where the last record began.
    begins: u64,
    read: u64,
    partial: Vec<u8>,
}

impl<F: FixedFormat> Fixed<F> {
    pub(super) fn new(input: Input, format: F) -> Self {
        Self { input, format, begins: 0, read: 0, partial: Vec::new() }
    }

    fn understand(&mut self, outcome: Result<Line, Reason>) -> Option<Found> {
        let reason = match outcome {
            Ok(Line::Aside) => return None,
            Ok(Line::Dropped) => return Some(Found::Dropped),
            Ok(Line::Request(raw)) => match raw.objection() {
                None => return Some(Found::Request(raw)),
                Some(objection) => objection.into(),
            },
            Err(reason) => reason,
        };
        Some(malformed(self.begins, reason))
    }
}

impl<F: FixedFormat> Decode for Fixed<F> {
    fn next(&mut self) -> std::io::Result<Option<Found>> {
        let size = self.format.size();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                if self.partial.is_empty() {
                    return Ok(None);
                }
                self.begins = self.read;
                self.read += self.partial.len() as u64;
                let reason = format!("a truncated record: {} of {size} bytes", self.partial.len());
                self.partial.clear();
                return Ok(Some(malformed(self.begins, reason.into())));
            }
            let (outcome, used) = if self.partial.is_empty() && buffer.len() >= size {
                (self.format.record(&buffer[..size]), size)
            } else {
                let used = buffer.len().min(size - self.partial.len());
                self.partial.extend_from_slice(&buffer[..used]);
                if self.partial.len() < size {
                    self.input.consume(used);
                    continue;
                }
                let outcome = self.format.record(&self.partial);
                self.partial.clear();
                (outcome, used)
            };
            self.input.consume(used);
            self.begins = self.read;
            self.read += size as u64;
            let found = self.understand(outcome);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn position(&self) -> Position {
        Position::Byte(self.begins)
    }
}

pub(super) fn malformed(byte: u64, reason: Reason) -> Found {
    Found::Malformed(Malformed { position: Position::Byte(byte), reason: reason.into_owned(), excerpt: String::new() })
}

/// The little-endian number of `N` bytes at `from`; zero past the end, which callers rule out by the record's size.
pub(super) fn bytes<const N: usize>(record: &[u8], from: usize) -> [u8; N] {
    record.get(from..from + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}
