//! What other threads may ask of the slice loop. The queue is bounded: a flood of clients is refused at the listener, and the
//! loop never waits for any of them.

use minerva_api::v1;
use minerva_model::{BackgroundId, DeviceId};
use minerva_store::BackgroundRow;
use minerva_tenant_server::request::{Answer, RequestSink, TenantCall};
use prometheus_client::metrics::gauge::Gauge;
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::{mpsc, oneshot};

/// How far ahead is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// 24 hours.
    Day,
    /// Seven days.
    Week,
}

impl Ahead {
    /// The word of a request.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "day" => Some(Self::Day),
            "week" => Some(Self::Week),
            _ => None,
        }
    }
}

/// Requests that may wait for the loop at once. The listeners for tenants leave half of it to operators.
pub(crate) const QUEUE_LENGTH: usize = 1024;
/// Pieces of a recording that may wait for a client. Some ten busy slices; a client slower than that loses the recording.
pub(crate) const RECORD_QUEUE_LENGTH: usize = 16 * 1024;

/// One request.
#[derive(Debug)]
pub(crate) enum Command {
    /// End: put everything back. Holds what asked for it, for the log.
    Stop(&'static str),
    /// Read the operator's file again. The answer says which file, or what is wrong with it.
    Reload(Option<oneshot::Sender<Result<String, String>>>),
    /// Tell how things stand.
    Status(oneshot::Sender<v1::StatusResponse>),
    /// Tell what a disk or a group is expected to do; nothing if there is neither.
    LoadForecast(String, Ahead, oneshot::Sender<Option<v1::ForecastResponse>>),
    /// Tell what a tenant is expected to do; nothing if there is no such tenant.
    Forecast(String, oneshot::Sender<Option<v1::ForecastResponse>>),
    /// Start a recording into this queue, unless one runs.
    Record(mpsc::Sender<Vec<u8>>, oneshot::Sender<Result<(), String>>),
    /// End the recording, whole. Said by the client whose recording it is.
    EndRecord,
    /// Give an account credits, or take some.
    Adjust(v1::AdjustCreditsRequest, Answer<v1::AdjustCreditsResponse>),
    /// A tenant asks for something.
    Tenant(TenantCall),
    /// Entries of the ledger were committed, or could not be: look what came of them.
    StoreAnswered,
    /// Something about background work.
    Background(BackgroundCommand),
    /// Put a process into a named tenant.
    Register(v1::RegisterRequest, oneshot::Sender<Result<v1::RegisterResponse, String>>),
}

/// Answers with the queue, or says why it was refused.
pub(crate) type BackgroundAnswer = oneshot::Sender<Result<v1::BackgroundQueue, String>>;

/// Something about background work.
#[derive(Debug)]
pub(crate) enum BackgroundCommand {
    /// Register it.
    Add(v1::AddBackgroundRequest, BackgroundAnswer),
    /// Pause, resume or remove it.
    Change(v1::ChangeBackgroundRequest, BackgroundAnswer),
    /// Tell of all.
    Show(v1::BackgroundRequest, oneshot::Sender<v1::BackgroundResponse>),
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

/// The loop did not take a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    /// Too many requests wait.
    #[error("the daemon is busy: {QUEUE_LENGTH} requests wait already, ask again in a second")]
    Full,
    /// The loop has ended.
    #[error("the daemon is stopping")]
    Ended,
}

impl From<NotTaken> for minerva_tenant_server::request::NotTaken {
    fn from(error: NotTaken) -> Self {
        match error {
            NotTaken::Full => Self::Full,
            NotTaken::Ended => Self::Ended,
        }
    }
}

impl RequestSink for Commands {
    fn send(&self, request: TenantCall) -> Result<(), minerva_tenant_server::request::NotTaken> {
        Ok(Self::send(self, Command::Tenant(request))?)
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
