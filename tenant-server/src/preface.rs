//! The first bytes of a connection. They are read before anything is kept for it: whoever says nothing, or something else
//! than HTTP/2, is gone soon and costs little.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Every HTTP/2 client says this first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose preface was read, and is read again by the server.
#[derive(Debug)]
pub(crate) struct PrefacedStream<S> {
    stream: S,
    /// How much of the preface the server was given.
    given: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> PrefacedStream<S> {
    /// Waits for the preface.
    pub(crate) async fn begin(mut stream: S, patience: Duration) -> io::Result<Self> {
        let mut preface = [0; PREFACE.len()];
        let read = tokio::time::timeout(patience, stream.read_exact(&mut preface)).await;
        read.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it said nothing"))??;
        if preface != *PREFACE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP/2"));
        }
        Ok(Self { stream, given: 0 })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = &PREFACE[self.given..];
        if left.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..count]);
        self.given += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefacedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::{PREFACE, PrefacedStream};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn what_is_not_http_2_ends_at_once_and_the_rest_is_read_whole() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let begun = |bytes: &'static [u8]| async {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            theirs.write_all(bytes).await.expect("room");
            let (_, mut begun) = (theirs.shutdown().await, PrefacedStream::begin(ours, Duration::from_secs(60)).await?);
            let mut read = Vec::new();
            begun.read_to_end(&mut read).await.map(|_| read)
        };
        runtime.block_on(async {
            let whole = [PREFACE.as_slice(), b"frames"].concat();
            assert_eq!(begun(whole.leak()).await.expect("a client"), [PREFACE.as_slice(), b"frames"].concat());
            let error = begun(b"GET / HTTP/1.1\r\nHost: minervad\r\n\r\n").await.expect_err("a browser");
            assert_eq!(error.to_string(), "it does not speak HTTP/2");
            assert!(begun(b"PRI").await.is_err());
        });
    }
}
