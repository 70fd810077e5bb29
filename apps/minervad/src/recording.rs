//! A recording on its way to a client, from its begin to its end. It begins with a snapshot of the engine's state, so nothing that
//! is steered notices it. The client's queue is bounded; when it is full the recording ends there, because one with a hole could
//! not be replayed.

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

/// The recording that runs. There is one at most.
#[derive(Default)]
pub(crate) struct Recording {
    running: Option<Tape>,
    /// How many have begun. The number of each is how many had with it.
    begun: u64,
}

impl Recording {
    /// Begins one with the engine's state, unless another runs. The answer is its number, the error a sentence.
    pub(crate) fn begin(&mut self, client: Sender<Vec<u8>>, snapshot: impl FnOnce() -> Vec<u8>) -> Result<u64, String> {
        if self.running.as_ref().is_some_and(|tape| !tape.is_over()) {
            return Err("a recording runs already; end it first".to_owned());
        }
        let number = self.begun + 1;
        let tape = Tape::begin(number, client, &snapshot());
        self.running = Some(tape.map_err(|error| format!("the recording did not begin: {error}"))?);
        self.begun = number;
        Ok(number)
    }

    /// One is being written.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What the engine is told.
    pub(crate) fn event(&mut self, now: Nanos, event: &Event) {
        self.write(|tape| tape.event(now, event));
    }

    /// What the engine wants.
    pub(crate) fn effect(&mut self, now: Nanos, effect: &Effect) {
        self.write(|tape| tape.effect(now, effect));
    }

    /// The slice is over: the client gets what there is.
    pub(crate) fn flush(&mut self) {
        if self.running.as_ref().is_some_and(Tape::is_over) {
            self.running = None;
        }
        self.write(Tape::flush);
    }

    /// Ends the recording of this number, so that its reader knows that nothing is missing. Where another runs, that goes on: a client
    /// may say late that it is done, when its own recording has ended already.
    pub(crate) fn end(&mut self, number: u64) {
        if self.running.as_ref().is_some_and(|tape| tape.number == number) {
            self.stop();
        }
    }

    /// Ends whichever runs, in the same way.
    pub(crate) fn stop(&mut self) {
        let Some(tape) = self.running.take() else { return };
        match tape.finish() {
            Ok(()) => tracing::info!("the recording has ended"),
            Err(error) => tracing::info!(%error, "the recording has ended; its client had gone before"),
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Tape) -> io::Result<()>) {
        let Some(tape) = &mut self.running else { return };
        if let Err(error) = write(tape) {
            tracing::info!(%error, "the recording ended: its client hung up or was too slow");
            self.running = None;
        }
    }
}

/// One recording.
struct Tape {
    number: u64,
    recorder: Recorder<Pieces>,
    client: Sender<Vec<u8>>,
}

impl Tape {
    /// Begins a recording for a client.
    fn begin(number: u64, client: Sender<Vec<u8>>, snapshot: &[u8]) -> io::Result<Self> {
        let recorder = Recorder::from_snapshot(Pieces { buffer: Vec::new(), client: client.clone() }, snapshot)?;
        Ok(Self { number, recorder, client })
    }

    /// The client hung up.
    fn is_over(&self) -> bool {
        self.client.is_closed()
    }

    /// What the engine is told.
    fn event(&mut self, now: Nanos, event: &Event) -> io::Result<()> {
        self.recorder.event(now, event)
    }

    /// What the engine wants.
    fn effect(&mut self, now: Nanos, effect: &Effect) -> io::Result<()> {
        self.recorder.effect(now, effect)
    }

    /// The slice is over: the client gets what there is.
    fn flush(&mut self) -> io::Result<()> {
        self.recorder.flush()?;
        self.recorder.get_mut().flush()
    }

    /// Ends the recording, so that its reader knows that nothing is missing.
    fn finish(self) -> io::Result<()> {
        self.recorder.finish()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Recording;
    use tokio::sync::mpsc::channel;

    #[test]
    fn a_client_that_says_late_that_it_is_done_ends_no_other_clients_recording() {
        let mut recording = Recording::default();
        let (client, slow) = channel(8);
        let first = recording.begin(client, Vec::new).expect("none runs");
        drop(slow);
        let (client, mut pieces) = channel(8);
        let second = recording.begin(client, Vec::new).expect("the first has no reader");
        recording.end(first);
        assert!(recording.is_running(), "the second goes on");
        recording.flush();
        pieces.try_recv().expect("its begin");
        recording.end(second);
        assert!(!recording.is_running());
        pieces.try_recv().expect("its end, whole");
    }
}
