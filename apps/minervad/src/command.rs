//! What other threads may ask of the slice loop. The queue is bounded: a flood of clients is refused at the listener, and the
//! loop never waits for any of them.

use minerva_model::{BackgroundId, DeviceId};
use minerva_operator_server::call::{BackgroundAnswer, CallSink, NotTaken, OperatorCall};
use minerva_store::BackgroundRow;
use minerva_tenant_server::request::{RequestSink, TenantCall};
use prometheus_client::metrics::gauge::Gauge;
use std::sync::mpsc::{SyncSender, TrySendError};

/// One request.
#[derive(Debug)]
pub(crate) enum Command {
    /// End: put everything back. Holds what asked for it, for the log.
    Stop(&'static str),
    /// Read the operator's file again.
    Reload,
    /// An operator asks for something.
    Operator(OperatorCall),
    /// A tenant asks for something.
    Tenant(TenantCall),
    /// Entries of the ledger were committed, or could not be: look what came of them.
    StoreAnswered,
    /// What the store said of background work.
    Background(BackgroundKept),
}

/// What the store said of background work, and who waits to hear it.
#[derive(Debug)]
pub(crate) enum BackgroundKept {
    /// The store has it, or could not keep it.
    Kept {
        /// What.
        row: Box<BackgroundRow>,
        /// On which disk.
        device: Option<DeviceId>,
        /// Why not.
        kept: Result<(), String>,
        /// Who asked.
        answer: BackgroundAnswer,
    },
    /// The store has forgotten it, or could not.
    Forgotten {
        /// Which.
        id: BackgroundId,
        /// Why not.
        forgotten: Result<(), String>,
        /// Who asked.
        answer: BackgroundAnswer,
    },
}

impl RequestSink for Commands {
    fn send(&self, request: TenantCall) -> Result<(), minerva_tenant_server::request::NotTaken> {
        Self::send(self, Command::Tenant(request)).map_err(|error| match error {
            NotTaken::Full => minerva_tenant_server::request::NotTaken::Full,
            NotTaken::Ended => minerva_tenant_server::request::NotTaken::Ended,
        })
    }
}

impl CallSink for Commands {
    fn send(&self, call: OperatorCall) -> Result<(), NotTaken> {
        Self::send(self, Command::Operator(call))
    }
}

/// Hands commands to the loop.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    queue: SyncSender<Command>,
    /// Those that wait. The loop takes off what it takes.
    waiting: Gauge,
}

impl Commands {
    /// A queue's sending end, and the count of those in it.
    pub(crate) const fn new(queue: SyncSender<Command>, waiting: Gauge) -> Self {
        Self { queue, waiting }
    }

    /// Never blocks.
    pub(crate) fn send(&self, command: Command) -> Result<(), NotTaken> {
        // Before it is sent, so that it is never taken off first.
        self.waiting.inc();
        self.queue.try_send(command).map_err(|error| {
            self.waiting.dec();
            match error {
                TrySendError::Full(_) => NotTaken::Full,
                TrySendError::Disconnected(_) => NotTaken::Ended,
            }
        })
    }
}
