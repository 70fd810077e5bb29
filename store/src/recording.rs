//! Recordings: a snapshot of the engine's state, then everything that went into it and came out of it, with its instant.
//! Replaying the events from there must give the effects again, byte for byte.
//!
//! The format is one zstd frame. Its first line is
//! `{"minerva_recording":2,"version":"0.1.0","behaviour_revision":1,"snapshot_bytes":1234}`; then come so many bytes of the snapshot,
//! none if the recording begins with a new engine; then JSON, one line an [`Entry`]. Format 1 had no snapshots, and headers without
//! a [behaviour revision](BEHAVIOUR_REVISION) count as revision 0. What a reader holds at a time is bounded: a line by [`LINE_BYTES_MAX`], the snapshot by [`SNAPSHOT_BYTES_MAX`],
//! the decompressor's window by 2^[`WINDOW_LOG_MAX`] bytes, so that a hostile file cannot make it allocate more.

mod behaviour;
mod reader;

pub use behaviour::{BEHAVIOUR_REVISION, changes_since};
pub use reader::{Recording, RecordingError, RecordingErrorKind, read_entries};

use minerva_model::{Effect, Event, Nanos};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Longer lines are refused. A sample of 10,000 tenants on 4 disks takes about 8 MiB.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Longer snapshots are refused. The state of 10,000 tenants on 4 disks takes about 30 MiB.
pub const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;

/// The decompressor's window, as a power of two: 8 MiB. The recorder's own is 2 MiB.
pub const WINDOW_LOG_MAX: u32 = 23;

/// The format that this program writes; it reads the earlier ones too.
const FORMAT: u32 = 2;

/// zstd's default: a slice of 1,200 tenants is compressed in well under a millisecond.
const LEVEL: i32 = 3;

#[derive(Serialize, Deserialize)]
struct Header {
    minerva_recording: u32,
    version: String,
    #[serde(default)]
    behaviour_revision: u32,
    #[serde(default)]
    snapshot_bytes: u64,
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
    /// Makes the file, for a recording that begins with a new engine; one that exists is not overwritten.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create_new(path)?))
    }
}

impl<W: Write> Recorder<W> {
    /// Records into `out` what a new engine is told and wants.
    pub fn new(out: W) -> io::Result<Self> {
        Self::from_snapshot(out, &[])
    }

    /// Records into `out` what an engine is told and wants from the state of `snapshot` on.
    pub fn from_snapshot(out: W, snapshot: &[u8]) -> io::Result<Self> {
        let snapshot_bytes = snapshot.len() as u64;
        if snapshot_bytes > SNAPSHOT_BYTES_MAX {
            let message = format!(
                "the engine's state takes {snapshot_bytes} bytes, above the recording's limit of {SNAPSHOT_BYTES_MAX}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        encoder.include_checksum(true)?;
        let mut recorder = Self { encoder, line: Vec::new() };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let behaviour_revision = BEHAVIOUR_REVISION;
        let header = Header { minerva_recording: FORMAT, version, behaviour_revision, snapshot_bytes };
        render_header(&header, &mut recorder.line)?;
        recorder.write_line()?;
        recorder.encoder.write_all(snapshot)?;
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

    fn write(&mut self, entry: &EntryRef<'_>) -> io::Result<()> {
        render_entry(entry, &mut self.line)?;
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        if self.line.len() > LINE_BYTES_MAX {
            let length = self.line.len();
            let message = format!("an entry of {length} bytes is above the recording's limit of {LINE_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.encoder.write_all(&self.line)
    }
}

// Not generic, so that what writes all events and effects is compiled here and not again in each crate that records.
fn render_header(header: &Header, line: &mut Vec<u8>) -> serde_json::Result<()> {
    render(header, line)
}

fn render_entry(entry: &EntryRef<'_>, line: &mut Vec<u8>) -> serde_json::Result<()> {
    render(entry, line)
}

fn render(value: &impl Serialize, line: &mut Vec<u8>) -> serde_json::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, value)?;
    line.push(b'\n');
    Ok(())
}
