//! What operators ask of the slice loop. The loop never waits for any of them: its queue is bounded, and a flood is refused here.

use minerva_api::v1;
use minerva_tenant_server::request::Answer;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for the loop at once. The listeners for tenants leave half of it to operators.
pub const QUEUE_LENGTH: usize = 1024;

/// How far ahead is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
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

/// One request, and where its answer goes. Whoever waits for it may have gone.
#[derive(Debug)]
pub enum OperatorCall {
    /// Read the operator's file again. The answer says which file, or what is wrong with it.
    Reload(oneshot::Sender<Result<String, String>>),
    /// Tell how things stand.
    Status(oneshot::Sender<v1::StatusResponse>),
    /// Tell what a disk or a group is expected to do; nothing if there is neither.
    LoadForecast(String, Ahead, oneshot::Sender<Option<v1::ForecastResponse>>),
    /// Tell what a tenant is expected to do; nothing if there is no such tenant.
    Forecast(String, oneshot::Sender<Option<v1::ForecastResponse>>),
    /// Start a recording into this queue, unless one runs. The answer is its number.
    Record(mpsc::Sender<Vec<u8>>, oneshot::Sender<Result<u64, String>>),
    /// End the recording of this number, whole, if it runs. Said by the client whose recording it is.
    EndRecord(u64),
    /// Give an account credits, or take some.
    Adjust(v1::AdjustCreditsRequest, Answer<v1::AdjustCreditsResponse>),
    /// Count what the cache moved for a tenant.
    Migration(v1::ReportMigrationRequest, Answer<v1::ReportMigrationResponse>),
    /// Something about background work.
    Background(BackgroundCall),
    /// Tell of batch jobs.
    Jobs(oneshot::Sender<v1::JobsResponse>),
    /// Put a process into a named tenant.
    Register(v1::RegisterRequest, oneshot::Sender<Result<v1::RegisterResponse, String>>),
}

/// Answers with the queue, or says why it was refused.
pub type BackgroundAnswer = oneshot::Sender<Result<v1::BackgroundQueue, String>>;

/// Something about background work.
#[derive(Debug)]
pub enum BackgroundCall {
    /// Register it.
    Add(v1::AddBackgroundRequest, BackgroundAnswer),
    /// Pause, resume or remove it.
    Change(v1::ChangeBackgroundRequest, BackgroundAnswer),
    /// Tell of all. Errors: a sentence why nobody knows yet.
    Show(v1::BackgroundRequest, oneshot::Sender<Result<Shown, String>>),
    /// Let work of a disk rest, and measure what that serves to others. Errors: a sentence.
    Calibrate(v1::CalibrateBackgroundRequest, oneshot::Sender<Result<(), String>>),
}

/// Background work as the loop sees it, whose plans are still to be made: that takes long, and the loop does not wait for it.
pub struct Shown(Box<dyn FnOnce() -> v1::BackgroundResponse + Send>);

impl Shown {
    /// What is left to do.
    pub fn by(finish: impl FnOnce() -> v1::BackgroundResponse + Send + 'static) -> Self {
        Self(Box::new(finish))
    }

    pub(crate) fn finish(self) -> v1::BackgroundResponse {
        (self.0)()
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

/// Takes calls for a slice loop, without waiting for it.
pub trait CallSink: std::fmt::Debug + Send + Sync {
    /// Hands over a call; its answer comes by the channel that is in it.
    fn send(&self, call: OperatorCall) -> Result<(), NotTaken>;
}

/// The loop did not take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Too many requests wait.
    #[error("the daemon is busy: {QUEUE_LENGTH} requests wait already, ask again in a second")]
    Full,
    /// The loop has ended.
    #[error("the daemon is stopping")]
    Ended,
}
