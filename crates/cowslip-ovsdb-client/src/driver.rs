//! Moves bytes between a client and its servers, reads the clock, and chooses whom to connect to.
//!
//! Invariant: whatever happens, the task ends only when the client is closed; everything that was in flight on a
//! connection has its answer before the next connection is tried.

use crate::session::{End, Memory, Phase, Session};
use crate::shared::{Shared, Statistics};
use crate::state::State;
use cowslip_engine::Uuid;
use cowslip_net::address::Endpoint;
use cowslip_net::stream::Stream;
use cowslip_ovsdb::framing::Framer;
use cowslip_ovsdb::message::write_request;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// How much is read from a socket at once, at least.
const READ_BYTES: usize = 64 << 10;

/// How many bytes of requests are given to the socket at once; what is behind them has not left for certain.
const WRITE_BYTES_MAX: usize = 256 << 10;

/// Runs a client's connection until the client is closed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut endpoints = shared.options.endpoints.clone();
    if shared.options.shuffle {
        // A fresh random UUID per endpoint is a fair shuffle.
        endpoints.sort_by_cached_key(|_| Uuid::new_v4());
    }
    let mut driver = Driver { shared: &shared, memory: Memory::default(), was_live: false };
    let mut failures = 0_u32;
    while !driver.is_closed() {
        let mut reason = String::new();
        let mut was_live = false;
        for at in 0..endpoints.len() {
            match driver.attempt(&endpoints[at]).await {
                Ok(End::Closed) => break,
                Ok(End::Mismatch(mismatches)) => {
                    shared.state.send_replace(State::Unfit { mismatches });
                    reason = "the server's schema does not fit".to_string();
                }
                Ok(End::Lost(why) | End::Unfit(why)) => {
                    tracing::info!(endpoint = %endpoints[at], reason = why, "connection ended");
                    reason = why;
                    was_live = true;
                }
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
        if driver.is_closed() {
            break;
        }
        failures = if std::mem::take(&mut driver.was_live) && was_live { 0 } else { failures + 1 };
        driver.pause(failures, reason).await;
    }
    shared.end_all(true);
    shared.state.send_replace(State::Closed);
}

struct Driver<'a> {
    shared: &'a Shared,
    memory: Memory,
    was_live: bool,
}

impl Driver<'_> {
    fn is_closed(&self) -> bool {
        self.shared.inner().is_closed
    }

    /// Waits before the next round: longer after each failure, by a random part more or less.
    async fn pause(&self, failures: u32, reason: String) {
        let options = &self.shared.options;
        let factor = 1_u32 << failures.saturating_sub(1).min(16);
        let pause = (options.backoff_min * factor).min(options.backoff_max);
        let jitter = 0.75 + f64::from(Uuid::new_v4().as_bytes()[0]) / 512.0;
        let pause = pause.mul_f64(jitter);
        let pause_ms = pause.as_millis() as u64;
        if !matches!(*self.shared.state.borrow(), State::Unfit { .. }) {
            self.shared.state.send_replace(State::Waiting { reason, pause_ms });
        }
        let until = Instant::now() + pause;
        while !self.is_closed() {
            tokio::select! {
                () = sleep_until(until) => return,
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// Connects to a server and converses with it until that ends.
    async fn attempt(&mut self, endpoint: &Endpoint) -> Result<End, String> {
        let name = endpoint.to_string();
        self.shared.state.send_replace(State::Connecting { endpoint: Some(name.clone()) });
        let limit = self.shared.options.connect_timeout;
        let stream = tokio::select! {
            connected = timeout(limit, Stream::connect(endpoint)) => match connected {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return Err(format!("{name}: {error}")),
                Err(_) => return Err(format!("{name}: no connection within {limit:?}")),
            },
            () = closed(self.shared) => return Ok(End::Closed),
        };
        Statistics::count(&self.shared.statistics.connections, "cowslip_ovsdb_client_connections_total");
        let session = Session::new(self.shared, &mut self.memory, name);
        let mut link = Link {
            shared: self.shared,
            session,
            framer: Framer::new(self.shared.options.message_bytes_max),
            heard: Instant::now(),
            is_probing: false,
            resume_at: None,
            output: Vec::new(),
            written: 0,
            was_live: false,
        };
        let end = link.converse(stream).await;
        self.was_live = link.was_live;
        self.shared.locks.lose_all();
        self.shared.end_all(false);
        Ok(end)
    }
}

async fn closed(shared: &Shared) {
    while !shared.inner().is_closed {
        shared.wake.notified().await;
    }
}

struct Link<'a> {
    shared: &'a Shared,
    session: Session<'a>,
    framer: Framer,
    heard: Instant,
    is_probing: bool,
    resume_at: Option<Instant>,
    output: Vec<u8>,
    written: usize,
    was_live: bool,
}

enum Turn {
    Read(std::io::Result<usize>),
    Wrote(std::io::Result<usize>),
    Woken,
    Silence,
    Resume,
}

impl Link<'_> {
    async fn converse(&mut self, stream: Stream) -> End {
        let (mut read, mut write) = tokio::io::split(stream);
        loop {
            if let Err(end) = self.prepare() {
                return end;
            }
            let silence = self.silence();
            let deadline = self.heard + silence.unwrap_or_default();
            let resume_at = self.resume_at;
            let has_output = self.written < self.output.len();
            self.framer.buffer().reserve(READ_BYTES);
            let turn = tokio::select! {
                biased;
                count = write.write(&self.output[self.written..]), if has_output => Turn::Wrote(count),
                count = read.read_buf(self.framer.buffer()) => Turn::Read(count),
                () = self.shared.wake.notified() => Turn::Woken,
                () = sleep_until(resume_at.unwrap_or(deadline)), if resume_at.is_some() => Turn::Resume,
                () = sleep_until(deadline), if silence.is_some() => Turn::Silence,
            };
            let step = match turn {
                Turn::Wrote(Ok(count)) => {
                    self.written += count;
                    Ok(())
                }
                Turn::Read(Ok(0)) => Err(End::Lost("the server closed the connection".to_string())),
                Turn::Read(Ok(_)) => self.take_messages(),
                Turn::Wrote(Err(error)) | Turn::Read(Err(error)) => Err(End::Lost(error.to_string())),
                Turn::Woken => Ok(()),
                Turn::Silence => self.fall_silent(),
                Turn::Resume => {
                    self.resume_at = None;
                    self.session.resume();
                    Ok(())
                }
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// How much silence is borne in the present phase.
    fn silence(&self) -> Option<Duration> {
        let options = &self.shared.options;
        let limit = match self.session.phase {
            Phase::Beginning => options.connect_timeout,
            Phase::Dumping => options.dump_silence,
            Phase::Live | Phase::Pausing => options.probe_interval,
        };
        (!limit.is_zero()).then_some(limit)
    }

    fn fall_silent(&mut self) -> Result<(), End> {
        let is_live = matches!(self.session.phase, Phase::Live | Phase::Pausing);
        if self.is_probing || !is_live {
            return Err(End::Lost(format!("no byte for {:?}", self.silence().unwrap_or_default())));
        }
        self.is_probing = true;
        self.heard = Instant::now();
        self.session.probe();
        Ok(())
    }

    fn take_messages(&mut self) -> Result<(), End> {
        self.heard = Instant::now();
        self.is_probing = false;
        loop {
            let message = self.framer.message().map_err(|error| End::Lost(error.to_string()))?;
            let Some(message) = message else { return Ok(()) };
            self.session.receive(message)?;
        }
    }

    /// Brings what is to be sent into the output, as long as there is room.
    fn prepare(&mut self) -> Result<(), End> {
        if self.session.phase == Phase::Live {
            self.was_live = true;
        }
        if let Some(pause) = self.session.pause
            && self.resume_at.is_none()
            && self.session.phase == Phase::Pausing
        {
            self.resume_at = Some(Instant::now() + pause);
        }
        self.session.take_commands()?;
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        self.output.extend_from_slice(self.session.out.as_bytes());
        self.session.out.clear();
        let mut inner = self.shared.inner();
        if inner.is_closed {
            return Err(End::Closed);
        }
        while self.output.len() - self.written < WRITE_BYTES_MAX {
            let Some((ticket, params)) = inner.queue.pop_front() else { break };
            if let Some(transaction) = inner.in_flight.get_mut(&ticket) {
                transaction.is_sent = true;
            }
            let mut text = String::with_capacity(params.len() + 64);
            write_request(&mut text, "transact", &ticket.to_string(), |out| out.push_str(&params));
            self.output.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }
}
