//! What the clients of one connection share, and how the messages of each are told apart.
//!
//! A connection serves one client per database that is wanted over it. The first is *place* 0, and a place is never given
//! again. Identifiers of place 0 travel as they are, those of others with the place in front (`2/dump-1`). Invariant: once
//! the connection is closed nobody joins it, so the driver can end without leaving anybody behind.

use crate::error::ClientError;
use crate::locks::Locks;
use crate::options::Options;
use crate::shared::Shared;
use cowslip_net::address::Endpoint;
use cowslip_net::connector::Connector;
use cowslip_net::tls::TlsClient;
use cowslip_ovsdb::json::{Json, write_str};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most clients on one connection.
pub const DATABASES_MAX: usize = 64;

/// What the clients of a connection share.
pub(crate) struct Connection {
    /// Of these, those that are about connecting count; the others are each client's own.
    pub(crate) options: Options,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) connector: Connector,
    pub(crate) locks: Arc<Locks>,
    /// Wakes the driver.
    pub(crate) wake: Arc<Notify>,
    members: Mutex<Members>,
    /// Whether anybody waits in `joined`, so that the driver takes that lock for nobody else.
    has_joined: AtomicBool,
}

#[derive(Default)]
struct Members {
    /// Those that the driver has not seen yet.
    joined: Vec<Arc<Shared>>,
    count: usize,
    next_place: u32,
    is_closed: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Connection {
    /// # Errors
    /// No endpoint, or the TLS files are missing where they are needed, or do not work.
    pub(crate) fn new(options: Options, endpoints: Vec<Endpoint>) -> Result<Self, ClientError> {
        if endpoints.is_empty() {
            return Err(ClientError::NoEndpoint);
        }
        let tls = options.tls.clone().map(TlsClient::new).transpose()?.map(Arc::new);
        let is_tls = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tls { .. });
        if let (None, Some(endpoint)) = (&tls, endpoints.iter().find(is_tls)) {
            let reason = "the TLS settings are missing (ClientBuilder::tls)".to_string();
            return Err(ClientError::Endpoint { endpoint: endpoint.to_string(), reason });
        }
        Ok(Connection {
            connector: Connector::new(options.tcp, tls),
            options,
            endpoints,
            locks: Arc::default(),
            wake: Arc::default(),
            members: Mutex::default(),
            has_joined: AtomicBool::new(false),
        })
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a client join, which is made for the place that it gets.
    ///
    /// # Errors
    /// The connection is closed, or has as many clients as it may have.
    pub(crate) fn join(&self, make: impl FnOnce(u32) -> Shared) -> Result<Arc<Shared>, ClientError> {
        let mut members = self.members();
        if members.is_closed {
            return Err(ClientError::Closed);
        }
        if members.count >= DATABASES_MAX {
            return Err(ClientError::Databases { limit: DATABASES_MAX });
        }
        let shared = Arc::new(make(members.next_place));
        members.next_place += 1;
        members.count += 1;
        members.joined.push(shared.clone());
        self.has_joined.store(true, Ordering::Release);
        drop(members);
        self.wake.notify_one();
        Ok(shared)
    }

    /// Those that have joined since this was last asked.
    pub(crate) fn joined(&self) -> Vec<Arc<Shared>> {
        match self.has_joined() {
            false => Vec::new(),
            true => {
                let mut members = self.members();
                self.has_joined.store(false, Ordering::Release);
                std::mem::take(&mut members.joined)
            }
        }
    }

    pub(crate) fn has_joined(&self) -> bool {
        self.has_joined.load(Ordering::Acquire)
    }

    /// One has left. Once the last has, the connection is closed for good.
    pub(crate) fn leave(&self) {
        let mut members = self.members();
        members.count -= 1;
        members.is_closed |= members.count == 0;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.members().is_closed
    }
}

/// What an identifier says within its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// A transaction's or a monitor's number.
    Number(u64),
    Text(&'a str),
}

/// Finds whose an identifier is; none, if it is nobody's.
pub(crate) fn route<'a>(id: &'a Json<'_>) -> Option<(u32, Name<'a>)> {
    match id {
        Json::Int(number) => Some((0, Name::Number(u64::try_from(*number).ok()?))),
        Json::Str(text) => {
            let placed = text.split_once('/').and_then(|(place, rest)| Some((place.parse().ok()?, rest)));
            // A lock's name may have a slash in it, but follows a word.
            let (place, rest) = placed.unwrap_or((0, text.as_ref()));
            let name = match place != 0 {
                true => rest.parse().map_or(Name::Text(rest), Name::Number),
                false => Name::Text(rest),
            };
            Some((place, name))
        }
        _ => None,
    }
}

/// Writes an identifier of a place.
pub(crate) fn write_name(out: &mut String, place: u32, name: Name<'_>) {
    match (place, name) {
        (0, Name::Number(number)) => out.push_str(&number.to_string()),
        (0, Name::Text(text)) => write_str(out, text),
        (_, Name::Number(number)) => write_str(out, &format!("{place}/{number}")),
        (_, Name::Text(text)) => write_str(out, &format!("{place}/{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back_to_their_place() {
        let names =
            [Name::Number(0), Name::Number(u64::MAX >> 1), Name::Text("dump-3"), Name::Text("lock-1/2")];
        for place in [0, 1, 7, u32::MAX] {
            for name in names {
                let mut text = String::new();
                write_name(&mut text, place, name);
                let json = Json::parse(text.as_bytes()).expect("what is written is JSON");
                assert_eq!(route(&json), Some((place, name)), "{text}");
            }
        }
        assert_eq!(route(&Json::Null), None);
        assert_eq!(route(&Json::Int(-1)), None);
    }
}
