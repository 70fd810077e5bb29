//! What the Parquet library reads from, guarded: in 60.1 it goes on reading behind the end of a damaged file for as many
//! elements as a list in it pretends to have, billions of them.

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::Read;

/// A file, or bytes in memory.
pub(super) struct Source<C>(pub(super) C);

/// Says once that there is nothing more, and then fails.
pub(super) struct EndsOnce<R> {
    inner: R,
    ended: bool,
}

impl<R: Read> Read for EndsOnce<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            if self.ended {
                return Err(std::io::Error::other("it points behind its own end"));
            }
            self.ended = true;
        }
        Ok(count)
    }
}

impl<C: Length> Length for Source<C> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<C: ChunkReader> ChunkReader for Source<C> {
    type T = EndsOnce<C::T>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(EndsOnce { inner: self.0.get_read(start)?, ended: false })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}
