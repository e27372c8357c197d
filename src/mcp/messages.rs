//! Messages over two streams, one a line, none longer than a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Messages of a client. One that is too long is left out and answered with a fault that names the limit.
pub(super) struct BoundedMessages<R: AsyncRead + Unpin, W: AsyncWrite> {
    messages: AsyncRwTransport<RoleServer, CountedLines<R>, W>,
    most: usize,
    /// One for each line that was too long and is not answered.
    too_long: UnboundedReceiver<()>,
    /// A fault on its way. `receive` may be cancelled at every wait, and goes on with it.
    fault: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl<R, W> BoundedMessages<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(reader: R, writer: W, most: usize) -> BoundedMessages<R, W> {
        let (counted, too_long) = unbounded_channel();
        let reader = CountedLines { reader, most, bytes: 0, too_long: counted };
        // The end of the line counts.
        let messages = AsyncRwTransport::new_server(reader, writer).with_max_line_length(most + 1);
        BoundedMessages { messages, most, too_long, fault: None }
    }

    /// Begins to send a fault that names the limit.
    fn refuse(&mut self) {
        let text = format!("a message of more than {} bytes, the limit; send a shorter one", self.most);
        // Its number is somewhere in what was left out.
        let fault = TxJsonRpcMessage::<RoleServer>::error(ErrorData::invalid_request(text, None), None);
        self.fault = Some(Box::pin(self.messages.send(fault)));
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
            if let Some(fault) = &mut self.fault {
                fault.await.ok()?;
                self.fault = None;
            }
            tokio::select! {
                biased;
                Some(()) = self.too_long.recv() => self.refuse(),
                message = self.messages.receive() => match message {
                    None if self.too_long.try_recv().is_ok() => self.refuse(),
                    message => return message,
                },
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
    too_long: UnboundedSender<()>,
}

impl<R> CountedLines<R> {
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
            // The receiver lives as long as this.
            let _ = self.too_long.send(());
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
