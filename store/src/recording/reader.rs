//! Recordings read back, and what may be wrong with them.

use super::{Entry, FORMAT, Header, LINE_BYTES_MAX, SNAPSHOT_BYTES_MAX, WINDOW_LOG_MAX};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// What is wrong with a recording, and where. The entries before it are good.
#[derive(Debug, thiserror::Error)]
#[error("recording, line {line} (byte {byte} of the text): {kind}")]
pub struct RecordingError {
    /// The line, from 1; the header is the first, and the snapshot behind it is none.
    pub line: u64,
    /// Where that line starts in the decompressed text, in which the snapshot counts.
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
    /// Above [`SNAPSHOT_BYTES_MAX`].
    #[error("its snapshot is longer than {SNAPSHOT_BYTES_MAX} bytes")]
    SnapshotTooLong,
    /// Above [`LINE_BYTES_MAX`].
    #[error("the line is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// A line that is no entry.
    #[error("the line is not an entry that this program knows")]
    NotAnEntry,
}

/// Reads a recording, entry by entry. After an error it ends.
pub struct Recording<R: BufRead> {
    version: String,
    behaviour_revision: u32,
    snapshot: Option<Vec<u8>>,
    text: BufReader<zstd::Decoder<'static, R>>,
    line: Vec<u8>,
    line_number: u64,
    byte: u64,
    ended: bool,
}

impl Recording<BufReader<File>> {
    /// Opens a file and reads its header and snapshot.
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
    /// Reads the header and the snapshot.
    pub fn new(input: R) -> Result<Self, RecordingError> {
        let first = |error: io::Error| fault(1, 0, RecordingErrorKind::Io, Some(Box::new(error)));
        let mut decoder = zstd::Decoder::with_buffer(input).map_err(first)?.single_frame();
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(first)?;
        let text = BufReader::new(decoder);
        let mut recording = Self {
            version: String::new(),
            behaviour_revision: 0,
            snapshot: None,
            text,
            line: Vec::new(),
            line_number: 0,
            byte: 0,
            ended: false,
        };
        let not_ours = |source| fault(1, 0, RecordingErrorKind::NotARecording, source);
        match recording.next_line() {
            Ok(true) => {}
            Ok(false) => return Err(not_ours(None)),
            Err(error) if error.kind == RecordingErrorKind::Damaged => return Err(not_ours(error.source)),
            Err(error) => return Err(error),
        }
        let header = parse_header(&recording.line).map_err(|error| not_ours(Some(Box::new(error))))?;
        if header.minerva_recording > FORMAT {
            let found = header.minerva_recording;
            return Err(fault(1, 0, RecordingErrorKind::NewerFormat { found }, None));
        }
        (recording.version, recording.behaviour_revision) = (header.version, header.behaviour_revision);
        recording.read_snapshot(header.snapshot_bytes)?;
        Ok(recording)
    }

    /// The state of the engine that the recording begins with; none if it begins with a new engine, or was taken before.
    pub fn take_snapshot(&mut self) -> Option<Vec<u8>> {
        self.snapshot.take()
    }

    /// The version of the program that made the recording.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The [revision](super::BEHAVIOUR_REVISION) of what the engine did in that program; 0 if it is older than the number.
    pub fn behaviour_revision(&self) -> u32 {
        self.behaviour_revision
    }

    fn read_snapshot(&mut self, length: u64) -> Result<(), RecordingError> {
        let byte = self.line.len() as u64;
        if length > SNAPSHOT_BYTES_MAX {
            return Err(fault(1, 0, RecordingErrorKind::SnapshotTooLong, None));
        }
        let mut snapshot = Vec::new();
        let read = (&mut self.text).take(length).read_to_end(&mut snapshot);
        read.map_err(|error| broken(1, byte, error))?;
        if (snapshot.len() as u64) < length {
            return Err(fault(1, byte, RecordingErrorKind::Truncated, None));
        }
        self.byte += length;
        self.snapshot = Some(snapshot).filter(|snapshot| !snapshot.is_empty());
        Ok(())
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
            Err(error) => Err(broken(line, byte, error)),
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, RecordingError> {
        if !self.next_line()? {
            return Ok(None);
        }
        let not_an_entry =
            |error| fault(self.line_number, self.byte, RecordingErrorKind::NotAnEntry, Some(Box::new(error)));
        parse_entry(&self.line).map(Some).map_err(not_an_entry)
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

// Not generic, so that a parser of all events and effects is compiled here and not again in each crate that reads recordings.
fn parse_header(line: &[u8]) -> serde_json::Result<Header> {
    serde_json::from_slice(line)
}

fn parse_entry(line: &[u8]) -> serde_json::Result<Entry> {
    serde_json::from_slice(line)
}

/// The decompressor could not go on.
fn broken(line: u64, byte: u64, error: io::Error) -> RecordingError {
    let kind = match error.kind() {
        io::ErrorKind::UnexpectedEof => RecordingErrorKind::Truncated,
        // zstd's own errors come as `Other`; what the system says keeps its number.
        _ if error.raw_os_error().is_none() => RecordingErrorKind::Damaged,
        _ => RecordingErrorKind::Io,
    };
    fault(line, byte, kind, Some(Box::new(error)))
}

fn fault(
    line: u64,
    byte: u64,
    kind: RecordingErrorKind,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
) -> RecordingError {
    RecordingError { line, byte, kind, source }
}
