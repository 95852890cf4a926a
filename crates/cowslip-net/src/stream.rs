//! A connection, whatever carries it.

use crate::address::Endpoint;
use crate::connector::{ConnectError, Connector};
use crate::tls::TlsStream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// Within the machine.
    Unix(UnixStream),
    /// Over TCP, with small messages sent at once.
    Tcp(TcpStream),
    /// Over TLS on TCP. What is written is on its way only when it is flushed, and the stream should be shut down at its
    /// end, so that the other end knows that nothing was cut off.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Connects to a `unix:` or `tcp:` endpoint with the default settings; see [`Connector`] for others.
    ///
    /// # Errors
    /// The system's; or the endpoint needs TLS.
    pub async fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        Connector::default().connect(endpoint).await.map_err(|error| match error {
            ConnectError::Io(error) => error,
            other => io::Error::new(io::ErrorKind::Unsupported, other),
        })
    }

    /// Whether written bytes may stay behind until the stream is flushed.
    pub fn needs_flush(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Whether both ends are on one machine by construction, so that a dead peer closes the connection.
    pub fn is_local(&self) -> bool {
        matches!(self, Stream::Unix(_))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Unix(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tcp(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Unix(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tcp(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Unix(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Stream::Tcp(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Unix(s) => s.is_write_vectored(),
            Stream::Tcp(s) => s.is_write_vectored(),
            Stream::Tls(s) => s.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Unix(s) => Pin::new(s).poll_flush(cx),
            Stream::Tcp(s) => Pin::new(s).poll_flush(cx),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Unix(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tcp(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s.as_mut()).poll_shutdown(cx),
        }
    }
}
