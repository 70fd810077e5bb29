//! What every disk model answers to: requests in, completions out, in virtual time.

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// What a request asks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Bytes from the disk.
    Read,
    /// Bytes to the disk.
    Write,
    /// Everything whose write was completed before the flush was submitted reaches the medium.
    Flush,
    /// The bytes are no longer needed.
    Discard,
}

/// One request as it crosses the disk's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it; comes back in the [`Completion`].
    pub tag: u64,
    /// What it asks.
    pub kind: Kind,
    /// First byte. Rounded down to a whole sector of 512 bytes. Ignored by a flush.
    pub offset_bytes: u64,
    /// Length. Rounded up to a whole sector; zero counts as one sector. Ignored by a flush.
    pub length_bytes: u32,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's tag.
    pub tag: u64,
    /// The instant at which the disk was done with it.
    pub at: Nanos,
}

/// Sums since the model was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes read by completed requests.
    pub read_bytes: u64,
    /// Bytes written by completed requests.
    pub write_bytes: u64,
    /// Arm movements to another cylinder. Always 0 for an SSD.
    pub seeks: u64,
    /// Reads answered from the disk's cache, wholly or by waiting for its read-ahead.
    pub cache_hits: u64,
    /// Time the arm spent seeking and settling.
    pub seek_time: Nanos,
    /// Time spent waiting for a sector to come round.
    pub rotation_time: Nanos,
    /// Time spent moving data, on the medium or over the interface.
    pub transfer_time: Nanos,
    /// Time in which at least one request was under way.
    pub busy_time: Nanos,
    /// Times the device stopped for its own house-keeping (garbage collection). Always 0 for a hard disk.
    pub stalls: u64,
}

/// A disk in virtual time: no clock, no thread; `now` is an argument and must never go back.
///
/// The device runs by itself between calls: what happens at an instant does not depend on when the caller looks. The
/// caller must keep requests within [`capacity_bytes`](Self::capacity_bytes) (see [`check_request`]) and at most
/// [`queue_depth`](Self::queue_depth) of them under way. A request past the end is served at the last sectors of the
/// disk; a request beyond the queue depth waits its turn inside the model. Neither is ever lost.
pub trait DeviceModel: Send {
    /// Size of the disk.
    fn capacity_bytes(&self) -> u64;
    /// How many requests the disk takes at once (NCQ); the caller queues the rest.
    fn queue_depth(&self) -> u32;
    /// Hands one request to the disk.
    fn submit(&mut self, now: Nanos, request: Request);
    /// The instant of the earliest completion under way; `None` when the disk has no request.
    fn next_completion(&self) -> Option<Nanos>;
    /// Takes one completion that is due at `now`, earliest first.
    fn complete(&mut self, now: Nanos) -> Option<Completion>;
    /// What the disk has done so far.
    fn statistics(&self) -> Statistics;
}

/// Why a request must not be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It has no bytes.
    #[error("request {tag} has no bytes; a read, write or discard needs at least one sector of 512 bytes")]
    Empty {
        /// The request's tag.
        tag: u64,
    },
    /// It is not made of whole sectors.
    #[error(
        "request {tag} at byte {offset_bytes}, {length_bytes} bytes long, is not made of whole sectors of 512 bytes"
    )]
    Misaligned {
        /// The request's tag.
        tag: u64,
        /// Its first byte.
        offset_bytes: u64,
        /// Its length.
        length_bytes: u32,
    },
    /// It reaches past the end of the disk.
    #[error(
        "request {tag} at byte {offset_bytes}, {length_bytes} bytes long, reaches past the end of the disk at byte {capacity_bytes}"
    )]
    PastEnd {
        /// The request's tag.
        tag: u64,
        /// Its first byte.
        offset_bytes: u64,
        /// Its length.
        length_bytes: u32,
        /// The size of the disk.
        capacity_bytes: u64,
    },
}

/// Says whether a disk of `capacity_bytes` can serve `request` as it stands. A flush always passes.
pub fn check_request(capacity_bytes: u64, request: &Request) -> Result<(), RequestError> {
    let Request { tag, kind, offset_bytes, length_bytes } = *request;
    if kind == Kind::Flush {
        return Ok(());
    }
    if length_bytes == 0 {
        return Err(RequestError::Empty { tag });
    }
    if offset_bytes % SECTOR_BYTES != 0 || u64::from(length_bytes) % SECTOR_BYTES != 0 {
        return Err(RequestError::Misaligned { tag, offset_bytes, length_bytes });
    }
    match offset_bytes.checked_add(u64::from(length_bytes)) {
        Some(end) if end <= capacity_bytes => Ok(()),
        _ => Err(RequestError::PastEnd { tag, offset_bytes, length_bytes, capacity_bytes }),
    }
}

/// The unit of every address inside a model.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// First sector and number of sectors of a request, moved inside a disk of `capacity_sectors`.
pub(crate) fn sectors_within(request: &Request, capacity_sectors: u64) -> (u64, u64) {
    let first = request.offset_bytes / SECTOR_BYTES;
    let end = request.offset_bytes.saturating_add(u64::from(request.length_bytes)).div_ceil(SECTOR_BYTES);
    let count = end.saturating_sub(first).clamp(1, capacity_sectors);
    (first.min(capacity_sectors - count), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset_bytes: u64, length_bytes: u32) -> Request {
        Request { tag: 7, kind: Kind::Read, offset_bytes, length_bytes }
    }

    #[test]
    fn a_request_must_be_whole_sectors_inside_the_disk() {
        assert_eq!(check_request(4096, &read(3584, 512)), Ok(()));
        assert_eq!(check_request(4096, &read(0, 0)), Err(RequestError::Empty { tag: 7 }));
        assert!(matches!(check_request(4096, &read(1, 512)), Err(RequestError::Misaligned { .. })));
        assert!(matches!(check_request(4096, &read(3584, 1024)), Err(RequestError::PastEnd { .. })));
        assert!(matches!(check_request(4096, &read(u64::MAX - 511, 512)), Err(RequestError::PastEnd { .. })));
        let flush = Request { kind: Kind::Flush, ..read(u64::MAX, 0) };
        assert_eq!(check_request(0, &flush), Ok(()));
    }

    #[test]
    fn a_request_past_the_end_is_moved_to_the_last_sectors() {
        assert_eq!(sectors_within(&read(u64::MAX, 1024), 100), (99, 1));
        assert_eq!(sectors_within(&read(99 * 512, 1024), 100), (98, 2));
        assert_eq!(sectors_within(&read(700, 0), 100), (1, 1));
        assert_eq!(sectors_within(&read(0, 1 << 20), 100), (0, 100));
    }
}
