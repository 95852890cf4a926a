//! Moves bytes between a connection and its socket, and reads the clock.

use std::sync::Arc;
use std::time::Duration;

use cowslip_ldap::framing::{Framing, frame};
use cowslip_ldap::message::RequestError;
use cowslip_ldap::result::ResultCode;
use cowslip_net::stream::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Answered, Connection, Ended, OUTPUT_BYTES_MAX};
use crate::server::Shared;

/// The least room that a read finds.
const READ_BYTES: usize = 16 << 10;

/// How many messages of one client are handled before the other events of its connection are looked at.
const MESSAGES_PER_TURN_MAX: usize = 64;

/// How much room a buffer may keep when it is empty, in bytes.
const IDLE_BUFFER_BYTES: usize = 64 << 10;

/// How long a connection that ends may take to be rid of what it has to say.
const FAREWELL: Duration = Duration::from_millis(500);

/// Runs a connection to its end.
pub(crate) async fn run(stream: Stream, shared: Arc<Shared>, peer: &str) {
    tracing::debug!(peer, "connected");
    let mut driver = Driver {
        idle: shared.options.idle,
        write_stall: shared.options.write_stall,
        connection: Connection::new(shared),
        input: Vec::new(),
        start: 0,
        sent: 0,
        heard: Instant::now(),
        moved: Instant::now(),
    };
    driver.serve(stream).await;
    tracing::debug!(peer, "disconnected");
}

struct Driver {
    connection: Connection,
    idle: Duration,
    write_stall: Duration,
    /// What was read and not handled begins at `start`.
    input: Vec<u8>,
    start: usize,
    /// How much of the output was sent.
    sent: usize,
    /// When the last request came.
    heard: Instant,
    /// When the socket last took something, or had nothing to take.
    moved: Instant,
}

enum Turn {
    Answered(Option<Answered>),
    Wrote(std::io::Result<usize>),
    Read(std::io::Result<usize>),
    Again,
    Idle,
    Stalled,
    Stop,
}

impl Driver {
    async fn serve(&mut self, stream: Stream) {
        let (mut read, mut write) = tokio::io::split(stream);
        let mut stopping = self.connection.shared.stopping.subscribe();
        let mut has_input = false;
        loop {
            if self.settle(&mut has_input).is_err() {
                return self.farewell(&mut write).await;
            }
            let has_output = self.sent < self.connection.out.len();
            let has_room = self.connection.out.len() - self.sent < OUTPUT_BYTES_MAX;
            let may_read = has_room && !has_input && self.connection.session.takes_requests();
            let may_go_on = has_room
                && (!self.connection.searches.is_empty()
                    || (has_input && self.connection.session.takes_requests()));
            let now = Instant::now();
            if !has_output {
                self.moved = now;
            } else if !self.write_stall.is_zero() && now > self.moved + self.write_stall {
                return;
            }
            if self.connection.session.open().len() > 0 {
                self.heard = now;
            }
            let is_waiting = self.connection.session.open().len() == 0 && !has_output;
            self.input.reserve(if may_read { READ_BYTES } else { 0 });
            let Self { connection, input, sent, heard, moved, idle, write_stall, .. } = self;
            let turn = tokio::select! {
                biased;
                () = stopped(&mut stopping) => Turn::Stop,
                answered = connection.arrivals.recv() => Turn::Answered(answered),
                count = write.write(&connection.out[*sent..]), if has_output => Turn::Wrote(count),
                count = read.read_buf(input), if may_read => Turn::Read(count),
                () = std::future::ready(()), if may_go_on => Turn::Again,
                () = until(*heard, *idle), if is_waiting && !idle.is_zero() => Turn::Idle,
                () = until(*moved, *write_stall), if has_output && !write_stall.is_zero() => Turn::Stalled,
            };
            match turn {
                Turn::Answered(answered) => self.take(answered),
                Turn::Wrote(Ok(count)) if count > 0 => self.wrote(count),
                Turn::Read(Ok(count)) if count > 0 => {
                    self.heard = Instant::now();
                    has_input = true;
                }
                Turn::Again => {
                    self.connection.go_on();
                    // Others of this thread have their turn, however long this search is.
                    tokio::task::yield_now().await;
                }
                Turn::Read(_) | Turn::Wrote(_) | Turn::Stalled => return,
                Turn::Idle => {
                    self.connection.disconnect(ResultCode::Unavailable, "no request came for too long");
                    return self.farewell(&mut write).await;
                }
                Turn::Stop => {
                    self.connection.disconnect(ResultCode::Unavailable, "the server is shutting down");
                    return self.farewell(&mut write).await;
                }
            }
        }
    }

    /// Handles what was read, as far as that is due.
    fn settle(&mut self, has_input: &mut bool) -> Result<(), Ended> {
        let mut handled = 0;
        while *has_input && handled < MESSAGES_PER_TURN_MAX && self.connection.session.takes_requests() {
            if self.connection.out.len() - self.sent >= OUTPUT_BYTES_MAX {
                break;
            }
            let bytes_max = self.connection.message_bytes_max();
            match frame(&self.input[self.start..], bytes_max) {
                Ok(Framing::Complete { bytes }) => {
                    let end = self.start + bytes;
                    let message = &self.input[self.start..end];
                    self.start = end;
                    self.connection.handle(message)?;
                    handled += 1;
                }
                Ok(Framing::Incomplete { missing_bytes_min }) => {
                    self.compact();
                    // No more than that: a length is easily claimed.
                    self.input.reserve(missing_bytes_min.min(READ_BYTES));
                    *has_input = false;
                }
                Err(error) => {
                    let step = self.connection.session.refused(&RequestError::Frame(error));
                    self.connection.follow(step)?;
                    return Err(Ended);
                }
            }
        }
        if self.start == self.input.len() {
            *has_input = false;
            self.compact();
        }
        Ok(())
    }

    /// Moves what is left of the input to its beginning, and gives room back.
    fn compact(&mut self) {
        self.input.drain(..self.start);
        self.start = 0;
        if self.input.is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = Vec::new();
        }
    }

    /// Takes all answers that have come, so that one write sends them.
    fn take(&mut self, first: Option<Answered>) {
        let mut next = first;
        while let Some(answered) = next {
            self.connection.answered(answered);
            next = self.connection.arrivals.try_recv().ok();
        }
    }

    fn wrote(&mut self, count: usize) {
        self.sent += count;
        self.moved = Instant::now();
        if self.sent >= self.connection.out.len() {
            self.sent = 0;
            self.connection.out.clear();
            self.connection.out.shrink_to(IDLE_BUFFER_BYTES);
        } else if self.sent > OUTPUT_BYTES_MAX {
            self.connection.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Sends what is left to say, as far as the socket takes it.
    async fn farewell(&mut self, write: &mut (impl AsyncWriteExt + Unpin)) {
        let rest = &self.connection.out[self.sent..];
        let send = async {
            write.write_all(rest).await?;
            write.shutdown().await
        };
        // A client that does not read loses it: it was not going to see it anyway.
        let _ = tokio::time::timeout(FAREWELL, send).await;
    }
}

async fn until(since: Instant, wait: Duration) {
    tokio::time::sleep_until(since + wait).await;
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as what all connections share, which this one holds.
    let _ = stopping.wait_for(|stop| *stop).await;
}
