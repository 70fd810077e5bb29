//! One request of a guest, judged before anything is done: what its header says, against the lengths of its buffers and the
//! disk (Virtual I/O Device specification 1.3, section 5.2.6). Pure: bytes in, an [`Operation`] or a [`Refusal`] out.

/// Offsets and lengths of requests count in units of this, whatever the disk's blocks are.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes of a request's header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the payload of a discard or write-zeroes request with one segment, which is all that is offered.
pub const RANGE_BYTES: usize = 16;
/// The longest serial number.
pub const SERIAL_BYTES: usize = 20;
/// The longest range that one discard or write-zeroes request may name.
pub const RANGE_BYTES_MAX: u64 = 32 << 20;
/// Buffers of one request, and how long each is to be.
pub const SEGMENTS_MAX: u32 = 126;
/// See [`SEGMENTS_MAX`].
pub const SEGMENT_BYTES_MAX: u32 = 64 << 10;
/// The longest read or write.
pub const REQUEST_BYTES_MAX: u64 = SEGMENTS_MAX as u64 * SEGMENT_BYTES_MAX as u64;
/// Longer reads, writes and write-zeroes go to scheduler and disk in parts of this: so long others wait, and admission reckons with it.
pub const PART_BYTES_MAX: u32 = 1 << 20;

const TYPE_IN: u32 = 0;
const TYPE_OUT: u32 = 1;
const TYPE_FLUSH: u32 = 4;
const TYPE_GET_ID: u32 = 8;
const TYPE_DISCARD: u32 = 11;
const TYPE_WRITE_ZEROES: u32 = 13;
const FLAG_UNMAP: u32 = 1;

/// The disk as the guest sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its length.
    pub sectors: u64,
    /// Logical block: offsets and lengths of reads and writes are multiples of it; at least [`SECTOR_BYTES`].
    pub block_bytes: u32,
    /// Nothing may be written.
    pub is_read_only: bool,
}

/// A request's header, copied once out of the guest's memory, which the guest may change at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    kind: u32,
    /// The I/O priority: the field that the specification calls reserved, and Linux guests fill (see [`crate::tag`]).
    pub ioprio: u16,
    sector: u64,
}

impl Header {
    /// From its bytes.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, sector @ ..] = *bytes;
        let reserved = u32::from_le_bytes([e, f, g, h]);
        Self {
            kind: u32::from_le_bytes([a, b, c, d]),
            // What does not fit is no I/O priority.
            ioprio: u16::try_from(reserved).unwrap_or(0),
            sector: u64::from_le_bytes(sector),
        }
    }

    /// Whether the request's readable data is a range to discard or to zero.
    pub fn has_range(&self) -> bool {
        matches!(self.kind, TYPE_DISCARD | TYPE_WRITE_ZEROES)
    }
}

/// What of a request lies where, in bytes, without its header and its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// To be read by the disk: what is to be written.
    pub readable: u64,
    /// To be written by the disk: room for what is read.
    pub writable: u64,
}

/// What a request that was judged good asks for. Offsets and lengths are within the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Fill the writable buffers.
    Read {
        /// Where.
        offset_bytes: u64,
    },
    /// Store the readable buffers.
    Write {
        /// Where.
        offset_bytes: u64,
    },
    /// Make durable what was acknowledged before.
    Flush,
    /// Forget a range.
    Discard {
        /// Where.
        offset_bytes: u64,
        /// How much.
        length_bytes: u64,
    },
    /// Zero a range.
    WriteZeroes {
        /// Where.
        offset_bytes: u64,
        /// How much.
        length_bytes: u64,
        /// Its space may be given back.
        may_unmap: bool,
    },
    /// Say the serial number.
    GetId,
}

/// Why a request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing of this kind is known here.
    Unsupported,
    /// It asks for what cannot be.
    Invalid,
}

impl Operation {
    /// What a request asks for. `range` is its payload where [`Header::has_range`] says that there is one and it has the length
    /// of one segment.
    pub fn judge(
        header: &Header,
        lengths: Lengths,
        range: Option<&[u8; RANGE_BYTES]>,
        disk: &Geometry,
    ) -> Result<Self, Refusal> {
        let offset = |length_bytes| within(header.sector, length_bytes, disk).ok_or(Refusal::Invalid);
        match (header.kind, lengths) {
            (TYPE_IN, Lengths { readable: 0, writable }) => Ok(Self::Read { offset_bytes: offset(writable)? }),
            (TYPE_OUT, Lengths { readable, writable: 0 }) if !disk.is_read_only => {
                Ok(Self::Write { offset_bytes: offset(readable)? })
            }
            (TYPE_FLUSH, _) => Ok(Self::Flush),
            (TYPE_GET_ID, Lengths { writable, .. }) if writable >= SERIAL_BYTES as u64 => Ok(Self::GetId),
            (TYPE_DISCARD | TYPE_WRITE_ZEROES, _) if !disk.is_read_only => {
                Self::judge_range(header.kind, range.ok_or(Refusal::Invalid)?, disk)
            }
            (TYPE_IN | TYPE_OUT | TYPE_GET_ID | TYPE_DISCARD | TYPE_WRITE_ZEROES, _) => Err(Refusal::Invalid),
            _ => Err(Refusal::Unsupported),
        }
    }

    fn judge_range(kind: u32, range: &[u8; RANGE_BYTES], disk: &Geometry) -> Result<Self, Refusal> {
        let [sector @ .., a, b, c, d, e, f, g, h] = *range;
        let length_bytes = u64::from(u32::from_le_bytes([a, b, c, d])) * SECTOR_BYTES;
        let flags = u32::from_le_bytes([e, f, g, h]);
        let flags_known = if kind == TYPE_WRITE_ZEROES { FLAG_UNMAP } else { 0 };
        if flags & !flags_known != 0 {
            return Err(Refusal::Unsupported);
        }
        let sector = u64::from_le_bytes(sector);
        let end = sector.checked_mul(SECTOR_BYTES).and_then(|offset| offset.checked_add(length_bytes));
        let fits = end.is_some_and(|end| end <= disk.sectors * SECTOR_BYTES) && length_bytes <= RANGE_BYTES_MAX;
        if !fits || length_bytes == 0 {
            return Err(Refusal::Invalid);
        }
        let offset_bytes = sector * SECTOR_BYTES;
        Ok(match kind {
            TYPE_WRITE_ZEROES => Self::WriteZeroes { offset_bytes, length_bytes, may_unmap: flags & FLAG_UNMAP != 0 },
            _ => Self::Discard { offset_bytes, length_bytes },
        })
    }
}

/// The offset of a read or write that the disk can do.
fn within(sector: u64, length_bytes: u64, disk: &Geometry) -> Option<u64> {
    let offset_bytes = sector.checked_mul(SECTOR_BYTES)?;
    let end = offset_bytes.checked_add(length_bytes)?;
    let block = u64::from(disk.block_bytes);
    let is_whole = offset_bytes.is_multiple_of(block) && length_bytes.is_multiple_of(block);
    let fits = length_bytes > 0 && length_bytes <= REQUEST_BYTES_MAX && end <= disk.sectors * SECTOR_BYTES;
    (is_whole && fits).then_some(offset_bytes)
}

#[cfg(test)]
mod tests {
    use super::{
        Geometry, Header, Lengths, Operation, RANGE_BYTES, RANGE_BYTES_MAX, REQUEST_BYTES_MAX, Refusal, SECTOR_BYTES,
    };
    use proptest::prelude::*;

    const DISK: Geometry = Geometry { sectors: 1 << 20, block_bytes: 512, is_read_only: false };

    fn header(kind: u32, sector: u64) -> Header {
        Header { kind, ioprio: 0, sector }
    }

    fn judge(kind: u32, sector: u64, readable: u64, writable: u64, disk: &Geometry) -> Result<Operation, Refusal> {
        Operation::judge(&header(kind, sector), Lengths { readable, writable }, None, disk)
    }

    fn range(sector: u64, sectors: u32, flags: u32) -> [u8; RANGE_BYTES] {
        let mut bytes = [0; RANGE_BYTES];
        bytes[..8].copy_from_slice(&sector.to_le_bytes());
        bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
        bytes[12..].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_is_type_priority_and_sector() {
        let mut bytes = [0; 16];
        bytes[0] = 1;
        bytes[4..6].copy_from_slice(&0x4123u16.to_le_bytes());
        bytes[8] = 9;
        assert_eq!(Header::parse(&bytes), Header { kind: 1, ioprio: 0x4123, sector: 9 });
        bytes[6] = 1;
        assert_eq!(Header::parse(&bytes).ioprio, 0, "more than 16 bits are no I/O priority");
    }

    #[test]
    fn reads_and_writes_are_whole_blocks_within_the_disk() {
        let read_only = Geometry { is_read_only: true, ..DISK };
        let large_blocks = Geometry { block_bytes: 4096, ..DISK };
        let last = DISK.sectors - 1;
        assert_eq!(judge(0, 3, 0, 512, &DISK), Ok(Operation::Read { offset_bytes: 1536 }));
        assert_eq!(judge(1, 8, 4096, 0, &large_blocks), Ok(Operation::Write { offset_bytes: 4096 }));
        assert_eq!(judge(0, last, 0, 512, &read_only), Ok(Operation::Read { offset_bytes: last * 512 }));
        for (kind, sector, readable, writable, disk) in [
            (0, last, 0, 1024, &DISK),
            (0, u64::MAX, 0, 512, &DISK),
            (0, u64::MAX / 512, 0, 512, &DISK),
            (0, 0, 0, 0, &DISK),
            (0, 0, 0, 511, &DISK),
            (0, 0, 512, 512, &DISK),
            (0, 0, 0, REQUEST_BYTES_MAX + 512, &DISK),
            (1, 0, 512, 512, &DISK),
            (1, 0, 512, 0, &read_only),
            (1, 1, 4096, 0, &large_blocks),
            (0, 0, 0, 512, &large_blocks),
            (8, 0, 0, 19, &DISK),
            (11, 0, 16, 0, &DISK),
        ] {
            assert_eq!(judge(kind, sector, readable, writable, disk), Err(Refusal::Invalid), "{kind} {sector}");
        }
    }

    #[test]
    fn ranges_have_one_segment_known_flags_and_a_bounded_length() {
        let judge = |kind, bytes: [u8; RANGE_BYTES], disk| {
            Operation::judge(&header(kind, 0), Lengths { readable: 16, writable: 0 }, Some(&bytes), disk)
        };
        let (offset_bytes, length_bytes) = (4096, 8192);
        assert_eq!(judge(11, range(8, 16, 0), &DISK), Ok(Operation::Discard { offset_bytes, length_bytes }));
        let zeroes = |may_unmap| Ok(Operation::WriteZeroes { offset_bytes, length_bytes, may_unmap });
        assert_eq!(judge(13, range(8, 16, 0), &DISK), zeroes(false));
        assert_eq!(judge(13, range(8, 16, 1), &DISK), zeroes(true));
        assert_eq!(judge(11, range(8, 16, 1), &DISK), Err(Refusal::Unsupported), "a discard unmaps anyway");
        assert_eq!(judge(13, range(8, 16, 2), &DISK), Err(Refusal::Unsupported));
        let read_only = Geometry { is_read_only: true, ..DISK };
        let too_long = (RANGE_BYTES_MAX / SECTOR_BYTES) as u32 + 1;
        for (bytes, disk) in [
            (range(8, 16, 0), &read_only),
            (range(DISK.sectors, 1, 0), &DISK),
            (range(u64::MAX, 1, 0), &DISK),
            (range(8, 0, 0), &DISK),
            (range(8, too_long, 0), &DISK),
        ] {
            assert_eq!(judge(11, bytes, disk), Err(Refusal::Invalid), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_unsupported() {
        for kind in [2, 3, 5, 7, 9, 10, 12, 14, 16, u32::MAX] {
            assert_eq!(judge(kind, 0, 512, 512, &DISK), Err(Refusal::Unsupported), "{kind}");
        }
        assert_eq!(judge(4, u64::MAX, 0, 0, &DISK), Ok(Operation::Flush), "the sector of a flush says nothing");
    }

    proptest! {
        #[test]
        fn what_is_taken_lies_within_the_disk(
            bytes: [u8; 16],
            payload: [u8; 16],
            kind in prop_oneof![Just(0u32), Just(1), Just(11), Just(13), any::<u32>()],
            sector in prop_oneof![0..2u64 << 20, any::<u64>()],
            readable in 0..1u64 << 25,
            writable in 0..1u64 << 25,
        ) {
            let mut header = Header::parse(&bytes);
            (header.kind, header.sector) = (kind, sector);
            let end = DISK.sectors * SECTOR_BYTES;
            match Operation::judge(&header, Lengths { readable, writable }, Some(&payload), &DISK) {
                Ok(Operation::Read { offset_bytes }) => prop_assert!(offset_bytes + writable <= end),
                Ok(Operation::Write { offset_bytes }) => prop_assert!(offset_bytes + readable <= end),
                Ok(Operation::Discard { offset_bytes, length_bytes }
                    | Operation::WriteZeroes { offset_bytes, length_bytes, .. }) => {
                    prop_assert!(offset_bytes + length_bytes <= end);
                }
                Ok(Operation::Flush | Operation::GetId) | Err(_) => {}
            }
        }
    }
}
