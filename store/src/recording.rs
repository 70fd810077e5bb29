//! Recordings: everything that went into the engine and came out of it, with its instant. Replaying the events must give the
//! effects again, byte for byte.
//!
//! The format is JSON lines in one zstd frame. The first line is `{"minerva_recording":1,"version":"0.1.0"}`; then one line
//! an [`Entry`]. What a reader holds at a time is bounded: a line by [`LINE_BYTES_MAX`], the decompressor's window by
//! 2^[`WINDOW_LOG_MAX`] bytes, so that a hostile file cannot make it allocate more.

use minerva_model::{Effect, Event, Nanos};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Longer lines are refused. A sample of 10,000 tenants on 4 disks takes about 8 MiB.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The decompressor's window, as a power of two: 8 MiB. The recorder's own is 2 MiB.
pub const WINDOW_LOG_MAX: u32 = 23;

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

/// zstd's default: a slice of 1,200 tenants is compressed in well under a millisecond.
const LEVEL: i32 = 3;

#[derive(Serialize, Deserialize)]
struct Header {
    minerva_recording: u32,
    version: String,
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// What went in.
    Event {
        /// The engine's `now`.
        at: Nanos,
        /// What.
        what: Event,
    },
    /// What came out.
    Effect {
        /// The engine's `now` when it was polled.
        at: Nanos,
        /// What.
        what: Effect,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum EntryRef<'a> {
    Event { at: Nanos, what: &'a Event },
    Effect { at: Nanos, what: &'a Effect },
}

/// Writes a recording.
pub struct Recorder<W: Write> {
    encoder: zstd::Encoder<'static, W>,
    line: Vec<u8>,
}

impl Recorder<BufWriter<File>> {
    /// Makes the file; one that exists is not overwritten.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create_new(path)?))
    }
}

impl<W: Write> Recorder<W> {
    /// Records into `out`, starting with the header.
    pub fn new(out: W) -> io::Result<Self> {
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        encoder.include_checksum(true)?;
        let mut recorder = Self { encoder, line: Vec::new() };
        recorder.write(&Header { minerva_recording: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned() })?;
        Ok(recorder)
    }

    /// Records what went in. A sample begins a slice, so what came before it is flushed.
    pub fn event(&mut self, now: Nanos, event: &Event) -> io::Result<()> {
        if matches!(event, Event::Sampled(_)) {
            self.flush()?;
        }
        self.write(&EntryRef::Event { at: now, what: event })
    }

    /// Records what came out.
    pub fn effect(&mut self, now: Nanos, effect: &Effect) -> io::Result<()> {
        self.write(&EntryRef::Effect { at: now, what: effect })
    }

    /// Passes everything recorded so far on to the file: killed after this, the recorder leaves it readable.
    pub fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }

    /// Ends the recording, so that a reader knows that nothing is missing.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.encoder.finish()?;
        out.flush()?;
        Ok(out)
    }

    /// What the recording is written to, for instance a buffer to be emptied after each flush.
    pub fn get_mut(&mut self) -> &mut W {
        self.encoder.get_mut()
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        if self.line.len() > LINE_BYTES_MAX {
            let length = self.line.len();
            let message = format!("an entry of {length} bytes is above the recording's limit of {LINE_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.encoder.write_all(&self.line)
    }
}

/// What is wrong with a recording, and where. The entries before it are good.
#[derive(Debug, thiserror::Error)]
#[error("recording, line {line} (byte {byte} of the text): {kind}")]
pub struct RecordingError {
    /// The line, from 1; the header is the first.
    pub line: u64,
    /// Where that line starts in the decompressed text.
    pub byte: u64,
    /// What is wrong.
    pub kind: RecordingErrorKind,
    /// The details.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What is wrong with a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingErrorKind {
    /// The file could not be opened or read.
    #[error("it cannot be read")]
    Io,
    /// Something else.
    #[error("this is not a recording of Minerva")]
    NotARecording,
    /// A later format.
    #[error("its format is {found}, this program reads {FORMAT}; use the newer program")]
    NewerFormat {
        /// In the file.
        found: u32,
    },
    /// Its end is missing: the recorder was killed, or the copy is incomplete. What comes before is usable.
    #[error("it ends here, before its end; what comes before is complete")]
    Truncated,
    /// The compressed bytes are damaged, or ask for more memory than is given.
    #[error("the compressed data are damaged")]
    Damaged,
    /// Above [`LINE_BYTES_MAX`].
    #[error("the line is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// A line that is no entry.
    #[error("the line is not an entry that this program knows")]
    NotAnEntry,
}

/// Reads a recording, entry by entry. After an error it ends.
pub struct Recording<R: BufRead> {
    text: BufReader<zstd::Decoder<'static, R>>,
    line: Vec<u8>,
    line_number: u64,
    byte: u64,
    ended: bool,
}

impl Recording<BufReader<File>> {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = File::open(path).map_err(|error| fault(1, 0, RecordingErrorKind::Io, Some(Box::new(error))))?;
        Self::new(BufReader::new(file))
    }
}

/// The entries of a recording in memory; what the fuzzer calls.
pub fn read_entries(bytes: &[u8]) -> impl Iterator<Item = Result<Entry, RecordingError>> {
    let (recording, error) = match Recording::new(bytes) {
        Ok(recording) => (Some(recording), None),
        Err(error) => (None, Some(Err(error))),
    };
    error.into_iter().chain(recording.into_iter().flatten())
}

impl<R: BufRead> Recording<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<Self, RecordingError> {
        let first = |error: io::Error| fault(1, 0, RecordingErrorKind::Io, Some(Box::new(error)));
        let mut decoder = zstd::Decoder::with_buffer(input).map_err(first)?.single_frame();
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(first)?;
        let text = BufReader::new(decoder);
        let mut recording = Self { text, line: Vec::new(), line_number: 0, byte: 0, ended: false };
        let not_ours = |source| fault(1, 0, RecordingErrorKind::NotARecording, source);
        match recording.next_line() {
            Ok(true) => {}
            Ok(false) => return Err(not_ours(None)),
            Err(error) if error.kind == RecordingErrorKind::Damaged => return Err(not_ours(error.source)),
            Err(error) => return Err(error),
        }
        let header: Header =
            serde_json::from_slice(&recording.line).map_err(|error| not_ours(Some(Box::new(error))))?;
        match header.minerva_recording {
            FORMAT => Ok(recording),
            found => Err(fault(1, 0, RecordingErrorKind::NewerFormat { found }, None)),
        }
    }

    /// Reads one line into `self.line`; false at the end.
    fn next_line(&mut self) -> Result<bool, RecordingError> {
        self.byte += self.line.len() as u64;
        self.line_number += 1;
        self.line.clear();
        let read = (&mut self.text).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line);
        let (line, byte) = (self.line_number, self.byte);
        match read {
            Ok(0) => Ok(false),
            Ok(length) if length > LINE_BYTES_MAX => Err(fault(line, byte, RecordingErrorKind::LineTooLong, None)),
            Ok(_) if self.line.ends_with(b"\n") => Ok(true),
            Ok(_) => Err(fault(line, byte, RecordingErrorKind::Truncated, None)),
            Err(error) => {
                let kind = match error.kind() {
                    io::ErrorKind::UnexpectedEof => RecordingErrorKind::Truncated,
                    // zstd's own errors come as `Other`; what the system says keeps its number.
                    _ if error.raw_os_error().is_none() => RecordingErrorKind::Damaged,
                    _ => RecordingErrorKind::Io,
                };
                Err(fault(line, byte, kind, Some(Box::new(error))))
            }
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, RecordingError> {
        if !self.next_line()? {
            return Ok(None);
        }
        let not_an_entry =
            |error| fault(self.line_number, self.byte, RecordingErrorKind::NotAnEntry, Some(Box::new(error)));
        serde_json::from_slice(&self.line).map(Some).map_err(not_an_entry)
    }
}

impl<R: BufRead> Iterator for Recording<R> {
    type Item = Result<Entry, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_entry().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn fault(
    line: u64,
    byte: u64,
    kind: RecordingErrorKind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
) -> RecordingError {
    RecordingError { line, byte, kind, source }
}
