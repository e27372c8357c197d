//! Connections within limits: a bound on their number, and times for headers, for answers that no client reads, and for
//! the end of the server.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Connections at the same time; further ones wait until one ends.
    pub most: usize,
    /// Longest time until the header of the next request is read, and so the longest idle time.
    pub header: Duration,
    /// Longest time until a body is read, and the longest time in which a client reads no part of its answer.
    pub body: Duration,
    /// Longest time until the server ends once it is stopped; what is left then is cut off.
    pub stop: Duration,
}

/// Local address of a connection, as an extension of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalAddress(pub(super) IpAddr);

/// Serves connections until `stopped` resolves, then finishes the answers that are being computed.
pub(super) async fn connections(
    listener: TcpListener,
    router: Router,
    limits: &ConnectionLimits,
    stopped: impl Future<Output = ()>,
) {
    let free = Arc::new(Semaphore::new(limits.most));
    let graceful = GracefulShutdown::new();
    let mut serving = JoinSet::new();
    let mut stopped = pin!(stopped);
    loop {
        let next = async {
            let place = free.clone().acquire_owned().await;
            (place, accepted(&listener).await)
        };
        let (place, (stream, local)) = tokio::select! {
            next = next => next,
            () = &mut stopped => break,
        };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(LocalAddress(local.ip().to_canonical()));
            router.call(request)
        });
        let stream = TokioIo::new(ImpatientStream::new(stream, limits.body));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header)
            .serve_connection(stream, service);
        let connection = graceful.watch(connection);
        serving.spawn(async move {
            // A connection that fails is its client's matter.
            let _ = connection.await;
            drop(place);
        });
        while serving.try_join_next().is_some() {}
    }
    drop(listener);
    // Dropping the rest closes it.
    let _ = timeout(limits.stop, graceful.shutdown()).await;
}

/// Pause after a connection that cannot be accepted: file descriptors become free when others end.
const PAUSE: Duration = Duration::from_millis(200);

/// The next connection with its local address.
async fn accepted(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(stream, _)| stream.local_addr().map(|local| (stream, local))) {
            Ok(accepted) => return accepted,
            Err(fault) if of_one_connection(&fault) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Whether a fault is of a connection that its client ended, and not of the listener.
fn of_one_connection(fault: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    [ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected].contains(&fault.kind())
}

/// A stream that fails where its client reads nothing for a time.
struct ImpatientStream {
    stream: TcpStream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl ImpatientStream {
    fn new(stream: TcpStream, patience: Duration) -> ImpatientStream {
        // Small answers are sent at once.
        let _ = stream.set_nodelay(true);
        ImpatientStream { stream, patience, waiting: None }
    }

    /// The result of a write; a fault once writes have waited too long.
    fn in_time<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for ImpatientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ImpatientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(result, context)
    }
}
