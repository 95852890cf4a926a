//! The states of a client's connection, for all to observe.

use crate::error::Mismatch;

/// What a client's connection is doing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// It is trying to reach a server.
    Connecting {
        /// The server, once one is chosen.
        endpoint: Option<String>,
    },
    /// It is connected, and the cache is being filled or brought up to date.
    Synchronising {
        /// The server.
        endpoint: String,
    },
    /// The cache follows the server.
    Live {
        /// The server.
        endpoint: String,
        /// What was asked for and is not there.
        missing: Vec<Mismatch>,
    },
    /// Every endpoint was tried; the next round comes after a pause.
    Waiting {
        /// Why the last attempt failed, or the connection ended.
        reason: String,
        /// The pause, in milliseconds.
        pause_ms: u64,
    },
    /// The server's schema does not fit what was asked for as required.
    Unfit {
        /// Everything that does not fit.
        mismatches: Vec<Mismatch>,
    },
    /// The client was closed.
    Closed,
}

impl State {
    /// Whether the cache follows the server.
    pub fn is_live(&self) -> bool {
        matches!(self, State::Live { .. })
    }
}
