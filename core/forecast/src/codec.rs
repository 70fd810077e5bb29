//! Models as bytes: `MFC1`, a version, a kind, the length, the body, and a checksum (CRC-32 of all before it). Little-endian.

/// What the bytes begin with.
const MAGIC: [u8; 4] = *b"MFC1";
/// Bytes before the body: magic, version, kind, length.
const HEADER: usize = 12;
/// Bytes of the checksum.
const TRAILER: usize = 4;

/// Why bytes are no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// Too short, too long, or without the mark at their start.
    Shape,
    /// Of another version or kind than what reads it.
    Version,
    /// The checksum is another.
    Checksum,
    /// A value that no model has.
    Value,
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Shape => "cut off, or no model of Minerva",
            Self::Version => "a model of another version or kind",
            Self::Checksum => "the checksum does not match",
            Self::Value => "a value that no model has",
        })
    }
}

impl std::error::Error for Damaged {}

/// Builds the body.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    body: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.body.push(value);
    }

    pub(crate) fn f32(&mut self, value: f32) {
        self.body.extend(value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.body.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.body.extend(value.to_le_bytes());
    }

    /// A length; more than 2^32 entries no model has.
    pub(crate) fn count(&mut self, value: usize) {
        self.u32(value as u32);
    }

    pub(crate) fn f32s(&mut self, values: &[f32]) {
        self.count(values.len());
        values.iter().for_each(|value| self.f32(*value));
    }

    /// The whole file's content.
    pub(crate) fn seal(self, kind: u16, version: u16) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len() + TRAILER);
        bytes.extend(MAGIC);
        bytes.extend(version.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend((self.body.len() as u32).to_le_bytes());
        bytes.extend(self.body);
        let checksum = crc32(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

/// Reads the body.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Checks everything around the body.
    pub(crate) fn open(bytes: &'a [u8], kind: u16, version: u16) -> Result<Self, Damaged> {
        let (all, checksum) = bytes.split_last_chunk::<TRAILER>().ok_or(Damaged::Shape)?;
        let header: &[u8; HEADER] = all.first_chunk().ok_or(Damaged::Shape)?;
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if header[..4] != MAGIC || all.len() - HEADER != length as usize {
            return Err(Damaged::Shape);
        }
        if crc32(all) != u32::from_le_bytes(*checksum) {
            return Err(Damaged::Checksum);
        }
        if header[4..6] != version.to_le_bytes() || header[6..8] != kind.to_le_bytes() {
            return Err(Damaged::Version);
        }
        Ok(Self { rest: &all[HEADER..] })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Damaged::Shape)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Damaged> {
        Ok(self.take::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Damaged> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Damaged> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(crate) fn f32(&mut self) -> Result<f32, Damaged> {
        Ok(f32::from_le_bytes(self.take()?))
    }

    pub(crate) fn finite_f32(&mut self) -> Result<f32, Damaged> {
        let value = self.f32()?;
        if value.is_finite() { Ok(value) } else { Err(Damaged::Value) }
    }

    /// A length of at most `most`.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, Damaged> {
        let count = self.u32()? as usize;
        if count <= most { Ok(count) } else { Err(Damaged::Value) }
    }

    pub(crate) fn f32s(&mut self, most: usize) -> Result<Vec<f32>, Damaged> {
        (0..self.count(most)?).map(|_| self.finite_f32()).collect()
    }

    /// Nothing may follow.
    pub(crate) fn end(self) -> Result<(), Damaged> {
        if self.rest.is_empty() { Ok(()) } else { Err(Damaged::Shape) }
    }
}

/// CRC-32 as in IEEE 802.3, bit by bit: models are a few hundred kB and written once a minute.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::{Damaged, Reader, Writer, crc32};

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed() {
        let mut writer = Writer::default();
        writer.f32s(&[1.0, 2.5]);
        let bytes = writer.seal(1, 2);
        let read = |bytes: &[u8]| {
            let mut reader = Reader::open(bytes, 1, 2)?;
            let values = reader.f32s(8)?;
            reader.end().map(|()| values)
        };
        assert_eq!(read(&bytes), Ok(vec![1.0, 2.5]));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Reader::open(&bytes, 1, 3).err(), Some(Damaged::Version));
    }
}
