//! Messages over two streams, one a line, none longer than a limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Messages of a client. One that is too long is left out and answered with a fault that names the limit.
pub(super) struct BoundedMessages<R: AsyncRead + Unpin, W: AsyncWrite> {
    messages: AsyncRwTransport<RoleServer, CountedLines<R>, W>,
    most: usize,
    too_long: Arc<Notify>,
}

impl<R, W> BoundedMessages<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Messages of at most `most` bytes.
    pub(super) fn new(reader: R, writer: W, most: usize) -> BoundedMessages<R, W> {
        let too_long = Arc::new(Notify::new());
        let reader = CountedLines { reader, most, bytes: 0, too_long: too_long.clone() };
        // The end of the line counts.
        let messages = AsyncRwTransport::new_server(reader, writer).with_max_line_length(most + 1);
        BoundedMessages { messages, most, too_long }
    }
}

impl<R, W> Transport<RoleServer> for BoundedMessages<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.messages.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            tokio::select! {
                biased;
                () = self.too_long.notified() => {
                    let text = format!("a message of more than {} bytes, the limit; send a shorter one", self.most);
                    // Its number is somewhere in what was left out.
                    let fault = TxJsonRpcMessage::<RoleServer>::error(ErrorData::invalid_request(text, None), None);
                    self.messages.send(fault).await.ok()?;
                }
                message = self.messages.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.messages.close().await
    }
}

/// A stream that says when a line is too long.
struct CountedLines<R> {
    reader: R,
    most: usize,
    /// Bytes of the line so far.
    bytes: usize,
    too_long: Arc<Notify>,
}

impl<R> CountedLines<R> {
    /// Counts what was read.
    fn count(&mut self, read: &[u8]) {
        let mut lines = read.split(|byte| *byte == b'\n');
        let Some(first) = lines.next() else { return };
        self.add(first.len());
        for line in lines {
            self.bytes = 0;
            self.add(line.len());
        }
    }

    fn add(&mut self, bytes: usize) {
        let before = self.bytes;
        self.bytes = before.saturating_add(bytes);
        if before <= self.most && self.bytes > self.most {
            self.too_long.notify_one();
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CountedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.reader).poll_read(context, buffer);
        self.count(&buffer.filled()[before..]);
        read
    }
}
