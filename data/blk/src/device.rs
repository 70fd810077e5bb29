//! What the server offers to a guest: feature bits and the configuration space (Virtual I/O Device specification 1.3, sections
//! 5.2.3 and 5.2.4; vhost-user protocol for bit 30 and the protocol features).

use crate::request::{Geometry, RANGE_BYTES_MAX, SECTOR_BYTES, SEGMENT_BYTES_MAX, SEGMENTS_MAX};

const BLK_SIZE_MAX: u64 = 1 << 1;
const BLK_SEG_MAX: u64 = 1 << 2;
const BLK_RO: u64 = 1 << 5;
const BLK_BLK_SIZE: u64 = 1 << 6;
const BLK_FLUSH: u64 = 1 << 9;
const BLK_CONFIG_WCE: u64 = 1 << 11;
const BLK_MQ: u64 = 1 << 12;
const BLK_DISCARD: u64 = 1 << 13;
const BLK_WRITE_ZEROES: u64 = 1 << 14;
const RING_INDIRECT_DESC: u64 = 1 << 28;
const RING_EVENT_IDX: u64 = 1 << 29;
/// The front end understands protocol features.
pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;

/// Bytes of the configuration space up to `write_zeroes_may_unmap` and what pads it.
pub(crate) const CONFIG_BYTES: usize = 60;
/// Where the length of the disk begins.
pub(crate) const CONFIG_AT_SECTORS: u32 = 0;
/// Where the guest says whether its writes may be cached.
pub(crate) const CONFIG_AT_WRITEBACK: u32 = 32;

/// What is offered for a disk.
pub(crate) fn features(disk: &Geometry) -> u64 {
    let base = BLK_SIZE_MAX | BLK_SEG_MAX | BLK_BLK_SIZE | BLK_FLUSH | BLK_CONFIG_WCE | BLK_MQ;
    let ring = RING_INDIRECT_DESC | RING_EVENT_IDX | PROTOCOL_FEATURES | VERSION_1;
    base | ring | if disk.is_read_only { BLK_RO } else { BLK_DISCARD | BLK_WRITE_ZEROES }
}

/// Whether the ring's events were agreed upon.
pub(crate) fn has_event_index(features: u64) -> bool {
    features & RING_EVENT_IDX != 0
}

/// Whether each write has to be durable when it is answered: a guest that never flushes, or said so, counts on that.
pub(crate) fn is_durable(features: u64, has_writeback: bool) -> bool {
    features & BLK_FLUSH == 0 || (features & BLK_CONFIG_WCE != 0 && !has_writeback)
}

/// The configuration space.
pub(crate) fn config(disk: &Geometry, queues: u16, has_writeback: bool) -> [u8; CONFIG_BYTES] {
    let mut bytes = [0; CONFIG_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    let range_sectors = (RANGE_BYTES_MAX / SECTOR_BYTES) as u32;
    put(CONFIG_AT_SECTORS as usize, &disk.sectors.to_le_bytes());
    put(8, &SEGMENT_BYTES_MAX.to_le_bytes());
    put(12, &SEGMENTS_MAX.to_le_bytes());
    put(20, &disk.block_bytes.to_le_bytes());
    put(CONFIG_AT_WRITEBACK as usize, &[u8::from(has_writeback)]);
    put(34, &queues.to_le_bytes());
    // Discard: the longest, one range a request, aligned to blocks.
    put(36, &range_sectors.to_le_bytes());
    put(40, &1u32.to_le_bytes());
    put(44, &(disk.block_bytes / SECTOR_BYTES as u32).to_le_bytes());
    // Write zeroes: the longest, one range a request, and its space may be given back.
    put(48, &range_sectors.to_le_bytes());
    put(52, &1u32.to_le_bytes());
    put(56, &[1]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{BLK_CONFIG_WCE, BLK_DISCARD, BLK_FLUSH, BLK_RO, config, features, is_durable};
    use crate::request::Geometry;

    const DISK: Geometry = Geometry { sectors: 0x1234_5678, block_bytes: 4096, is_read_only: false };

    #[test]
    fn the_configuration_space_has_each_field_in_its_place() {
        let bytes = config(&DISK, 3, true);
        assert_eq!(bytes[..8], 0x1234_5678u64.to_le_bytes());
        assert_eq!(bytes[20..24], 4096u32.to_le_bytes());
        assert_eq!((bytes[32], bytes[34], bytes[35]), (1, 3, 0));
        assert_eq!(bytes[44..48], 8u32.to_le_bytes(), "discards are of whole blocks");
        assert_eq!(bytes[56], 1);
    }

    #[test]
    fn a_disk_that_is_only_read_offers_nothing_that_writes() {
        let read_only = Geometry { is_read_only: true, ..DISK };
        assert_eq!(features(&read_only) & (BLK_RO | BLK_DISCARD), BLK_RO);
        assert_eq!(features(&DISK) & (BLK_RO | BLK_DISCARD), BLK_DISCARD);
    }

    #[test]
    fn writes_are_durable_at_once_for_a_guest_that_does_not_flush() {
        assert!(is_durable(0, true));
        assert!(!is_durable(BLK_FLUSH, false));
        assert!(is_durable(BLK_FLUSH | BLK_CONFIG_WCE, false));
        assert!(!is_durable(BLK_FLUSH | BLK_CONFIG_WCE, true));
    }
}
