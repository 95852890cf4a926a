//! The server: its listeners, its connections, and the end of everything.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cowslip_engine::Readers;
use cowslip_ldap::dn::Dn;
use cowslip_ldap::message::Limits as MessageLimits;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_net::listener::Listener;
use cowslip_net::stream::Stream;
use tokio::sync::watch;

use crate::connection;
use crate::model::Directory;
use crate::search::{Limits as SearchLimits, RootDse};
use crate::service::Service;

/// The port that LDAP has.
pub const LDAP_PORT: u16 = 389;

/// What a server can be told.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The name of the user who may do everything; it need not be an entry.
    pub root_dn: String,
    /// That user's password: clear, or hashed in one of the schemes of [`crate::password`]. Without one nobody is root.
    pub root_password: Option<Vec<u8>>,
    /// What a message may hold.
    pub messages: MessageLimits,
    /// What a search of others than root may cost.
    pub search: SearchLimits,
    /// The most connections at once; more are closed when they come.
    pub connections_max: usize,
    /// How many operations of one connection may be open before its requests stay unread.
    pub requests_open_max: usize,
    /// After how long a connection without requests is closed; never if it is zero.
    pub idle: Duration,
    /// After how long a connection is closed whose client does not take what is sent.
    pub write_stall: Duration,
    /// Whether who has not said who it is may read.
    pub anonymous_reads: bool,
    /// Whether an answer to a write waits until it would survive a crash.
    pub is_durable: bool,
}

impl ServerOptions {
    /// The usual limits, and this root.
    pub fn new(root_dn: impl Into<String>, root_password: Option<Vec<u8>>) -> Self {
        Self {
            root_dn: root_dn.into(),
            root_password,
            messages: MessageLimits::default(),
            search: SearchLimits { entries_max: 10_000, time_s: 3600, looked_at_max: 0 },
            connections_max: 10_000,
            requests_open_max: cowslip_ldap::session::REQUESTS_OPEN_MAX,
            idle: Duration::ZERO,
            write_stall: Duration::from_secs(60),
            anonymous_reads: true,
            is_durable: true,
        }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    pub(crate) readers: Readers<Directory>,
    pub(crate) options: ServerOptions,
    pub(crate) root_dn: Dn,
    pub(crate) root_dse: RootDse,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    connections: AtomicUsize,
}

/// Why a server does not start, or does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The name of root is none.
    #[error("the root's name: {0}")]
    RootDn(#[from] cowslip_ldap::dn::DnError),
    /// A text that does not say where to listen.
    #[error("\"{text}\": {reason}; use ldap://HOST:PORT or ldapi://%2Fpath%2Fto%2Fsocket")]
    Address {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A socket could not be had.
    #[error("{what}: {source}")]
    Io {
        /// For what.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// A running server. Clones share it; dropping it does not stop it.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server without listeners.
    ///
    /// # Errors
    /// The root's name is none.
    pub fn start(service: Service, options: ServerOptions) -> Result<Self, ServerError> {
        let root_dn = Dn::parse(options.root_dn.as_bytes())?;
        let shared = Shared {
            readers: service.pipeline().publication().readers(),
            service,
            options,
            root_dn,
            root_dse: RootDse::default(),
            stopping: watch::Sender::new(false),
            connections: AtomicUsize::new(0),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The directory that is served.
    pub fn service(&self) -> &Service {
        &self.shared.service
    }

    /// Listens where a URL says, and says where that is, with the port that was chosen if it is 0. Must be called within
    /// a tokio runtime.
    ///
    /// # Errors
    /// The URL is none, or the socket cannot be had.
    pub async fn listen(&self, url: &str) -> Result<Endpoint, ServerError> {
        let endpoint = endpoint_of(url)?;
        let bound = Listener::bind(&endpoint).await;
        let listener = bound.map_err(|source| ServerError::Io { what: url.to_owned(), source })?;
        let Remote::Listen(endpoint) = listener.remote().clone() else {
            return Err(ServerError::Address {
                text: url.to_owned(),
                reason: "not a place to listen".to_owned(),
            });
        };
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move { accept(listener, shared).await });
        Ok(endpoint)
    }

    /// Serves one connection.
    pub fn serve(&self, stream: Stream, peer: String) {
        serve(Arc::clone(&self.shared), stream, peer);
    }

    /// Ends all connections with a notice, waits for them for a moment, and shuts the directory down.
    ///
    /// # Errors
    /// The last sync of the journal failed.
    pub async fn stop(&self) -> io::Result<()> {
        const DRAIN_MS: u64 = 2_000;
        const LOOK_MS: u64 = 5;
        self.shared.stopping.send_replace(true);
        for _ in 0..DRAIN_MS / LOOK_MS {
            if self.shared.connections.load(Ordering::Acquire) == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        }
        let service = self.shared.service.clone();
        let ended = tokio::task::spawn_blocking(move || service.shutdown()).await;
        ended.unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }
}

/// Where a URL says to listen: `ldap://HOST:PORT`, or `ldapi://` and the path of a socket with its slashes escaped.
///
/// # Errors
/// It says no such place.
pub fn endpoint_of(url: &str) -> Result<Endpoint, ServerError> {
    let refused = |reason: &str| ServerError::Address { text: url.to_owned(), reason: reason.to_owned() };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("no URL"))?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    match scheme.to_ascii_lowercase().as_str() {
        "ldap" => {
            let remote = format!("ptcp:{}", port_then_host(rest));
            match remote.parse() {
                Ok(Remote::Listen(endpoint)) => Ok(endpoint),
                _ => Err(refused("not a host and a port")),
            }
        }
        "ldapi" => {
            let path = unescaped(rest)
                .filter(|path| !path.is_empty())
                .ok_or_else(|| refused("no path of a socket"))?;
            Ok(Endpoint::Unix(PathBuf::from(path)))
        }
        "ldaps" => Err(refused("TLS is not there yet")),
        _ => Err(refused("not a scheme of LDAP")),
    }
}

/// `PORT:HOST` of `HOST:PORT`, as the other protocol's addresses have it.
fn port_then_host(text: &str) -> String {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.to_owned()),
        _ => (text, LDAP_PORT.to_string()),
    };
    if host.is_empty() { port } else { format!("{port}:{host}") }
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    const PAUSE_MS: u64 = 100;
    let mut stopping = shared.stopping.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => serve(Arc::clone(&shared), stream, peer),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
            }
        }
    }
}

fn serve(shared: Arc<Shared>, stream: Stream, peer: String) {
    let others = shared.connections.fetch_add(1, Ordering::AcqRel);
    if others >= shared.options.connections_max {
        shared.connections.fetch_sub(1, Ordering::AcqRel);
        tracing::warn!(peer, "too many connections: closed");
        return;
    }
    tokio::spawn(async move {
        let counted = Counted(Arc::clone(&shared));
        connection::run(stream, shared, &peer).await;
        drop(counted);
    });
}

/// A connection that counts until it is dropped, however it ends.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |url: &str, want: &str| {
            let got = endpoint_of(url)
                .map_or_else(|error| format!("error: {error}"), |endpoint| endpoint.to_string());
            assert!(got.starts_with(want), "{url}: {got}");
        };
        check("ldap://127.0.0.1:1389", "tcp:127.0.0.1:1389");
        check("ldap://[::1]:0/", "tcp:[::1]:0");
        check("ldap://localhost", "tcp:localhost:389");
        check("ldapi://%2Frun%2Fldapi", "unix:/run/ldapi");
        check("ldaps://x", "error: \"ldaps://x\": TLS");
        check("ldapi://", "error:");
        check("x", "error:");
    }
}
