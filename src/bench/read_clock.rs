//! The time at which bytes of an answer were read from its connection, before the tasks of the client pass them on.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When a connection was read last. Many streams at once leave an answer's task waiting for its turn; this time does not
/// contain that wait.
#[derive(Clone, Debug)]
pub(super) struct ReadClock {
    opened: Instant,
    /// Nanoseconds from `opened` to the last read.
    read_ns: Arc<AtomicU64>,
}

impl ReadClock {
    pub(super) fn start() -> ReadClock {
        ReadClock { opened: Instant::now(), read_ns: Arc::default() }
    }

    /// The time of the last read.
    pub(super) fn last(&self) -> Instant {
        self.opened + Duration::from_nanos(self.read_ns.load(Relaxed))
    }

    fn mark(&self) {
        self.read_ns.store(self.opened.elapsed().as_nanos() as u64, Relaxed);
    }
}

/// A connection whose reads are timed.
#[derive(Debug)]
pub(super) struct TimedStream<S> {
    pub(super) stream: S,
    pub(super) clock: ReadClock,
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.clock.mark();
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }
}
