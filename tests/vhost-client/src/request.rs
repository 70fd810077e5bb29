//! Requests, and the memory that they take.

pub(crate) const PAGE: usize = 4096;
/// A chain without an indirect table: header, data, status.
pub(crate) const DIRECT: u16 = 3;

/// How the memory of a ring is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Descriptors.
    pub size: u16,
    /// Data of one request.
    pub data_bytes: u32,
    /// Chains in tables of their own.
    pub is_indirect: bool,
}

impl Layout {
    /// Requests that can be under way.
    pub fn slots(&self) -> u16 {
        if self.is_indirect { self.size } else { self.size / DIRECT }
    }

    pub(crate) fn tables_bytes(&self) -> usize {
        let size = usize::from(self.size);
        // Descriptors, available, used, each from a boundary on.
        (size * 16).next_multiple_of(PAGE)
            + (size * 2 + 6).next_multiple_of(PAGE)
            + (size * 8 + 6).next_multiple_of(PAGE)
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        PAGE + (self.data_bytes as usize).next_multiple_of(PAGE)
    }

    /// All of it.
    pub fn ring_bytes(&self) -> usize {
        self.tables_bytes() + usize::from(self.slots()) * self.slot_bytes()
    }
}

/// A request to make.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// See [`crate::kind`].
    pub kind: u32,
    /// The field that Linux fills with the I/O priority.
    pub ioprio: u32,
    /// Where.
    pub sector: u64,
    /// Bytes of data.
    pub length: u32,
    /// From where in the slot's data.
    pub skip: u32,
    /// In so many pieces; one without an indirect table.
    pub pieces: u32,
}

impl Request {
    /// Of `length` bytes in one piece, without a priority.
    pub fn new(kind: u32, sector: u64, length: u32) -> Self {
        Self { kind, ioprio: 0, sector, length, skip: 0, pieces: 1 }
    }
}

/// What the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Of which slot.
    pub slot: u16,
    /// 0 good, 1 failed, 2 unsupported; 255 when the server wrote none.
    pub status: u8,
    /// Bytes that the server says it wrote.
    pub written: u32,
}
