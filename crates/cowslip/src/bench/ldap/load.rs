//! The load generator: one thread, one poll loop, requests that are written straight into the buffers of connections.
//!
//! Invariants: each connection has at most `depth` requests under way; an answer is matched to its request by number;
//! refusals are counted by code and are no operations done.

use super::requests::Requests;
use crate::bench::error::BenchError;
use cowslip_ldap::ber::{self, Reader};
use cowslip_ldap::framing::{Framing, MESSAGE_BYTES_MAX, frame};
use cowslip_ldap::message::{Authentication, MessageId, write_bind};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::url::{LdapUrl, UrlScheme};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a server may be silent before the measurement is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long one wait takes at most, so that the silence is noticed.
const WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How much is read at once.
const READ_BYTES: usize = 1 << 16;
/// The tags of messages that do not end an operation: an entry, a reference, an intermediate response.
const NOT_AN_END: [u8; 3] = [0x64, 0x73, 0x79];
/// The tag of an entry.
const ENTRY: u8 = 0x64;

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn open(url: &str) -> Result<Self, BenchError> {
        let wrong = |reason: &str| BenchError::Usage(format!("{url}: {reason}"));
        let parsed = LdapUrl::parse(url).map_err(|error| wrong(&error.to_string()))?;
        let host = parsed.host.unwrap_or_default();
        match parsed.scheme {
            UrlScheme::Ldap => {
                let stream = TcpStream::connect((host.as_str(), parsed.port.unwrap_or(389)))?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            UrlScheme::Ldapi => Ok(Self::Unix(UnixStream::connect(host)?)),
            UrlScheme::Ldaps => Err(wrong("only ldap: and ldapi: are measured")),
        }
    }

    fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(chunk),
            Self::Unix(stream) => stream.read(chunk),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The time from each request to the end of its answer, of those that succeeded.
    pub(crate) latencies: Vec<Duration>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
    /// How many entries searches returned.
    pub(crate) entries: u64,
    /// How many operations failed, by result code.
    pub(crate) refused: BTreeMap<u32, u64>,
}

impl Outcome {
    /// Joins what came of another load.
    pub(crate) fn add(&mut self, more: Self) {
        self.latencies.extend(more.latencies);
        self.elapsed += more.elapsed;
        self.entries += more.entries;
        for (code, count) in more.refused {
            *self.refused.entry(code).or_default() += count;
        }
    }
}

struct Lane {
    socket: Socket,
    input: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    last_id: u32,
    under_way: VecDeque<(u32, Instant)>,
}

impl Lane {
    fn open(url: &str) -> Result<Self, BenchError> {
        let socket = Socket::open(url)?;
        Ok(Self {
            socket,
            input: Vec::new(),
            out: Vec::new(),
            written: 0,
            last_id: 0,
            under_way: VecDeque::new(),
        })
    }

    /// Binds, and waits for the answer.
    fn bind(&mut self, name: &str, password: &str) -> Result<(), BenchError> {
        let id = self.next_id();
        write_bind(&mut self.out, id, name.as_bytes(), Authentication::Simple(password.as_bytes()), &[]);
        self.under_way.push_back((id.number(), Instant::now()));
        self.flush()?;
        let mut outcome = Outcome::default();
        let mut chunk = vec![0; READ_BYTES];
        while !self.under_way.is_empty() {
            self.read(&mut chunk, &mut outcome)?;
        }
        match outcome.refused.keys().next() {
            None => Ok(()),
            Some(code) => {
                Err(BenchError::Refused(format!("bind as {name}: {}", ResultCode::from_number(*code))))
            }
        }
    }

    fn next_id(&mut self) -> MessageId {
        self.last_id = self.last_id % MessageId::MAX.number() + 1;
        MessageId::new(self.last_id).unwrap_or(MessageId::MAX)
    }

    fn flush(&mut self) -> Result<(), BenchError> {
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(n) => self.written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what is there and counts the answers.
    fn read(&mut self, chunk: &mut [u8], outcome: &mut Outcome) -> Result<(), BenchError> {
        match self.socket.read(chunk) {
            Ok(0) => return Err(BenchError::Closed),
            Ok(n) => self.input.extend_from_slice(&chunk[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let now = Instant::now();
        let mut taken = 0;
        loop {
            let framing = frame(&self.input[taken..], MESSAGE_BYTES_MAX);
            let framing = framing.map_err(|error| BenchError::Protocol(error.to_string()))?;
            let Framing::Complete { bytes } = framing else { break };
            let message = &self.input[taken..taken + bytes];
            taken += bytes;
            let message = read_message(message).map_err(|error| BenchError::Protocol(error.to_string()))?;
            match message {
                Message::Entry => outcome.entries += 1,
                Message::Other => {}
                Message::End { id: 0, code } => {
                    let code = ResultCode::from_number(code);
                    return Err(BenchError::Refused(format!("the server ends the connection: {code}")));
                }
                Message::End { id, code } => {
                    let at = self.under_way.iter().position(|(number, _)| *number == id);
                    let Some((_, sent)) = at.and_then(|at| self.under_way.remove(at)) else { continue };
                    match code {
                        0 => outcome.latencies.push(now - sent),
                        code => *outcome.refused.entry(code).or_default() += 1,
                    }
                }
            }
        }
        self.input.drain(..taken);
        Ok(())
    }
}

enum Message {
    Entry,
    Other,
    End { id: u32, code: u32 },
}

/// As much of a message as a count needs.
fn read_message(message: &[u8]) -> Result<Message, ber::BerError> {
    let mut reader = Reader::new(message).within(ber::SEQUENCE)?;
    let id = reader.integer()?;
    let (tag, content) = reader.element()?;
    match tag {
        ENTRY => Ok(Message::Entry),
        tag if NOT_AN_END.contains(&tag) => Ok(Message::Other),
        _ => {
            let code = Reader::new(content).enumerated()?;
            let number = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
            Ok(Message::End { id: number(id), code: number(code) })
        }
    }
}

/// Connections that are ready for loads.
pub(crate) struct Generator {
    lanes: Vec<Lane>,
    depth: usize,
}

impl Generator {
    /// Opens connections, each bound as the same user.
    pub(crate) fn open(
        url: &str,
        user: (&str, &str),
        connections: usize,
        depth: usize,
    ) -> Result<Self, BenchError> {
        let mut lanes = Vec::new();
        for _ in 0..connections {
            let mut lane = Lane::open(url)?;
            lane.bind(user.0, user.1)?;
            lane.socket.set_nonblocking()?;
            lanes.push(lane);
        }
        Ok(Self { lanes, depth })
    }

    /// Keeps the server busy for `time`, or until there is nothing left to ask for.
    pub(crate) fn run(&mut self, requests: &mut Requests, time: Duration) -> Result<Outcome, BenchError> {
        let mut chunk = vec![0; READ_BYTES];
        let mut outcome = Outcome::default();
        let start = Instant::now();
        let mut last_answer = start;
        let mut has_more = true;
        let mut ready = Vec::new();
        loop {
            let now = Instant::now();
            has_more &= now - start < time;
            for lane in &mut self.lanes {
                while has_more && lane.under_way.len() < self.depth {
                    let id = lane.next_id();
                    has_more = requests.append(&mut lane.out, id);
                    if has_more {
                        lane.under_way.push_back((id.number(), now));
                    }
                }
                lane.flush()?;
            }
            if self.lanes.iter().all(|lane| lane.under_way.is_empty()) {
                break;
            }
            self.wait(&mut ready)?;
            for at in &ready {
                self.lanes[*at].read(&mut chunk, &mut outcome)?;
            }
            if !ready.is_empty() {
                last_answer = Instant::now();
            } else if last_answer.elapsed() > SILENCE_MAX {
                return Err(BenchError::Silent { seconds: SILENCE_MAX.as_secs() });
            }
        }
        outcome.elapsed = last_answer - start;
        Ok(outcome)
    }

    /// Waits a moment for something to read; notes where.
    fn wait(&self, ready: &mut Vec<usize>) -> Result<(), BenchError> {
        let mut fds: Vec<PollFd<'_>> = self
            .lanes
            .iter()
            .map(|lane| {
                let flags = if lane.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
                PollFd::new(&lane.socket, flags)
            })
            .collect();
        match poll(&mut fds, Some(&WAIT)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        ready.clear();
        ready.extend((0..fds.len()).filter(|at| fds[*at].revents().intersects(readable)));
        Ok(())
    }
}
