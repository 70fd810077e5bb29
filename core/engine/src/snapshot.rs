//! The engine's whole state as bytes, so that a recording can begin anywhere (docs/ARCHITECTURE.md, section 1).
//!
//! What is restored goes on exactly as the original would. So every field of every stage is in the snapshot, but for memory that
//! is only kept to be used again. The format is CBOR (RFC 8949): it names the fields, so that a state of other fields is told
//! from this one, takes keys of any type and keeps every float. The fields are not a contract between versions: a snapshot is
//! for the version that made it, and for those after it whose state has the same fields.

use crate::Engine;

/// These bytes are no state of this version's engine.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot is not one that this version can take up")]
pub struct SnapshotError {
    /// The details; absent where bytes are left over.
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Engine {
    /// The state, effects that were not polled included.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        #[expect(
            clippy::expect_used,
            reason = "memory takes what is written, and all fields are of types that CBOR can hold"
        )]
        ciborium::into_writer(self, &mut bytes).expect("a state can be written");
        bytes
    }

    /// An engine that goes on where the one of the snapshot was.
    pub fn restored(mut snapshot: &[u8]) -> Result<Self, SnapshotError> {
        let engine =
            ciborium::from_reader(&mut snapshot).map_err(|error| SnapshotError { source: Some(Box::new(error)) })?;
        if snapshot.is_empty() { Ok(engine) } else { Err(SnapshotError { source: None }) }
    }
}
