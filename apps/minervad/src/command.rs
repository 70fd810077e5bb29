//! What other threads may ask of the slice loop. The queue is bounded: a flood of clients is refused at the listener, and the
//! loop never waits for any of them.

use minerva_model::{BackgroundId, DeviceId};
use minerva_operator_server::call::{BackgroundAnswer, CallSink, NotTaken, OperatorCall};
use minerva_store::BackgroundRow;
use minerva_tenant_server::request::{RequestSink, TenantCall};
use prometheus_client::metrics::gauge::Gauge;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Those for which the queue had no room and which must not be lost.
    late: Arc<Mutex<Vec<Command>>>,
}

impl Commands {
    /// A queue's sending end, and the count of those in it.
    pub(crate) fn new(queue: SyncSender<Command>, waiting: Gauge) -> Self {
        Self { queue, waiting, late: Arc::default() }
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

    /// Never blocks either, and a full queue loses nothing: what it has no room for, the loop takes when it has taken some of what
    /// waits, or with the next slice. For what tenants cannot send, as there is no bound.
    pub(crate) fn send_surely(&self, command: Command) {
        self.waiting.inc();
        if let Err(error) = self.queue.try_send(command) {
            self.waiting.dec();
            // A loop that has ended wants nothing any more.
            if let TrySendError::Full(command) = error {
                self.late.lock().unwrap_or_else(PoisonError::into_inner).push(command);
            }
        }
    }

    /// What the queue had no room for, in the order in which it was sent.
    pub(crate) fn take_late(&self) -> Vec<Command> {
        std::mem::take(&mut self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Commands};
    use prometheus_client::metrics::gauge::Gauge;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn what_must_not_be_lost_waits_beside_a_full_queue() {
        let (queue, taken) = sync_channel(2);
        let waiting = Gauge::default();
        let commands = Commands::new(queue, waiting.clone());
        (0..3).for_each(|_| commands.send_surely(Command::Reload));
        assert!(commands.send(Command::StoreAnswered).is_err());
        assert_eq!((waiting.get(), taken.try_iter().count()), (2, 2));
        let late = commands.clone().take_late();
        assert!(matches!(late[..], [Command::Reload]), "{late:?}");
        assert_eq!(commands.take_late().len(), 0);
        drop(taken);
        commands.send_surely(Command::Reload);
        assert_eq!(commands.take_late().len(), 0, "nobody takes it any more");
    }
}
