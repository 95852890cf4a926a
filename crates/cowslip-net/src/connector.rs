//! Connects to endpoints of every kind, with one set of settings.

use crate::address::Endpoint;
use crate::stream::Stream;
use crate::tcp::TcpOptions;
use crate::tls::{TlsClient, reason};
use std::io;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixStream};

/// Why an endpoint was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The system's reason: nobody listens, no route, no such host.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The two ends did not agree on a TLS connection; the source is the library's own error.
    #[error("{reason}")]
    Tls {
        /// Whose fault it is, and why.
        reason: String,
        /// The error as it came.
        source: io::Error,
    },
    /// An `ssl:` endpoint, and no settings for TLS.
    #[error("ssl: needs a CA certificate, and mostly a private key and a certificate")]
    NoTls,
}

/// Connects to endpoints.
#[derive(Clone, Debug, Default)]
pub struct Connector {
    tcp: TcpOptions,
    tls: Option<Arc<TlsClient>>,
}

impl Connector {
    /// Connects with these settings; without `tls`, to `unix:` and `tcp:` endpoints only.
    pub fn new(tcp: TcpOptions, tls: Option<Arc<TlsClient>>) -> Self {
        Connector { tcp, tls }
    }

    /// The client's end of TLS, if there is one.
    pub fn tls(&self) -> Option<&Arc<TlsClient>> {
        self.tls.as_ref()
    }

    /// Connects. There is no time limit here; dropping the future gives up.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Stream, ConnectError> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
            Endpoint::Tcp { host, port } => Ok(Stream::Tcp(self.tcp(host, *port).await?)),
            Endpoint::Tls { host, port } => {
                // Before the socket, so that a server is not bothered in vain.
                let tls = self.tls.as_ref().ok_or(ConnectError::NoTls)?;
                let stream = self.tcp(host, *port).await?;
                let stream = tls.connect(stream, host).await;
                let stream =
                    stream.map_err(|source| ConnectError::Tls { reason: reason(&source), source })?;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }

    async fn tcp(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((host, port)).await?;
        self.tcp.apply(&stream)?;
        Ok(stream)
    }
}
