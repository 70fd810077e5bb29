//! A recording on its way to a client, from being asked for to its end. The client's queue is bounded; when it is full the
//! recording ends there, because one with a hole could not be replayed.

use minerva_model::{Effect, Event, Nanos};
use minerva_store::Recorder;
use minerva_tenant_server::request::TenantCall;
use std::io::{self, Write};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

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

/// The recording that runs, and the one that waits for the store. There is one of both at most.
#[derive(Default)]
pub(crate) struct Recording {
    running: Option<Tape>,
    requested: Option<Requested>,
    /// What tenants ask while one waits.
    held_back: Vec<TenantCall>,
}

/// A recording begins with a new engine, and that waits until nothing is on its way to the ledger.
struct Requested {
    client: Sender<Vec<u8>>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Recording {
    /// Asks for one that [`Self::begin`] begins; the answer is sent then. False if another runs or waits, which is answered.
    pub(crate) fn request(&mut self, client: Sender<Vec<u8>>, answer: oneshot::Sender<Result<(), String>>) -> bool {
        let runs = self.running.as_ref().is_some_and(|tape| !tape.is_over());
        if runs || self.requested.is_some() {
            drop(answer.send(Err("a recording runs already; end it first".to_owned())));
            return false;
        }
        self.running = None;
        self.requested = Some(Requested { client, answer });
        true
    }

    /// One is being written.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// One was asked for and has not begun.
    pub(crate) const fn is_requested(&self) -> bool {
        self.requested.is_some()
    }

    /// Keeps what a tenant asks until the recording has begun.
    pub(crate) fn hold_back(&mut self, request: TenantCall) {
        self.held_back.push(request);
    }

    /// What was held back.
    pub(crate) fn take_held_back(&mut self) -> Vec<TenantCall> {
        std::mem::take(&mut self.held_back)
    }

    /// Begins the one that was asked for. What it gives is to be handed to [`Begun::answer`] when the new engine knows everything.
    pub(crate) fn begin(&mut self) -> Option<Begun> {
        let Requested { client, answer } = self.requested.take()?;
        let outcome = match Tape::begin(client) {
            Ok(tape) => {
                self.running = Some(tape);
                Ok(())
            }
            Err(error) => Err(format!("the recording did not begin: {error}")),
        };
        Some(Begun { answer, outcome })
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

    /// Ends the recording, so that its reader knows that nothing is missing.
    pub(crate) fn end(&mut self) {
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

/// A recording that has begun, or could not, and who is to hear of it.
pub(crate) struct Begun {
    answer: oneshot::Sender<Result<(), String>>,
    outcome: Result<(), String>,
}

impl Begun {
    /// Tells the client, which may have gone.
    pub(crate) fn answer(self) {
        drop(self.answer.send(self.outcome));
    }
}

/// One recording.
struct Tape {
    recorder: Recorder<Pieces>,
    client: Sender<Vec<u8>>,
}

impl Tape {
    /// Begins a recording for a client.
    fn begin(client: Sender<Vec<u8>>) -> io::Result<Self> {
        let recorder = Recorder::new(Pieces { buffer: Vec::new(), client: client.clone() })?;
        Ok(Self { recorder, client })
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
