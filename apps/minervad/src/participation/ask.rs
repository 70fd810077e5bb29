//! What the doors for tenants ask of the slice loop. The door has found out who asks, how often it may, and that numbers are
//! numbers; what a request means, and whether it is granted, is the engine's.

use crate::participation::identity::Bound;
use minerva_api::v1;
use minerva_model::{AccessKind, DeviceId, Level, Nanos, RefusalKind, RequestId, TenantId};
use tokio::sync::{mpsc, oneshot};

/// One request of one tenant.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Who.
    pub(crate) tenant: TenantId,
    /// What, and where the answer goes. Whoever waits for it may have gone.
    pub(crate) what: What,
}

/// Where a single answer goes.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, Refusal>>;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// For programs.
    pub(crate) kind: RefusalKind,
    /// For people.
    pub(crate) message: String,
    /// The loop has it in the log and the audit; else that is for the door that tells it.
    pub(crate) is_told: bool,
}

impl Refusal {
    /// One of which nobody has told yet.
    pub(crate) const fn new(kind: RefusalKind, message: String) -> Self {
        Self { kind, message, is_told: false }
    }
}

/// How long a level lasts that was set.
#[derive(Debug)]
pub(crate) enum LevelLifetime {
    UntilReleased,
    For(Nanos),
    /// Until this process ends.
    Process(Bound),
}

/// A deadline, counted from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Begin(Nanos),
    Done(Nanos),
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum What {
    /// `identified_by` of the answer is left empty for the door to fill.
    Describe(Answer<v1::DescribeResponse>),
    SetLevel {
        level: Level,
        lifetime: LevelLifetime,
        /// The level in force.
        answer: Answer<Level>,
    },
    /// Held until the receiver is dropped. Told the level in force at first and at each change; a refusal ends it.
    HoldLevel {
        level: Level,
        changes: mpsc::Sender<Result<Level, Refusal>>,
    },
    SetSchedule {
        /// Judged: minutes and days are in range.
        entries: Vec<v1::ScheduleEntry>,
        time_zone: String,
        answer: Answer<Level>,
    },
    Credits {
        entries_max: u32,
        answer: Answer<v1::CreditsResponse>,
    },
    Boost {
        id: RequestId,
        amount: BoostAmount,
        device: Option<DeviceId>,
        answer: Answer<v1::BoostResponse>,
    },
    /// Told the grant, and `begin_now` when the operation may begin; then the sender is dropped. A refusal ends it.
    Coordinate {
        id: RequestId,
        size_bytes: u64,
        access: AccessKind,
        within: Option<Within>,
        /// As the client named it; a partition stands for its disk. Absent: the disk that the tenant uses most.
        device: Option<DeviceId>,
        answers: mpsc::Sender<Result<v1::CoordinateResponse, Refusal>>,
    },
    Begin(RequestId, Answer<()>),
    Finish(RequestId, Answer<()>),
    Cancel(RequestId, Answer<()>),
    /// The latest report of the tenant's agent.
    Report(Box<v1::ReportRequest>),
}

/// How much is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoostAmount {
    Slices(u32),
    /// Rounded up to whole slices.
    For(Nanos),
}

impl What {
    /// Answers that it is refused. Whoever asked may have gone.
    pub(crate) fn refuse(self, refusal: &Refusal) {
        let refusal = refusal.clone();
        match self {
            Self::Describe(answer) => drop(answer.send(Err(refusal))),
            Self::SetLevel { answer, .. } | Self::SetSchedule { answer, .. } => drop(answer.send(Err(refusal))),
            Self::HoldLevel { changes, .. } => drop(changes.try_send(Err(refusal))),
            Self::Credits { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Boost { answer, .. } => drop(answer.send(Err(refusal))),
            Self::Coordinate { answers, .. } => drop(answers.try_send(Err(refusal))),
            Self::Begin(_, answer) | Self::Finish(_, answer) | Self::Cancel(_, answer) => {
                drop(answer.send(Err(refusal)))
            }
            Self::Report(_) => {}
        }
    }

    /// The word of the request, for metrics.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Describe(_) => "describe",
            Self::SetLevel { .. } => "set-level",
            Self::HoldLevel { .. } => "hold-level",
            Self::SetSchedule { .. } => "set-schedule",
            Self::Credits { .. } => "credits",
            Self::Boost { .. } => "boost",
            Self::Coordinate { .. } => "coordinate",
            Self::Begin(..) => "begin",
            Self::Finish(..) => "finish",
            Self::Cancel(..) => "cancel",
            Self::Report(_) => "report",
        }
    }
}
