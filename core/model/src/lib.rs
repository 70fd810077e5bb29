//! The nouns of Minerva.
//!
//! Everything that passes between two stages, or between the engine and a driver, is a type of this crate. The types are
//! plain data: they hold units in their names, they serialise (a recording is a list of them) and they never touch the
//! machine. Words are those of `docs/ARCHITECTURE.md`, section 7.
//!
//! The flow, one file a noun:
//!
//! | noun | file | made by | read by |
//! |---|---|---|---|
//! | [`Tenant`], [`Device`] | `tenant`, `device` | `linux/observe` | everyone |
//! | [`Sample`] | `sample` | `linux/observe` | `core/observe` |
//! | [`Signals`] | `signals` | `core/observe` | `core/decide` |
//! | [`Outlook`] | `outlook` | `core/forecast` | `core/decide` |
//! | [`TenantRequest`], [`Granted`], [`Refused`] | `request` | tenants, `core/engine` | `core/decide`, tenants |
//! | [`LedgerEntry`], [`Declaration`] | `credit` | `core/decide` | `store` |
//! | [`FittedModel`] | `forecasting` | `core/forecast` | `store` |
//! | [`MigrationReport`], [`MigrationAnswer`] | `migration` | drivers, `core/decide` | `core/decide`, drivers |
//! | [`Decision`] | `decision` | `core/decide` | `core/actuate`, people |
//! | [`KnobWrite`], [`KnobInspection`] | `plan` | `core/actuate` | `linux/actuate` |
//! | [`Event`], [`Effect`] | `event` | drivers, `core/engine` | `core/engine`, drivers |
//! | [`BackgroundQueue`], [`BackgroundReport`], [`BackgroundOrder`] | `background` | drivers, `core/background` | `core/background`, drivers |
//! | [`Finding`] | `finding` | any stage | people |
//! | [`EngineConfig`] | `settings` | `config` | `core/engine` |

mod back_end;
mod background;
mod background_settings;
mod claim;
mod credit;
mod decision;
mod device;
mod event;
mod finding;
mod forecasting;
mod history;
mod job;
mod job_run;
mod load;
mod makespan;
mod migration;
mod outlook;
mod participation;
mod plan;
mod reason;
mod report;
mod request;
mod sample;
mod served;
mod served_figures;
mod served_report;
mod settings;
mod share;
mod signals;
mod tenant;
mod time;

pub use back_end::BackEnd;
pub use background::{
    BackgroundBeside, BackgroundCost, BackgroundHold, BackgroundId, BackgroundOrder, BackgroundPace, BackgroundQueue,
    BackgroundReport, BackgroundState, DiskCalibration, ProcessorUse,
};
pub use background_settings::BackgroundSettings;
pub use claim::{Level, LevelClaims, ScheduledClaim, SetClaim};
pub use credit::{
    Adjustment, Boost, CreditLot, Declaration, DeclaredOperation, EntryKind, EntryNumber, LearntBandwidth, LedgerEntry,
    MicroCredits, Purchase, Recalled,
};
pub use decision::{Decision, Factor, JobWait, PolicyName};
pub use device::{CgroupVersion, Device, DeviceFacts, DeviceId, POSITIONING};
pub use event::{Effect, Event};
pub use finding::{Finding, FindingKind};
pub use forecasting::{FittedModel, ForecastMode, ForecastSettings, ModelKind, SessionSource};
pub use history::{TenantHistory, UsageAverage};
pub use job::{DiskIntensity, JobPhase, JobPhaseKind, JobProfile, JobSettings, JobStep};
pub use job_run::JobRun;
pub use load::{
    Expectation, LOAD_BIN, LOAD_BINS, LOAD_BINS_PER_DAY, LoadBin, LoadForecast, LoadOf, LoadPart, LoadSum, SharedLoad,
};
pub use makespan::MakespanSettings;
pub use migration::{MigrationAnswer, MigrationOutcome, MigrationReason, MigrationReport, MovedBytes};
pub use outlook::{Burst, Forecast, Horizon, Interval, Outlook, PHASES, Phases};
pub use participation::{ContentionCounting, CoordinationSettings, CreditSettings, LevelMeaning, LevelSettings};
pub use plan::{KnobFile, KnobInspection, KnobRelease, KnobTarget, KnobWatch, KnobWrite, Outcome, WriteId};
pub use reason::Reason;
pub use report::AgentReport;
pub use request::{
    AccessKind, Deadline, Grant, Granted, Lifetime, Operation, OperationRequest, PoolOffer, RefusalKind, Refused,
    RequestId, TenantRequest, Wish,
};
pub use sample::{
    DeviceSample, DeviceSpace, IoCounters, Pressure, Sample, Skipped, SubtreeIo, TenantIo, TenantPressure, TenantUsage,
    WaitCounters,
};
pub use served::{
    Protection, SERVED_NAME_BYTES_MAX, ServedContracts, ServedDisk, ServedDisks, ServerAnswer, ServerRequest,
    is_served_name,
};
pub use served_figures::{
    ContractFigures, DiskFigures, FailureFigures, RecentFigures, TAGS_TOLD_MAX, TagFigures, TookFigures,
};
pub use served_report::{
    CONTROL_BYTES_MAX, CONTROL_VERSION, ControlRequest, DiskChange, DiskReport, DiskSettings, DiskTerms,
    PROTECTION_LEASE, PROTECTION_TOLD_EVERY, RefusedDisk, ServedDevice, ServerReport,
};
pub use settings::{
    ActuationSettings, CountedUse, DeviceSettings, EngineConfig, FennelSettings, GroupScale, Mode, ObserveSettings,
};
pub use share::Share;
pub use signals::{DeviceSignals, IoSignals, PressureSignals, Signals, SpaceSignals, UnseenIo, UsageSignals};
pub use tenant::{CgroupRef, Origin, Role, Tenant, TenantId, TenantKind, TenantRule, Terms};
pub use time::Nanos;
