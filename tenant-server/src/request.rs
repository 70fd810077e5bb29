//! What tenants ask of the slice loop. The server has found out who asks, how often it may, and that numbers are numbers; what a
//! request means, and whether it is granted, is the engine's.

use crate::authenticate::process::ProcessHandle;
use crate::waiting_slot::WaitingSlot;
use minerva_api::v1;
use minerva_linux_observe::GuestDisk;
use minerva_model::{AccessKind, DeviceId, JobSettings, Level, Nanos, PoolOffer, RefusalKind, RequestId, TenantId};
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::{mpsc, oneshot};

/// One request of one tenant.
#[derive(Debug)]
pub struct TenantCall {
    /// Who.
    pub tenant: TenantId,
    /// What, and where the answer goes. Whoever waits for it may have gone.
    pub call: Call,
}

/// Takes requests for a slice loop, without waiting for it.
pub trait RequestSink: std::fmt::Debug + Send + Sync {
    /// Hands over a request; its answer comes by the channel that is in it.
    fn send(&self, request: TenantCall) -> Result<(), NotTaken>;
}

impl RequestSink for SyncSender<TenantCall> {
    fn send(&self, request: TenantCall) -> Result<(), NotTaken> {
        self.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => NotTaken::Full,
            TrySendError::Disconnected(_) => NotTaken::Ended,
        })
    }
}

/// A request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Too many wait.
    Full,
    /// The loop has ended.
    Ended,
}

/// Where a single answer goes.
pub type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub kind: RefusalKind,
    /// For people.
    pub message: String,
    /// The loop has it in the log and the audit; else that is for the server.
    pub is_told: bool,
}

impl Refusal {
    /// One of which nobody has told yet.
    pub const fn new(kind: RefusalKind, message: String) -> Self {
        Self { kind, message, is_told: false }
    }
}

/// How long a level lasts that was set.
#[derive(Debug)]
pub enum LevelLifetime {
    /// Until another is set.
    UntilReleased,
    /// For this span from now on.
    For(Nanos),
    /// Until this process ends.
    Process(ProcessHandle),
}

/// A deadline, counted from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// By then it has begun.
    Begin(Nanos),
    /// By then it is done.
    Done(Nanos),
}

/// Which disk an operation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedDisk {
    /// This one, as the client named it; a partition stands for its disk.
    Named(DeviceId),
    /// The one below this block device, on which the client works; the usual one if that is no disk of ours.
    Below(DeviceId),
    /// Of a guest the one with its image that is like this; else the one that the tenant uses most.
    Usual(GuestDisk),
}

/// Work that a tenant put off, in time of a disk that nobody else uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debt {
    /// What the tenant calls it; one of a name at a time.
    pub name: String,
    /// All of it, what is done included.
    pub service: Nanos,
    /// What is done of it.
    pub done: Nanos,
    /// Bytes that the rest ties.
    pub tied_bytes: u64,
}

/// What is asked for.
#[derive(Debug)]
pub enum Call {
    /// How it stands. `identified_by` of the answer is left empty for the server to fill.
    Describe(Answer<v1::DescribeResponse>),
    /// Step back.
    SetLevel {
        /// How far.
        level: Level,
        /// For how long.
        lifetime: LevelLifetime,
        /// The level in force.
        answer: Answer<Level>,
    },
    /// Step back until the receiver is dropped.
    HoldLevel {
        /// How far.
        level: Level,
        /// Told the level in force at first and at each change; a refusal ends it.
        changes: mpsc::Sender<Result<Level, Refusal>>,
    },
    /// Be this batch job until the receiver is dropped.
    HoldJob {
        /// Which.
        job: JobSettings,
        /// Told the place among jobs at first and at each change; a refusal ends it.
        places: mpsc::Sender<Result<v1::HoldJobResponse, Refusal>>,
    },
    /// Owe this until the receiver is dropped.
    HoldDebt {
        /// What.
        debt: Debt,
        /// It should be done within this time.
        within: Option<Nanos>,
        /// On which disk.
        disk: WantedDisk,
        /// Told whether it may be worked on, at first and at each change; a refusal ends it.
        words: mpsc::Sender<Result<v1::HoldDebtResponse, Refusal>>,
    },
    /// How far a debt is, of that registration; 0: whichever holds the name.
    ReportDebt(Debt, u64, Answer<()>),
    /// Step back by the clock on the wall.
    SetSchedule {
        /// When. Judged: minutes and days are in range.
        entries: Vec<v1::ScheduleEntry>,
        /// Whose clock; empty: the host's.
        time_zone: String,
        /// The level in force.
        answer: Answer<Level>,
    },
    /// What the account holds.
    Credits {
        /// Entries of the ledger in the answer, the latest.
        entries_max: u32,
        /// The answer.
        answer: Answer<v1::CreditsResponse>,
    },
    /// Buy a larger share.
    Boost {
        /// The request's key.
        id: RequestId,
        /// How much.
        amount: BoostAmount,
        /// Where; absent: on every disk.
        device: Option<DeviceId>,
        /// What was bought.
        answer: Answer<v1::BoostResponse>,
    },
    /// Fit in a large operation. Told the grant, and `begin_now` when the operation may begin; then the sender is dropped. A refusal
    /// ends it.
    Coordinate {
        /// The operation's key.
        id: RequestId,
        /// How much it moves.
        size_bytes: u64,
        /// How.
        access: AccessKind,
        /// Until when.
        within: Option<Within>,
        /// On which disk.
        disk: WantedDisk,
        /// Where it can be written in place of that.
        pool: Option<PoolOffer>,
        /// The answers.
        answers: mpsc::Sender<Result<v1::CoordinateResponse, Refusal>>,
    },
    /// An operation has begun.
    Begin(RequestId, Answer<()>),
    /// It has ended.
    Finish(RequestId, Answer<()>),
    /// It is not to be.
    Cancel(RequestId, Answer<()>),
    /// The latest report of the tenant's agent.
    Report {
        /// What it says.
        report: Box<v1::ReportRequest>,
        /// Held until the loop takes it.
        slot: WaitingSlot,
    },
}

/// How much is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostAmount {
    /// So many.
    Slices(u32),
    /// Rounded up to whole slices.
    For(Nanos),
}

impl Call {
    /// Answers that it is refused. Whoever asked may have gone.
    pub fn refuse(self, refusal: &Refusal) {
        let refusal = refusal.clone();
        match self {
            Self::Describe(answer) => drop(answer.send(Err(refusal))),
            Self::SetLevel { answer, .. } | Self::SetSchedule { answer, .. } => drop(answer.send(Err(refusal))),
            Self::HoldLevel { changes, .. } => drop(changes.try_send(Err(refusal))),
            Self::HoldJob { places, .. } => drop(places.try_send(Err(refusal))),
            Self::HoldDebt { words, .. } => drop(words.try_send(Err(refusal))),
            Self::Credits { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Boost { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Coordinate { answers, .. } => drop(answers.try_send(Err(refusal))),
            Self::Begin(_, answer)
            | Self::Finish(_, answer)
            | Self::Cancel(_, answer)
            | Self::ReportDebt(_, _, answer) => drop(answer.send(Err(refusal))),
            Self::Report { .. } => {}
        }
    }

    /// The word of the request, for metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Describe(_) => "describe",
            Self::SetLevel { .. } => "set-level",
            Self::HoldLevel { .. } => "hold-level",
            Self::HoldJob { .. } => "hold-job",
            Self::HoldDebt { .. } => "hold-debt",
            Self::ReportDebt(..) => "report-debt",
            Self::SetSchedule { .. } => "set-schedule",
            Self::Credits { .. } => "credits",
            Self::Boost { .. } => "boost",
            Self::Coordinate { .. } => "coordinate",
            Self::Begin(..) => "begin",
            Self::Finish(..) => "finish",
            Self::Cancel(..) => "cancel",
            Self::Report { .. } => "report",
        }
    }
}
