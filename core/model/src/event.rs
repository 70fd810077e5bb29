//! The whole interface between thinking and touching: events go into the engine, effects come out of it.
//! A recording is the list of both, and replaying its events must give its effects byte for byte.

use crate::{
    Decision, Device, DeviceId, EngineConfig, Finding, KnobInspection, KnobWrite, Outcome, Sample, Tenant,
    TenantHistory, TenantId, WriteId,
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
    /// What came of an inspection or a write.
    Answered {
        /// The request.
        id: WriteId,
        /// What came of it.
        outcome: Outcome,
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
    /// This pair's share or its reasons changed; for the log, the audit table and `explain`. In `shadow` mode this is
    /// all that happens.
    Decided(Decision),
    /// Remember this for the next start. The driver stores it in one transaction a slice.
    Remember(TenantHistory),
    /// Tell people.
    Found(Finding),
}
