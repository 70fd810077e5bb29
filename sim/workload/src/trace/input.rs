//! Bytes of a trace, decompressed as they come. Memory is bounded: the decoders' windows, and one buffer.

use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the file is packed. Found by its first bytes, whatever its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The .xz container.
    Xz,
}

impl Compression {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        }
    }

    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ => Self::None,
        }
    }
}

/// The stream that formats read.
pub(super) type Input = BufReader<Box<dyn Read + Send>>;

/// Enough for a decoder of lines to find most of them whole, small enough for the processor's cache.
const BUFFER_BYTES: usize = 128 << 10;
/// What detection may look at.
const HEAD_BYTES: u64 = 16 << 10;
/// An .xz stream that wants more memory is refused; `xz -9` wants 65 MiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// A stream, opened: how it is packed, what it begins with, and all of it.
pub(super) struct Opened {
    pub(super) compression: Compression,
    pub(super) head: Vec<u8>,
    pub(super) input: Input,
    /// Bytes taken from the file so far, before decompression.
    pub(super) taken: Arc<AtomicU64>,
}

struct Counted<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Looks at the first bytes of `reader` and unpacks it.
pub(super) fn open(reader: impl Read + Send + 'static) -> std::io::Result<Opened> {
    let taken = Arc::new(AtomicU64::new(0));
    let mut file = Counted { inner: reader, taken: Arc::clone(&taken) };
    let packed = read_head(&mut file, 6)?;
    let compression = Compression::of(&packed);
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(packed).chain(file));
    let mut plain: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(whole)?),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(whole, stream))
        }
    };
    let head = read_head(&mut plain, HEAD_BYTES)?;
    let again: Box<dyn Read + Send> = Box::new(Cursor::new(head.clone()).chain(plain));
    Ok(Opened { compression, head, input: BufReader::with_capacity(BUFFER_BYTES, again), taken })
}

fn read_head(reader: &mut impl Read, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.by_ref().take(bytes).read_to_end(&mut head)?;
    Ok(head)
}
