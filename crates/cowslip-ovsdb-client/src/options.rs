//! What a client can be told before it connects.

use crate::error::ClientError;
use crate::plan::{Index, Monitor};
use crate::validation::Validation;
use cowslip_engine::{HISTORY_BYTES_MAX_DEFAULT, Uuid};
use cowslip_net::address::{AddressError, Endpoint};
use cowslip_net::tcp::TcpOptions;
use cowslip_net::tls::TlsOptions;
use cowslip_ovsdb::framing::MESSAGE_BYTES_MAX;
use std::time::Duration;

/// The most transactions of one client that may wait for their replies; more wait before they are sent.
pub const IN_FLIGHT_MAX_DEFAULT: usize = 4096;

/// The most bytes of updates that are kept while a monitor's first dump is due.
pub const EARLY_UPDATES_MAX: usize = 10_000;

/// Settings of a client.
///
/// Clients that share a connection ([`Client::database`](crate::Client::database)) have the settings of the connection
/// from the first of them: those from [`shuffle`](Self::shuffle) to [`message_bytes_max`](Self::message_bytes_max), except
/// for the back-off that each of them observes when its database is not there.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database's name.
    pub database: String,
    /// Whether only the leader of a cluster will do.
    pub leader_only: bool,
    /// The cluster that the server must belong to.
    pub cluster: Option<Uuid>,
    /// A server whose log is not this far is refused; grows with what was seen.
    pub min_index: Option<i64>,
    /// How long [`connect`](crate::ClientBuilder::connect) waits for a synchronised cache; for ever if there is none.
    pub ready_within: Option<Duration>,
    /// How long a transaction may take, from the call to the reply; for ever if there is none, the default, since the
    /// connection's own limits tell a dead server from a slow one. It does not concern dumps.
    pub request_timeout: Option<Duration>,
    /// Whether the endpoints are tried in a random order.
    pub shuffle: bool,
    /// What TLS needs; without it, `ssl:` endpoints are refused. See [`ClientBuilder::tls`](crate::ClientBuilder::tls).
    pub tls: Option<TlsOptions>,
    /// Keep-alive and user time-out of `tcp:` and `ssl:` connections.
    pub tcp: TcpOptions,
    /// How long a server may take to accept the connection, TLS included, and to answer the first requests.
    pub connect_timeout: Duration,
    /// How long a server may be silent while a dump is due. A dump that arrives piece by piece may take any time.
    pub dump_silence: Duration,
    /// After how much silence the server is asked whether it lives; as much silence again ends the connection. Zero
    /// never asks.
    pub probe_interval: Duration,
    /// The pause after the first failed round through the endpoints; it doubles with each.
    pub backoff_min: Duration,
    /// The longest such pause.
    pub backoff_max: Duration,
    /// The largest message taken from the server, in bytes.
    pub message_bytes_max: usize,
    /// How much of the past is kept for slow readers of events, in bytes.
    pub history_bytes_max: usize,
    /// The most transactions that may wait for their replies.
    pub in_flight_max: usize,
    /// Which transactions are validated, unless they say otherwise.
    pub validation: Validation,
    /// Whether transactions are sent one at a time, unless they say otherwise.
    pub serialized: bool,
    pub(crate) monitor: Monitor,
    pub(crate) indexes: Vec<Index>,
}

impl Options {
    /// The same for another database: with its own content and indexes, which are none yet, and no place in a log.
    pub(crate) fn for_database(&self, database: &str) -> Self {
        Options {
            database: database.to_string(),
            cluster: None,
            min_index: None,
            monitor: Monitor::nothing(),
            indexes: Vec::new(),
            ..self.clone()
        }
    }

    pub(crate) fn new(database: &str) -> Self {
        Options {
            database: database.to_string(),
            shuffle: false,
            tls: None,
            tcp: TcpOptions::default(),
            request_timeout: None,
            leader_only: false,
            cluster: None,
            min_index: None,
            connect_timeout: Duration::from_secs(5),
            dump_silence: Duration::from_secs(120),
            probe_interval: Duration::from_secs(5),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(8),
            ready_within: Some(Duration::from_secs(60)),
            message_bytes_max: MESSAGE_BYTES_MAX,
            history_bytes_max: HISTORY_BYTES_MAX_DEFAULT,
            in_flight_max: IN_FLIGHT_MAX_DEFAULT,
            validation: Validation::default(),
            serialized: false,
            monitor: Monitor::nothing(),
            indexes: Vec::new(),
        }
    }
}

/// Takes an endpoint from its text.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, ClientError> {
    let refuse = |reason: String| ClientError::Endpoint { endpoint: text.to_string(), reason };
    if ["punix:", "ptcp:", "pssl:"].iter().any(|method| text.starts_with(method)) {
        return Err(refuse("a client connects; use unix:, tcp: or ssl:".to_string()));
    }
    text.parse().map_err(|error: AddressError| refuse(error.to_string()))
}
