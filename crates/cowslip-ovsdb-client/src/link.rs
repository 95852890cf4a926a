//! Moves bytes between the clients of one connection and a server, reads the clock, and brings each message to the client
//! that it is for.
//!
//! A client whose database is not there, or does not fit, is *parked*: it tries again from time to time on the same
//! connection, which ends only when no client can use it. Invariant: a conversation's end is never the end of another
//! client's.

use crate::connection::{Connection, Name, route, write_name};
use crate::driver::{Member, dismiss};
use crate::session::{End, Memory, Phase, Session};
use crate::shared::Statistics;
use cowslip_net::stream::Stream;
use cowslip_net::tls;
use cowslip_ovsdb::framing::Framer;
use cowslip_ovsdb::json::{Json, write_str};
use cowslip_ovsdb::message::{Message, write_error_text_reply, write_reply, write_request};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

/// How much is read from a socket at once, at least.
const READ_BYTES: usize = 64 << 10;

/// How many bytes of requests are given to the socket at once; what is behind them has not left for certain.
const WRITE_BYTES_MAX: usize = 256 << 10;

/// Larger messages are not parsed as a whole: the rows of a dump, as a tree, take several times the memory of its text
/// and leave the processor's caches before they are looked at.
const WHOLE_BYTES_MAX: usize = 64 << 10;

/// How many brackets lie around the change of a row in most updates and dumps: those of the message, of its parameters
/// or result, of the tables and of the table.
const UPDATE_DEPTH: usize = 4;

/// How long is waited for the reason of a broken connection, and for a TLS connection's end in good order.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// A connection to a server.
pub(crate) struct Link<'a> {
    connection: &'a Connection,
    endpoint: Arc<str>,
    seats: Vec<Seat>,
    framer: Framer,
    heard: Instant,
    is_probing: bool,
    output: Vec<u8>,
    written: usize,
    needs_flush: bool,
    /// Whether something was written that may not have left yet.
    is_unflushed: bool,
    pub(crate) was_live: bool,
}

/// A client's place on a connection.
struct Seat {
    session: Session,
    resume_at: Option<Instant>,
}

enum Turn {
    Read(io::Result<usize>),
    Wrote(io::Result<usize>),
    Woken,
    Silence,
    Resume,
}

impl<'a> Link<'a> {
    /// Begins the conversations of some clients.
    pub(crate) fn new(
        connection: &'a Connection,
        endpoint: String,
        members: Vec<Member>,
        needs_flush: bool,
    ) -> Self {
        let mut link = Link {
            connection,
            endpoint: endpoint.into(),
            seats: Vec::new(),
            framer: Framer::new(connection.options.message_bytes_max),
            heard: Instant::now(),
            is_probing: false,
            output: Vec::new(),
            written: 0,
            needs_flush,
            is_unflushed: false,
            was_live: false,
        };
        members.into_iter().for_each(|member| link.seat(member));
        link
    }

    fn seat(&mut self, (shared, memory): Member) {
        let session = Session::new(shared, memory, self.endpoint.clone());
        self.seats.push(Seat { session, resume_at: None });
    }

    /// The clients that are still here.
    pub(crate) fn into_members(self) -> Vec<Member> {
        self.seats.into_iter().map(|seat| seat.session.into_member()).collect()
    }

    /// Converses until the connection ends.
    pub(crate) async fn converse(&mut self, stream: Stream) -> End {
        let (mut read, mut write) = tokio::io::split(stream);
        let end = self.exchange(&mut read, &mut write).await;
        if self.needs_flush && !matches!(end, End::Lost(_)) {
            // So that the server does not take it for an attack that cuts connections; if it fails, the end is an end.
            let _ = timeout(FAREWELL_MAX, write.shutdown()).await;
        }
        end
    }

    async fn exchange(&mut self, read: &mut ReadHalf<Stream>, write: &mut WriteHalf<Stream>) -> End {
        loop {
            if let Err(end) = self.prepare() {
                return end;
            }
            let silence = self.silence();
            let deadline = self.heard + silence.unwrap_or_default();
            let resume_at = self.seats.iter().filter_map(|seat| seat.resume_at).min();
            let rest = &self.output[self.written..];
            let has_output = !rest.is_empty() || self.is_unflushed;
            self.framer.buffer().reserve(READ_BYTES);
            let turn = tokio::select! {
                biased;
                count = send(write, rest), if has_output => Turn::Wrote(count),
                count = read.read_buf(self.framer.buffer()) => Turn::Read(count),
                () = self.connection.wake.notified() => Turn::Woken,
                () = sleep_until(resume_at.unwrap_or(deadline)), if resume_at.is_some() => Turn::Resume,
                () = sleep_until(deadline), if silence.is_some() => Turn::Silence,
            };
            let step = match turn {
                Turn::Wrote(Ok(count)) => {
                    // Nothing is left to write when a flush is done.
                    self.is_unflushed = self.needs_flush && self.written < self.output.len();
                    self.written += count;
                    Ok(())
                }
                Turn::Read(Ok(0)) => Err(End::Lost("the server closed the connection".to_string())),
                Turn::Read(Ok(_)) => self.take_messages(),
                Turn::Wrote(Err(error)) => Err(End::Lost(self.last_words(read, error).await)),
                Turn::Read(Err(error)) => Err(End::Lost(tls::reason(&error))),
                Turn::Woken => Ok(()),
                Turn::Silence => self.fall_silent(),
                Turn::Resume => self.resume(),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Why the connection broke when something was written: a TLS server that refuses a client says so and closes, and
    /// what it said may be unread.
    async fn last_words(&mut self, read: &mut ReadHalf<Stream>, error: io::Error) -> String {
        let mut rest = Vec::new();
        let words = async {
            loop {
                rest.clear();
                match read.read_buf(&mut rest).await {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) => return Some(error),
                }
            }
        };
        let told = match self.needs_flush {
            true => timeout(FAREWELL_MAX, words).await.ok().flatten(),
            false => None,
        };
        tls::reason(&told.unwrap_or(error))
    }

    /// How much silence is borne in the present phases; probes break it once the server has shown that it lives.
    fn silence(&self) -> Option<Duration> {
        let options = &self.connection.options;
        let is_any = |phase| self.seats.iter().any(|seat| seat.session.phase == phase);
        let limit = match (is_any(Phase::Dumping), self.is_beginning()) {
            (true, _) => options.dump_silence,
            (false, true) => options.connect_timeout,
            (false, false) => options.probe_interval,
        };
        (!limit.is_zero()).then_some(limit)
    }

    /// Whether the server has not answered anybody yet.
    fn is_beginning(&self) -> bool {
        self.seats.iter().all(|seat| seat.session.phase == Phase::Beginning)
    }

    fn fall_silent(&mut self) -> Result<(), End> {
        let is_dumping = self.seats.iter().any(|seat| seat.session.phase == Phase::Dumping);
        if self.is_probing || is_dumping || self.is_beginning() {
            return Err(End::Lost(format!("no byte for {:?}", self.silence().unwrap_or_default())));
        }
        self.is_probing = true;
        self.heard = Instant::now();
        let mut probe = String::new();
        write_request(&mut probe, "echo", "\"echo\"", |out| out.push_str("[]"));
        self.output.extend_from_slice(probe.as_bytes());
        Ok(())
    }

    /// Goes on with those whose pause is over.
    fn resume(&mut self) -> Result<(), End> {
        let now = Instant::now();
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            if seat.resume_at.is_some_and(|at| at <= now) {
                seat.resume_at = None;
                let step = seat.session.resume();
                self.settle(at, step)?;
            }
        }
        Ok(())
    }

    fn take_messages(&mut self) -> Result<(), End> {
        self.heard = Instant::now();
        self.is_probing = false;
        // The framer lends the message while the sessions change.
        let mut framer = std::mem::replace(&mut self.framer, Framer::new(0));
        let outcome = loop {
            match framer.message() {
                Ok(Some(message)) => {
                    if let Err(end) = self.receive(message) {
                        break Err(end);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(End::Lost(error.to_string())),
            }
        };
        self.framer = framer;
        outcome
    }

    /// Brings a message to the one that it is for.
    fn receive(&mut self, text: &[u8]) -> Result<(), End> {
        let malformed = |reason: String| End::Lost(format!("malformed message: {reason}"));
        let json = match text.len() > WHOLE_BYTES_MAX {
            true => Json::parse_to_depth(text, UPDATE_DEPTH),
            false => Json::parse(text),
        };
        let json = json.map_err(|e| malformed(e.to_string()))?;
        match Message::from_json(json).map_err(|e| malformed(e.to_string()))? {
            Message::Request { method, params, id } => {
                let (id, mut reply) = (id.to_string(), String::new());
                match method.as_str() {
                    "echo" => write_reply(&mut reply, &id, |out| Json::Array(params).write(out, false)),
                    _ => write_error_text_reply(&mut reply, &id, "unknown method"),
                }
                self.output.extend_from_slice(reply.as_bytes());
                Ok(())
            }
            Message::Notification { method, params } if method == "locked" || method == "stolen" => {
                if let Some(Json::Str(name)) = params.first() {
                    self.connection.locks.set(name, method == "locked");
                }
                Ok(())
            }
            Message::Notification { method, params } => {
                // The identifier is read apart from the parameters, which go on as a whole.
                let Some(id) = params.first().cloned() else { return Ok(()) };
                let Some((place, name)) = route(&id) else { return Ok(()) };
                let params = match name {
                    Name::Number(_) => params,
                    Name::Text(_) => {
                        let whole = params.into_iter().map(Json::completed).collect::<Result<_, _>>();
                        whole.map_err(|e| malformed(e.to_string()))?
                    }
                };
                self.with(place, |session| session.notification(&method, name, params))
            }
            Message::Reply { id, outcome } => {
                let Some((place, name)) = route(&id) else { return Ok(()) };
                let outcome = match (&name, outcome) {
                    (Name::Text(id), outcome) if id.starts_with("dump-") => outcome,
                    (_, Ok(result)) => Ok(result.completed().map_err(|e| malformed(e.to_string()))?),
                    (_, Err(error)) => Err(error.completed().map_err(|e| malformed(e.to_string()))?),
                };
                self.with(place, |session| session.reply(name, outcome))
            }
        }
    }

    /// Has the client of a place do something; whoever has left is not spoken to.
    fn with(&mut self, place: u32, act: impl FnOnce(&mut Session) -> Result<(), End>) -> Result<(), End> {
        match self.seats.iter().position(|seat| seat.session.place() == place) {
            Some(at) => {
                let step = act(&mut self.seats[at].session);
                self.settle(at, step)
            }
            None => Ok(()),
        }
    }

    /// Parks a client that cannot use this connection, unless no other can: then it ends.
    fn settle(&mut self, at: usize, step: Result<(), End>) -> Result<(), End> {
        match step {
            Err(end @ (End::Unfit(_) | End::Mismatch(_))) => {
                let is_parked = |seat: &Seat| seat.session.phase == Phase::Parked;
                let mut others = self.seats.iter().enumerate().filter(|(other, _)| *other != at);
                if others.all(|(_, seat)| is_parked(seat)) {
                    return Err(end);
                }
                tracing::info!(endpoint = %self.endpoint, reason = ?end, "a database is parked");
                self.seats[at].session.park(end);
                Ok(())
            }
            other => other,
        }
    }

    /// Brings what is to be sent into the output, as long as there is room.
    fn prepare(&mut self) -> Result<(), End> {
        for shared in self.connection.joined() {
            Statistics::count(&shared.statistics.connections, "cowslip_ovsdb_client_connections_total");
            self.seat((shared, Memory::default()));
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        for at in 0..self.seats.len() {
            let step = self.seats[at].session.take_commands();
            self.settle(at, step)?;
            let seat = &mut self.seats[at];
            self.was_live |= seat.session.phase == Phase::Live;
            match seat.session.pause {
                None => seat.resume_at = None,
                Some(pause) if seat.resume_at.is_none() => seat.resume_at = Some(Instant::now() + pause),
                Some(_) => {}
            }
            self.output.extend_from_slice(seat.session.out.as_bytes());
            seat.session.out.clear();
        }
        if self.take_transactions() { self.dismiss_closed() } else { Ok(()) }
    }

    /// Takes transactions as long as there is room; tells whether somebody is closed.
    fn take_transactions(&mut self) -> bool {
        let (mut has_closed, mut is_full) = (false, false);
        for seat in &self.seats {
            let mut inner = seat.session.shared().inner();
            has_closed |= inner.is_closed;
            loop {
                is_full = self.output.len() - self.written >= WRITE_BYTES_MAX;
                if is_full {
                    break;
                }
                let Some((ticket, params)) = inner.queue.pop_front() else { break };
                if let Some(transaction) = inner.in_flight.get_mut(&ticket) {
                    transaction.is_sent = true;
                }
                let mut id = String::new();
                write_name(&mut id, seat.session.place(), Name::Number(ticket));
                let mut text = String::with_capacity(params.len() + 64);
                write_request(&mut text, "transact", &id, |out| out.push_str(&params));
                self.output.extend_from_slice(text.as_bytes());
            }
        }
        if is_full && self.seats.len() > 1 {
            // Whoever is behind comes first the next time.
            self.seats.rotate_left(1);
        }
        has_closed
    }

    /// Lets go of those that are closed.
    fn dismiss_closed(&mut self) -> Result<(), End> {
        for at in (0..self.seats.len()).rev() {
            if !self.seats[at].session.shared().inner().is_closed {
                continue;
            }
            let mut session = self.seats.remove(at).session;
            let shared = session.shared().clone();
            let mut text = session.leave();
            for name in self.connection.locks.names(shared.place) {
                if self.connection.locks.forget(&name, shared.place) {
                    write_request(&mut text, "unlock", "\"unlock\"", |out| {
                        out.push('[');
                        write_str(out, &name);
                        out.push(']');
                    });
                }
            }
            dismiss(self.connection, &shared);
            self.output.extend_from_slice(text.as_bytes());
        }
        if self.connection.is_closed() { Err(End::Closed) } else { Ok(()) }
    }
}

/// Writes, or brings on its way what was written.
async fn send(write: &mut WriteHalf<Stream>, bytes: &[u8]) -> io::Result<usize> {
    match bytes.is_empty() {
        true => write.flush().await.map(|()| 0),
        false => write.write(bytes).await,
    }
}
