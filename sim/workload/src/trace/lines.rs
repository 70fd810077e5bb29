//! Formats of lines: splitting, numbering, and a bound on how long a line may be.

use super::decode::Decode;
use super::input::Input;
use super::record::{Faults, Found, Malformed, Position, Raw};
use std::borrow::Cow;
use std::io::BufRead;

/// A longer line is no trace's; what is beyond is skipped without being kept.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;
/// So much of a malformed line is shown.
const EXCERPT_CHARACTERS: usize = 80;

/// Why a line was not understood.
pub(super) type Reason = Cow<'static, str>;

/// What a line says.
pub(super) enum Line {
    /// A request.
    Request(Raw),
    /// Something that is counted as dropped.
    Dropped,
    /// Something that is no entry, such as a heading.
    Aside,
}

/// A format whose entries are lines.
pub(super) trait LineFormat: Send {
    /// Understands one line, which has no line end and is not blank.
    fn line(&mut self, line: &[u8]) -> Result<Line, Reason>;

    /// What the trace calls its volumes, by number, if it has names.
    fn volume_names(&self) -> &[String] {
        &[]
    }
}

/// Reads lines by a format.
pub(super) struct Lines<F> {
    input: Input,
    format: F,
    number: u64,
    /// Examples of malformed lines that were given out.
    examples: usize,
    /// The line so far, when it lies across the ends of the buffer.
    partial: Vec<u8>,
}

impl<F: LineFormat> Lines<F> {
    pub(super) fn new(input: Input, format: F) -> Self {
        Self { input, format, number: 0, examples: 0, partial: Vec::new() }
    }

    /// Skips to the next line; false at the end of the trace.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            match memchr::memchr(b'\n', buffer) {
                Some(end) => {
                    self.input.consume(end + 1);
                    return Ok(());
                }
                None => {
                    let all = buffer.len();
                    self.input.consume(all);
                }
            }
        }
    }
}

impl<F: LineFormat> Decode for Lines<F> {
    fn next(&mut self) -> std::io::Result<Option<Found>> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (used, whole) = match memchr::memchr(b'\n', buffer) {
                Some(end) => (end + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            if used == 0 && self.partial.is_empty() {
                return Ok(None);
            }
            if !whole {
                self.partial.extend_from_slice(&buffer[..used]);
                self.input.consume(used);
                if self.partial.len() > LINE_BYTES_MAX {
                    self.number += 1;
                    let reason = Reason::from(format!("a line of more than {LINE_BYTES_MAX} bytes"));
                    let found = malformed(self.number, reason, &self.partial);
                    self.partial = Vec::new();
                    self.skip_line()?;
                    return Ok(Some(found));
                }
                continue;
            }
            self.number += 1;
            let line = if self.partial.is_empty() {
                &buffer[..used - 1]
            } else {
                self.partial.extend_from_slice(&buffer[..used.saturating_sub(1)]);
                &self.partial[..]
            };
            // Nobody sees more of them, and a trace that is all malformed should be read as fast as any.
            let is_shown = self.examples < Faults::EXAMPLES_MAX;
            let found = understand(&mut self.format, self.number, line.trim_ascii(), is_shown);
            self.input.consume(used);
            self.partial.clear();
            if found.is_some() {
                self.examples += usize::from(matches!(found, Some(Found::Malformed(_))));
                return Ok(found);
            }
        }
    }

    fn position(&self) -> Position {
        Position::Line(self.number)
    }

    fn volume_names(&self) -> &[String] {
        self.format.volume_names()
    }
}

fn understand(format: &mut impl LineFormat, number: u64, line: &[u8], is_shown: bool) -> Option<Found> {
    if line.is_empty() {
        return None;
    }
    let shown = if is_shown { line } else { &[] };
    match format.line(line) {
        Ok(Line::Aside) => None,
        Ok(Line::Dropped) => Some(Found::Dropped),
        Ok(Line::Request(raw)) => Some(match raw.objection() {
            None => Found::Request(raw),
            Some(objection) => malformed(number, objection.into(), shown),
        }),
        Err(reason) => Some(malformed(number, reason, shown)),
    }
}

fn malformed(number: u64, reason: Reason, line: &[u8]) -> Found {
    Found::Malformed(Malformed {
        position: Position::Line(number),
        reason: reason.into_owned(),
        excerpt: excerpt(line),
    })
}

/// The beginning of a line, for people.
pub(super) fn excerpt(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(4 * EXCERPT_CHARACTERS)]);
    let mut excerpt: String = shown.chars().filter(|c| !c.is_control()).take(EXCERPT_CHARACTERS).collect();
    if line.len() > excerpt.len() {
        excerpt.push('…');
    }
    excerpt
}
