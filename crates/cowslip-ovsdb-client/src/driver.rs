//! Chooses whom to connect to, and when to try again.
//!
//! Invariant: whatever happens, the task ends only when all clients of the connection are closed; everything that was in
//! flight on a connection has its answer before the next connection is tried.

use crate::connection::Connection;
use crate::link::Link;
use crate::session::{End, Memory};
use crate::shared::{Shared, Statistics};
use crate::state::State;
use cowslip_engine::Uuid;
use cowslip_net::address::Endpoint;
use cowslip_net::stream::Stream;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};

/// A client, and what outlives a connection of it.
pub(crate) type Member = (Arc<Shared>, Memory);

/// Runs a connection until all of its clients are closed.
pub(crate) async fn run(connection: Arc<Connection>) {
    let mut endpoints = connection.endpoints.clone();
    if connection.options.shuffle {
        // A fresh random UUID per endpoint is a fair shuffle.
        endpoints.sort_by_cached_key(|_| Uuid::new_v4());
    }
    let mut driver = Driver { connection: &connection, members: Vec::new(), was_live: false };
    let mut failures = 0_u32;
    while driver.gather() {
        let mut reason = String::new();
        let mut was_live = false;
        for at in 0..endpoints.len() {
            match driver.attempt(&endpoints[at]).await {
                Ok(End::Closed) => break,
                Ok(End::Lost(why) | End::Unfit(why)) => {
                    tracing::info!(endpoint = %endpoints[at], reason = why, "connection ended");
                    reason = why;
                    was_live = true;
                }
                Ok(End::Mismatch(_)) => reason = "the server's schema does not fit".to_string(),
                Err(why) => {
                    tracing::debug!(endpoint = %endpoints[at], reason = why, "connection failed");
                    reason = why;
                    continue;
                }
            }
            if driver.was_live {
                // The next round begins behind the server that just failed.
                endpoints.rotate_left(at + 1);
                break;
            }
        }
        if !driver.gather() {
            break;
        }
        failures = if std::mem::take(&mut driver.was_live) && was_live { 0 } else { failures + 1 };
        driver.pause(failures, reason).await;
    }
}

struct Driver<'a> {
    connection: &'a Connection,
    members: Vec<Member>,
    was_live: bool,
}

impl Driver<'_> {
    /// Takes in those who joined and lets go of those who are closed; tells whether anybody is left.
    fn gather(&mut self) -> bool {
        let joined = self.connection.joined();
        self.members.extend(joined.into_iter().map(|shared| (shared, Memory::default())));
        self.members.retain(|(shared, _)| {
            let is_closed = shared.inner().is_closed;
            if is_closed {
                dismiss(self.connection, shared);
            }
            !is_closed
        });
        !self.connection.is_closed()
    }

    fn set_states(&self, state: &State) {
        for (shared, _) in &self.members {
            shared.state.send_replace(state.clone());
        }
    }

    /// Resolves when all are closed.
    async fn deserted(&self) {
        let is_closed = |member: &Member| member.0.inner().is_closed;
        while self.connection.has_joined() || !self.members.iter().all(is_closed) {
            self.connection.wake.notified().await;
        }
    }

    /// Waits before the next round: longer after each failure, by a random part more or less.
    async fn pause(&self, failures: u32, reason: String) {
        let options = &self.connection.options;
        let factor = 1_u32 << failures.saturating_sub(1).min(16);
        let pause = (options.backoff_min * factor).min(options.backoff_max);
        let jitter = 0.75 + f64::from(Uuid::new_v4().as_bytes()[0]) / 512.0;
        let pause = pause.mul_f64(jitter);
        let pause_ms = pause.as_millis() as u64;
        for (shared, _) in &self.members {
            if !matches!(*shared.state.borrow(), State::Unfit { .. }) {
                shared.state.send_replace(State::Waiting { reason: reason.clone(), pause_ms });
            }
        }
        tokio::select! {
            () = sleep_until(Instant::now() + pause) => {}
            () = self.deserted() => {}
        }
    }

    /// Connects to a server and converses with it until that ends.
    async fn attempt(&mut self, endpoint: &Endpoint) -> Result<End, String> {
        let name = endpoint.to_string();
        self.set_states(&State::Connecting { endpoint: Some(name.clone()) });
        let stream = tokio::select! {
            connected = self.connect(endpoint) => connected.map_err(|reason| format!("{name}: {reason}"))?,
            () = self.deserted() => return Ok(End::Closed),
        };
        for (shared, _) in &self.members {
            Statistics::count(&shared.statistics.connections, "cowslip_ovsdb_client_connections_total");
        }
        let members = std::mem::take(&mut self.members);
        let mut link = Link::new(self.connection, name, members, stream.needs_flush());
        let end = link.converse(stream).await;
        self.was_live = link.was_live;
        self.members = link.into_members();
        self.connection.locks.lose_all();
        for (shared, _) in &self.members {
            shared.end_all(false);
            if let End::Mismatch(mismatches) = &end {
                shared.state.send_replace(State::Unfit { mismatches: mismatches.clone() });
            }
        }
        Ok(end)
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Stream, String> {
        let limit = self.connection.options.connect_timeout;
        match timeout(limit, self.connection.connector.connect(endpoint)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no connection within {limit:?}")),
        }
    }
}

/// Ends a closed client's part of a connection.
pub(crate) fn dismiss(connection: &Connection, shared: &Shared) {
    for name in connection.locks.names(shared.place) {
        connection.locks.forget(&name, shared.place);
    }
    shared.end_all(true);
    connection.leave();
    shared.state.send_replace(State::Closed);
}
