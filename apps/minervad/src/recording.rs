//! A recording on its way to a client. The client's queue is bounded; when it is full the recording ends there, because one
//! with a hole could not be replayed.

use minerva_model::{Effect, Event, Nanos};
use minerva_store::Recorder;
use std::io::{self, Write};
use tokio::sync::mpsc::Sender;

/// Pieces are sent when they are this long, or at the end of a slice.
const PIECE_BYTES: usize = 256 * 1024;

/// Hands what is written to a client, in pieces.
struct Pieces {
    buffer: Vec<u8>,
    client: Sender<Vec<u8>>,
}

impl Pieces {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.buffer);
        self.client.try_send(piece).map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

/// One recording.
pub(crate) struct Tape {
    recorder: Recorder<Pieces>,
    client: Sender<Vec<u8>>,
}

impl Tape {
    /// Begins a recording for a client.
    pub(crate) fn begin(client: Sender<Vec<u8>>) -> io::Result<Self> {
        let recorder = Recorder::new(Pieces { buffer: Vec::new(), client: client.clone() })?;
        Ok(Self { recorder, client })
    }

    /// The client hung up.
    pub(crate) fn is_over(&self) -> bool {
        self.client.is_closed()
    }

    /// What the engine is told.
    pub(crate) fn event(&mut self, now: Nanos, event: &Event) -> io::Result<()> {
        self.recorder.event(now, event)
    }

    /// What the engine wants.
    pub(crate) fn effect(&mut self, now: Nanos, effect: &Effect) -> io::Result<()> {
        self.recorder.effect(now, effect)
    }

    /// The slice is over: the client gets what there is.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.recorder.flush()?;
        self.recorder.get_mut().flush()
    }

    /// Ends the recording, so that its reader knows that nothing is missing.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.recorder.finish()?.flush()
    }
}
