//! A stream that fails when nothing has gone either way for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// See the file's documentation. Somebody must read from it all the time, as HTTP/2 does: that is when the time is looked at.
#[derive(Debug)]
pub(crate) struct IdleTimeout<S> {
    stream: S,
    /// How long the other side has for its first byte.
    first: Duration,
    /// How long nothing may go either way after that.
    idle: Duration,
    has_begun: bool,
    limit: Pin<Box<Sleep>>,
}

impl<S> IdleTimeout<S> {
    pub(crate) fn new(stream: S, first: Duration, idle: Duration) -> Self {
        Self { stream, first, idle, has_begun: false, limit: Box::pin(tokio::time::sleep(first)) }
    }

    /// Something went one way or the other.
    fn progressed(&mut self) {
        let patience = if self.has_begun { self.idle } else { self.first };
        self.limit.as_mut().reset(Instant::now() + patience);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            if buffer.filled().len() > before {
                self.has_begun = true;
                self.progressed();
            }
            return Poll::Ready(result);
        }
        ready!(self.limit.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        // What this side says before it has heard anything gives the other side no more time.
        if self.has_begun {
            self.progressed();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::IdleTimeout;
    use std::io::ErrorKind;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn a_stream_ends_when_nothing_goes_either_way() {
        // The clock of the test jumps to the next timer.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let seconds = Duration::from_secs;
            let (near, mut far) = tokio::io::duplex(64);
            let mut silent = IdleTimeout::new(near, seconds(10), seconds(100));
            silent.write_all(b"hello").await.expect("room");
            let begin = tokio::time::Instant::now();
            assert_eq!(silent.read_u8().await.expect_err("nothing comes").kind(), ErrorKind::TimedOut);
            assert_eq!(begin.elapsed().as_secs(), 10, "writing gives no more time for the first byte");
            far.write_u8(1).await.expect("room");
            let (near, mut far) = tokio::io::duplex(64);
            let mut stream = IdleTimeout::new(near, seconds(10), seconds(100));
            far.write_u8(1).await.expect("room");
            stream.read_u8().await.expect("a byte");
            let begin = tokio::time::Instant::now();
            tokio::time::sleep(seconds(90)).await;
            stream.write_all(b"news").await.expect("room");
            assert_eq!(stream.read_u8().await.expect_err("nothing comes").kind(), ErrorKind::TimedOut);
            assert_eq!(begin.elapsed().as_secs(), 190, "what is written counts");
        });
    }
}
