//! One request: sent, and its answer read chunk by chunk, each with its time.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::protocol::ProtocolEntry;
use super::read_clock::{ReadClock, TimedStream};
use super::tls::TrustedRoots;
use crate::spec::error::Error;

/// A server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    host: String,
    port: u16,
    /// Before the paths of its interface.
    path: String,
    /// The bearer token that requests carry.
    token: Option<String>,
    /// The authorities that are trusted, where requests are encrypted.
    trusted: Option<TrustedRoots>,
}

/// The part of OpenAI's addresses that the paths of the interface have too.
const VERSION: &str = "/v1";

impl Endpoint {
    /// Reads the address of a server.
    ///
    /// # Errors
    /// It is no address of HTTP.
    pub fn parse(text: &str, token: Option<String>) -> Result<Endpoint, Error> {
        let fault = |found: &str| {
            let fix = "write e.g. `--endpoint http://127.0.0.1:8000`";
            let expected = "an address that begins with http:// or https://";
            Error::new("endpoint", format!("`{text}`{found}"), expected, fix)
        };
        let uri: Uri = text.trim().parse().map_err(|_| fault(""))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Some((80, None)),
            Some("https") => Some((443, Some(TrustedRoots::with(None)?))),
            _ => None,
        };
        match (scheme, uri.host()) {
            (Some((port, trusted)), Some(host))
                if !uri.authority().is_some_and(|all| all.as_str().contains('@')) =>
            {
                let path = uri.path().trim_end_matches('/');
                let path = path.strip_suffix(VERSION).unwrap_or(path).to_owned();
                let host = host.trim_matches(['[', ']']).to_owned();
                Ok(Endpoint { host, port: uri.port_u16().unwrap_or(port), path, token, trusted })
            }
            (Some(_), Some(_)) => Err(fault(", with a user")),
            _ => Err(fault("")),
        }
    }

    /// The same server, where the certificates of `pem` are trusted in addition.
    ///
    /// # Errors
    /// The text has no certificate, or requests are not encrypted.
    pub fn trusting(self, pem: &str) -> Result<Endpoint, Error> {
        if self.trusted.is_none() {
            let fix = "omit it, or write https:// in the address";
            return Err(Error::new("ca-file", "an address with http://", "one with https://", fix));
        }
        Ok(Endpoint { trusted: Some(TrustedRoots::with(Some(pem))?), ..self })
    }

    /// Whether its server is on this machine, as far as a loopback address says so.
    pub(super) fn is_this_machine(&self) -> bool {
        let loopback = |address: IpAddr| address.is_loopback();
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(loopback)
    }

    fn request(&self, method: &str, path: &str, body: String) -> Result<Request<String>, hyper::http::Error> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.path))
            .header("host", format!("{host}:{}", self.port))
            .header("accept", "*/*");
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.body(body)
    }

    async fn connected(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.trusted {
            Some(trusted) => Connection::over(trusted.encrypted(&self.host, stream).await?).await,
            None => Connection::over(stream).await,
        }
    }

    /// The answer to a short request without a stream: its status and text.
    ///
    /// # Errors
    /// The server cannot be reached, or does not answer in time.
    pub(super) async fn answered(&self, path: &str, within: Duration) -> io::Result<(u16, String)> {
        let work = async {
            let mut connection = self.connected().await?;
            let request = self.request("GET", path, String::new()).map_err(io::Error::other)?;
            let response = connection.sender.send_request(request).await.map_err(io::Error::other)?;
            let (status, mut body) = (response.status().as_u16(), response.into_body());
            let mut text = Vec::new();
            while let Some(piece) = next_piece(&mut body).await {
                text.extend_from_slice(&piece.map_err(io::Error::other)?);
                if text.len() > MOST_ANSWER {
                    return Err(io::Error::other("a longer answer than expected"));
                }
            }
            Ok((status, String::from_utf8_lossy(&text).into_owned()))
        };
        tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<String>,
    clock: ReadClock,
}

impl Connection {
    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<Connection> {
        let clock = ReadClock::start();
        let stream = TimedStream { stream, clock: clock.clone() };
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Its fault is that of the request that it carries.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Connection { sender, clock })
    }
}

/// Bytes of a short answer, or of a line of a long one, at most.
const MOST_ANSWER: usize = 16 << 20;

/// How a request ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ExchangeEnd {
    Answered,
    /// The run was over first.
    #[default]
    Stopped,
    TimedOut,
    /// By this reason.
    Failed(String),
}

/// The beginning of the reason of a request for which no connection was made.
const UNCONNECTED: &str = "connection";
/// Reasons of requests whose connection ended before their answer did.
const NO_ANSWER: &str = "no answer";
const BROKEN_OFF: &str = "the stream broke off";
/// The reason of a request that the end of its run cut off.
pub(super) const STOPPED: &str = "stopped";

/// Whether a request with this reason found no server.
pub(super) fn is_unconnected(reason: &str) -> bool {
    reason.starts_with(UNCONNECTED)
}

/// Whether a request with this reason found no server, or lost it.
pub(super) fn is_of_connection(reason: &str) -> bool {
    is_unconnected(reason) || [NO_ANSWER, BROKEN_OFF].contains(&reason)
}

/// The reason of a request for which no connection was made, without a name or an address.
pub(super) fn unconnected(fault: &io::Error) -> String {
    format!("{UNCONNECTED}: {}", fault.kind())
}

impl ExchangeEnd {
    /// Whether the request found no server.
    pub(super) fn is_unconnected(&self) -> bool {
        matches!(self, ExchangeEnd::Failed(reason) if is_unconnected(reason))
    }
}

/// A request and its answer. Times are seconds from the start of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchange {
    /// Its place in the order of requests.
    pub(super) number: u64,
    /// When it was to be sent: latencies count from here.
    pub(super) scheduled_s: f64,
    pub(super) sent_s: f64,
    /// Times of the chunks with text.
    pub(super) chunks_s: Vec<f64>,
    pub(super) ended_s: f64,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) end: ExchangeEnd,
}

/// Work of the client over a run.
#[derive(Debug, Default)]
pub(super) struct ClientTally {
    pub(super) chunks: AtomicU64,
    /// Nanoseconds from the arrival of a piece until it was read, in sum.
    pub(super) reading_ns: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// The settings and counters of all requests of a run.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) protocol: &'static ProtocolEntry,
    /// The start of the run.
    pub(super) begun: Instant,
    /// Longest time of a request.
    pub(super) timeout: Duration,
    /// Becomes true when the run is over.
    pub(super) stop: watch::Receiver<bool>,
    pub(super) tally: Arc<ClientTally>,
}

/// A connection between requests.
pub(super) type KeptConnection = Option<Connection>;

impl RunContext {
    pub(super) fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Sends a request whose time has come, and reads its answer.
    pub(super) async fn exchange(
        &self,
        kept: &mut KeptConnection,
        (number, scheduled_s): (u64, f64),
        body: String,
    ) -> Exchange {
        let mut exchange = Exchange { number, scheduled_s, sent_s: self.now_s(), ..Exchange::default() };
        let mut stop = self.stop.clone();
        let deadline = self.begun + Duration::from_secs_f64(scheduled_s) + self.timeout;
        let end = {
            let work = self.answer(kept, &mut exchange, body);
            tokio::pin!(work);
            tokio::select! {
                biased;
                end = &mut work => end,
                _ = stop.wait_for(|stopped| *stopped) => ExchangeEnd::Stopped,
                () = tokio::time::sleep_until(deadline.into()) => ExchangeEnd::TimedOut,
            }
        };
        if end != ExchangeEnd::Answered {
            // The server ends a request whose connection is closed.
            *kept = None;
        }
        Exchange { ended_s: self.now_s(), end, ..exchange }
    }

    async fn answer(&self, kept: &mut KeptConnection, exchange: &mut Exchange, body: String) -> ExchangeEnd {
        let (response, clock) = match self.sent(kept, body).await {
            Ok(sent) => sent,
            Err(reason) => return ExchangeEnd::Failed(reason),
        };
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            return ExchangeEnd::Failed(format!("status {}", status.as_u16()));
        }
        let (mut rest, mut faulty) = (Vec::new(), false);
        while let Some(piece) = next_piece(&mut body).await {
            let arrived = clock.last();
            let Ok(piece) = piece else { return ExchangeEnd::Failed(BROKEN_OFF.to_owned()) };
            let at_s = (arrived - self.begun).as_secs_f64();
            rest.extend_from_slice(&piece);
            let mut from = 0;
            while let Some(length) = rest[from..].iter().position(|byte| *byte == b'\n') {
                faulty |= self.line(exchange, &rest[from..from + length], at_s);
                from += length + 1;
            }
            rest.drain(..from);
            if rest.len() > MOST_ANSWER {
                return ExchangeEnd::Failed("a line without end".to_owned());
            }
            self.tally.reading_ns.fetch_add(arrived.elapsed().as_nanos() as u64, Relaxed);
        }
        faulty |= self.line(exchange, &rest, self.now_s());
        match (faulty, exchange.chunks_s.is_empty()) {
            (true, _) => ExchangeEnd::Failed("a fault in the stream".to_owned()),
            (false, true) => ExchangeEnd::Failed("no text".to_owned()),
            (false, false) => ExchangeEnd::Answered,
        }
    }

    /// Sends the request, on the kept connection if it is still open; a server may close it at any time between requests.
    async fn sent(
        &self,
        kept: &mut KeptConnection,
        body: String,
    ) -> Result<(Response<Incoming>, ReadClock), String> {
        let path = self.protocol.path;
        let made =
            |body: String| self.endpoint.request("POST", path, body).map_err(|fault| fault.to_string());
        if let Some(Connection { sender, clock }) = kept.as_mut()
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(made(body.clone())?).await {
                Ok(response) => return Ok((response, clock.clone())),
                // Without a byte of an answer the server did not take it.
                Err(fault) if fault.message().is_some() || fault.error().is_incomplete_message() => {}
                Err(_) => return Err(NO_ANSWER.to_owned()),
            }
        }
        let connected = self.endpoint.connected().await;
        self.tally.connections.fetch_add(1, Relaxed);
        let Connection { sender, clock } = kept.insert(connected.map_err(|fault| unconnected(&fault))?);
        let response = sender.send_request(made(body)?).await.map_err(|_| NO_ANSWER.to_owned())?;
        Ok((response, clock.clone()))
    }

    /// Reads a line that came at `at_s`; whether it reports a fault.
    fn line(&self, exchange: &mut Exchange, line: &[u8], at_s: f64) -> bool {
        let Some(chunk) = self.protocol.chunk(line) else { return false };
        if chunk.text {
            exchange.chunks_s.push(at_s);
            self.tally.chunks.fetch_add(1, Relaxed);
        }
        exchange.prompt_tokens = chunk.prompt_tokens.or(exchange.prompt_tokens);
        exchange.output_tokens = chunk.output_tokens.or(exchange.output_tokens);
        exchange.cached_tokens = chunk.cached_tokens.or(exchange.cached_tokens);
        chunk.fault
    }
}

/// The next piece of a body, as it came.
async fn next_piece(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame {
            Ok(frame) => {
                if let Ok(piece) = frame.into_data() {
                    return Some(Ok(piece));
                }
            }
            Err(fault) => return Some(Err(fault)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let read = |text: &str| Endpoint::parse(text, None).map(|it| (it.host, it.port, it.path));
        let of = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(read("http://127.0.0.1:8000"), of("127.0.0.1", 8000, ""));
        assert_eq!(read("http://localhost:8000/v1/"), of("localhost", 8000, ""));
        assert_eq!(read("http://[::1]:80/engine/v1"), of("::1", 80, "/engine"));
        assert_eq!(read("https://x/v1"), of("x", 443, ""));
        for text in ["ftp://x", "127.0.0.1:8000", "http://", "https://u:p@x", "", "http://a b"] {
            let fault = read(text).unwrap_err();
            assert!(
                fault.key == "endpoint" && fault.fix.contains("http://127.0.0.1:8000"),
                "{text}: {fault}"
            );
        }
    }
}
