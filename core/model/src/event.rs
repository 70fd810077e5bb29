//! The whole interface between thinking and touching: events go into the engine, effects come out of it.
//! A recording is the list of both, and replaying its events must give its effects byte for byte.

use crate::{
    Adjustment, AgentReport, BackgroundCost, BackgroundId, BackgroundOrder, BackgroundQueue, BackgroundReport,
    Decision, Declaration, Device, DeviceId, DiskCalibration, EngineConfig, EntryNumber, Finding, FittedModel, Granted,
    JobPhase, JobRun, JobSettings, KnobInspection, KnobRelease, KnobWatch, KnobWrite, LearntBandwidth, LedgerEntry,
    LevelClaims, MigrationAnswer, MigrationReport, Nanos, Outcome, Purchase, Recalled, Refused, RequestId, Sample,
    ServedContracts, ServedDisks, Tenant, TenantHistory, TenantId, TenantRequest, WriteId,
};
use serde::{Deserialize, Serialize};

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The operator's settings, at start and after each reload. Always the first event.
    Configured(Box<EngineConfig>),
    /// A disk appeared, or its facts changed.
    DeviceSeen(Device),
    /// A disk is gone.
    DeviceGone(DeviceId),
    /// A server of ours serves these disks of guests on a device, and no others there. What it was told before it started holds no more.
    ServerSeen(ServedDisks),
    /// What the contracts of a server of ours need on a device beside the other processes of the host.
    ContractsSeen(ServedContracts),
    /// A server of ours has ended.
    ServerGone(String),
    /// A tenant appeared, or its rule changed; `history` is what the store remembers of it, already aged by the time
    /// the daemon was away.
    TenantSeen {
        /// Who.
        tenant: Tenant,
        /// Its past, if it is remembered.
        history: Vec<TenantHistory>,
    },
    /// A tenant is gone.
    TenantGone(TenantId),
    /// The counters were read. One slice ends, the next begins.
    Sampled(Box<Sample>),
    /// An agent reported on its tenant. It counts in the slice that ends next.
    Reported(AgentReport),
    /// What came of an inspection or a write.
    Answered {
        /// The request.
        id: WriteId,
        /// What came of it.
        outcome: Outcome,
    },
    /// All that was written was put back while the driver runs, by its guard or an operator: what stands in the knobs is not known.
    KnobsRestored,
    /// A tenant asks for something.
    Requested(TenantRequest),
    /// Claims of a tenant ended, or its schedule goes on, without anybody having asked: these are what it has now. Never refused.
    LevelClaimsChanged {
        /// Whose.
        tenant: TenantId,
        /// All that it has now.
        claims: LevelClaims,
    },
    /// The operator adjusts what an account holds.
    Adjusted(Adjustment),
    /// The cache tells what it moved for a tenant; judged by the slice that ended last.
    MigrationReported(MigrationReport),
    /// The store has committed an entry of the ledger.
    Committed {
        /// Which.
        entry: EntryNumber,
        /// False: the ledger had an entry of this tenant and request already, and nothing was added.
        fresh: bool,
        /// Of a purchase that is not fresh: the one that the ledger has.
        #[serde(default)]
        known: Option<Purchase>,
    },
    /// The store could not commit an entry of the ledger, and nothing was added.
    CommitFailed {
        /// Which.
        entry: EntryNumber,
        /// A sentence for people.
        detail: String,
    },
    /// What the store knows of a tenant's credits and declarations; after its `TenantSeen`, and before its requests.
    Recalled(Box<Recalled>),
    /// What the store knows of a disk; after its `DeviceSeen`.
    BandwidthRecalled(LearntBandwidth),
    /// A model that was kept before this start; after the first `Configured`.
    ModelRecalled(FittedModel),
    /// A queue of background work, new or with other terms.
    BackgroundSet(Box<BackgroundQueue>),
    /// A queue of background work is no more.
    BackgroundGone(BackgroundId),
    /// The batch job that a tenant says it is from now on; nothing once it is over. Never refused.
    JobDeclared {
        /// Who.
        tenant: TenantId,
        /// What.
        job: Option<JobSettings>,
    },
    /// What earlier runs of a job of this name moved, oldest first; after the first `Configured`.
    JobRunsRecalled {
        /// The job's name.
        name: String,
        /// Read and written by each.
        bytes: Vec<u64>,
        /// What each did; nothing in recordings of earlier versions.
        #[serde(default)]
        phases: Vec<Vec<JobPhase>>,
    },
    /// How far background work is. It counts in the slice that ends next.
    BackgroundReported(BackgroundReport),
    /// Background work of a disk is to rest for so long, so that it is measured what the disk serves to others.
    BackgroundCalibrate {
        /// Which disk.
        device: DeviceId,
        /// For how long.
        length: Nanos,
    },
    /// What was measured of a disk before this start.
    BackgroundCalibrated {
        /// Which disk.
        device: DeviceId,
        /// What.
        calibration: DiskCalibration,
    },
    /// The driver is about to end: everything that was written is to be put back.
    Stopping,
}

/// Something the engine wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Read a knob and answer.
    Inspect(KnobInspection),
    /// Write a knob, read it back and answer. The driver performs writes in the order given.
    Write(KnobWrite),
    /// Forget what undoes a knob, because somebody else holds it now: what stands there is theirs. Not answered.
    LetGo(KnobRelease),
    /// Somebody else wrote a knob: find out who writes it from now on. Not answered.
    Watch(KnobWatch),
    /// This pair's share or its reasons changed; for the log, the audit table and `explain`. In `shadow` mode this is
    /// all that happens.
    Decided(Decision),
    /// Remember this for the next start. The driver stores it in one transaction a slice.
    Remember(TenantHistory),
    /// Tell people.
    Found(Finding),
    /// Answer a tenant.
    Granted(Granted),
    /// Answer a tenant.
    Refused(Refused),
    /// Answer the cache.
    MigrationCounted(MigrationAnswer),
    /// Call a tenant back: its operation is to begin now.
    Ready {
        /// Who.
        tenant: TenantId,
        /// The request.
        id: RequestId,
    },
    /// Commit this entry and acknowledge it. The driver commits entries in the order given.
    Ledger(LedgerEntry),
    /// Remember this for the next start, in place of what was declared under the same key before.
    Declare(Declaration),
    /// Remember this for the next start.
    Learnt(LearntBandwidth),
    /// Keep this for the next start, in place of the model of this kind before it.
    KeepModel(FittedModel),
    /// A run of a batch job has ended; it is to be remembered.
    JobEnded(Box<JobRun>),
    /// Let background work run so from now on.
    Background(BackgroundOrder),
    /// Remember for the next start what background work costs.
    BackgroundLearnt {
        /// Whose.
        id: BackgroundId,
        /// What.
        cost: BackgroundCost,
    },
    /// Remember for the next start what a disk serves to others than background work.
    BackgroundCalibrated {
        /// Which disk.
        device: DeviceId,
        /// What.
        calibration: DiskCalibration,
    },
}
