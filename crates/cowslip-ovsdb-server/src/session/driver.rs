//! Moves bytes between a session and its socket, and reads the clock.

use super::{Ended, Event, Session, SessionId};
use crate::server::Shared;
use cowslip_net::stream::Stream;
use cowslip_ovsdb::framing::Framer;
use cowslip_ovsdb::message::write_request;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

/// The least room that a read finds. The buffer grows with what is in it, so that large messages take few reads, and a
/// session that says little has a small one.
const READ_BYTES: usize = 4 << 10;

/// How many messages of one client are handled before the other events of its session are looked at.
const MESSAGES_PER_TURN_MAX: usize = 100;

/// A message longer than this is parsed while other sessions move to another thread.
const INLINE_MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Runs a session to its end.
pub(crate) async fn run(stream: Stream, id: SessionId, shared: Arc<Shared>, peer: String) {
    tracing::debug!(session = id.0, peer, "connected");
    let is_local = stream.is_local();
    let session = Session::new(id, shared);
    let probe_ms = session.shared.options.probe_interval_ms.unwrap_or(if is_local { 0 } else { 5000 });
    let probe = (probe_ms > 0).then(|| Duration::from_millis(probe_ms));
    let mut driver = Driver { session, probe, heard: Instant::now(), is_backed_up: false };
    match driver.serve(stream).await {
        Ended::Closed => tracing::debug!(session = id.0, peer, "disconnected"),
        Ended::Stopping => {}
        reason => tracing::warn!(session = id.0, peer, %reason, "connection dropped"),
    }
}

struct Driver {
    session: Session,
    probe: Option<Duration>,
    /// When the client last showed that it lives.
    heard: Instant,
    /// The last write left something to be sent.
    is_backed_up: bool,
}

impl Driver {
    async fn serve(&mut self, stream: Stream) -> Ended {
        let (mut read, mut write) = tokio::io::split(stream);
        let mut framer = Framer::new(self.session.shared.options.message_bytes_max);
        let mut published = self.session.shared.published.subscribe();
        let mut stopping = self.session.shared.stopping.subscribe();
        let mut has_input = false;
        loop {
            if let Err(reason) = self.settle(&mut framer, &mut has_input).await {
                return self.farewell(&mut write, reason).await;
            }
            let session = &mut self.session;
            let wants_updates = session.is_monitoring() && session.output.has_room();
            let may_read = session.wants_input() && !has_input;
            let slices = session.output.slices();
            let turn = tokio::select! {
                biased;
                event = session.arrivals.recv(), if session.output.has_room() => Turn::Event(event),
                count = write.write_vectored(&slices), if !session.output.is_empty() => Turn::Wrote(count),
                count = read_some(&mut read, &mut framer), if may_read => Turn::Read(count),
                _ = published.changed(), if wants_updates => Turn::Again,
                _ = std::future::ready(()), if (has_input || session.has_held()) && session.wants_input() => {
                    Turn::Again
                }
                () = silence(self.heard, self.probe) => Turn::Silence,
                _ = stopped(&mut stopping) => Turn::Stop,
            };
            drop(slices);
            let step = match turn {
                Turn::Event(Some(event)) => self.take_events(event),
                Turn::Event(None) | Turn::Stop => Err(Ended::Stopping),
                Turn::Wrote(Ok(count)) => {
                    self.wrote(count);
                    Ok(())
                }
                Turn::Read(Ok(0)) => Err(Ended::Closed),
                Turn::Read(Ok(_)) => {
                    self.hear();
                    has_input = true;
                    Ok(())
                }
                Turn::Wrote(Err(error)) | Turn::Read(Err(error)) => Err(Ended::Io(error)),
                Turn::Again => Ok(()),
                Turn::Silence => self.probe(),
            };
            if let Err(reason) = step {
                return self.farewell(&mut write, reason).await;
            }
        }
    }

    /// Handles what was read and sends what is new, as far as there is room.
    async fn settle(&mut self, framer: &mut Framer, has_input: &mut bool) -> Result<(), Ended> {
        let mut handled = 0;
        while self.session.wants_input() && handled < MESSAGES_PER_TURN_MAX {
            let held = self.session.take_held();
            let message = match &held {
                Some(message) => message.as_slice(),
                None if !*has_input => break,
                None => match framer.message().map_err(|e| Ended::Malformed(e.to_string()))? {
                    Some(message) => message,
                    None => {
                        *has_input = false;
                        break;
                    }
                },
            };
            if message.len() > INLINE_MESSAGE_BYTES_MAX {
                let runtime = tokio::runtime::Handle::current();
                let session = &mut self.session;
                tokio::task::block_in_place(|| runtime.block_on(session.handle_message(message)))?;
            } else {
                self.session.handle_message(message).await?;
            }
            handled += 1;
        }
        if self.session.output.has_room() && self.session.has_updates() {
            self.session.flush_monitors()?;
        }
        Ok(())
    }

    /// Takes what has come while there is room for what it leads to: thousands of replies that are ready together may
    /// be far larger than what they are made from.
    fn take_events(&mut self, first: Event) -> Result<(), Ended> {
        self.session.handle_event(first)?;
        while self.session.output.has_room()
            && let Ok(event) = self.session.arrivals.try_recv()
        {
            self.session.handle_event(event)?;
        }
        Ok(())
    }

    fn hear(&mut self) {
        self.heard = Instant::now();
        self.session.awaits_probe = false;
    }

    /// A client that slowly takes what had to wait for it lives, though it may not be heard for long. What the socket
    /// takes at once proves nothing: much of that fits between here and a client that is gone.
    fn wrote(&mut self, count: usize) {
        self.session.output.advance(count);
        let was_backed_up = std::mem::replace(&mut self.is_backed_up, !self.session.output.is_empty());
        if was_backed_up && count > 0 {
            self.hear();
        }
    }

    /// Nothing came for a probe interval: asks whether the client lives, or ends the session if that was asked before.
    fn probe(&mut self) -> Result<(), Ended> {
        if self.session.output.has_room() && !self.session.wants_input() {
            // It was not listened to, because of all that it waits for; that says nothing about it.
            self.hear();
            return Ok(());
        }
        let interval = self.probe.unwrap_or_default();
        if self.session.awaits_probe {
            return Err(Ended::Silent(interval.as_millis() as u64));
        }
        self.session.awaits_probe = true;
        self.heard = Instant::now();
        self.session.output.append(|out| write_request(out, "echo", "\"echo\"", |out| out.push_str("[]")));
        Ok(())
    }

    /// Replies that are ready are still sent before the connection closes, as far as the socket takes them.
    async fn farewell(&mut self, write: &mut (impl AsyncWriteExt + Unpin), reason: Ended) -> Ended {
        const FAREWELL_MS: u64 = 200;
        if matches!(reason, Ended::Malformed(_) | Ended::Stopping) {
            let send = async {
                while !self.session.output.is_empty() {
                    match write.write_vectored(&self.session.output.slices()).await {
                        Ok(count) if count > 0 => self.session.output.advance(count),
                        _ => break,
                    }
                }
            };
            // A client that does not read loses them: it was not going to see them anyway.
            let _ = tokio::time::timeout(Duration::from_millis(FAREWELL_MS), send).await;
        }
        reason
    }
}

enum Turn {
    Event(Option<Event>),
    Wrote(std::io::Result<usize>),
    Read(std::io::Result<usize>),
    Again,
    Silence,
    Stop,
}

async fn read_some(read: &mut (impl AsyncReadExt + Unpin), framer: &mut Framer) -> std::io::Result<usize> {
    let buffer = framer.buffer();
    buffer.reserve(READ_BYTES);
    read.read_buf(buffer).await
}

async fn silence(heard: Instant, probe: Option<Duration>) {
    match probe {
        Some(interval) => tokio::time::sleep_until(heard + interval).await,
        None => std::future::pending().await,
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the server's shared part, which this session holds.
    let _ = stopping.wait_for(|stop| *stop).await;
}
