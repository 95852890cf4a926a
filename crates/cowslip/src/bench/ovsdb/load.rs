//! The load generator: one thread, one poll loop, requests that only need numbers patched in.
//!
//! Invariants: each connection has at most `depth` requests under way; a reply is matched to its request by number; a
//! reply that is an error ends the measurement, because a server that refuses works less.

use super::schema::{NUMBER_FIELD, Operation, ROW_FIELD};
use crate::bench::error::BenchError;
use crate::ovsdb_client::connection::Stream;
use cowslip_ovsdb::framing::{Framer, MESSAGE_BYTES_MAX};
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// How long a server may be silent before the measurement is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How much is read at once.
const READ_BYTES: usize = 1 << 16;
/// The digits of a number that a request carries.
const NUMBER_DIGITS: usize = NUMBER_FIELD.len();
/// Rows are picked this far apart, so that neighbours in time are none in the database. A prime.
const ROW_STRIDE: u64 = 7919;

/// How many connections there are and how many requests each keeps under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The connections.
    pub(crate) connections: usize,
    /// The requests under way on each.
    pub(crate) depth: usize,
}

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('x').and_then(|(c, d)| Some((c.parse().ok()?, d.parse().ok()?)));
        match parts {
            Some((connections @ 1..=1000, depth @ 1..=1000)) => Ok(Shape { connections, depth }),
            _ => Err("say CONNECTIONSxDEPTH, such as 8x16, each up to 1000".to_owned()),
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.connections, self.depth)
    }
}

/// A request with the places of its fields.
pub(crate) struct Template {
    text: Vec<u8>,
    numbers: Vec<usize>,
    rows: Vec<usize>,
    uuids: Vec<String>,
}

impl Template {
    /// The request of an operation.
    pub(crate) fn new(operation: Operation, durable: bool) -> Self {
        let text = operation.request(durable).into_bytes();
        let places = |field: &str| memmem::find_iter(&text, field.as_bytes()).collect();
        let (numbers, rows) = (places(NUMBER_FIELD), places(ROW_FIELD));
        Template { text, numbers, rows, uuids: operation.rows() }
    }

    fn append(&self, out: &mut Vec<u8>, number: u64) {
        let start = out.len();
        out.extend_from_slice(&self.text);
        for at in &self.numbers {
            write_digits(&mut out[start + at..][..NUMBER_DIGITS], number);
        }
        for at in &self.rows {
            let row = number.wrapping_mul(ROW_STRIDE) % self.uuids.len() as u64;
            out[start + at..][..ROW_FIELD.len()].copy_from_slice(self.uuids[row as usize].as_bytes());
        }
    }
}

fn write_digits(field: &mut [u8], mut number: u64) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The number that a reply answers.
fn number_of(reply: &[u8]) -> Option<u64> {
    let at = memmem::find(reply, b"\"id\":\"")? + 6;
    let digits = reply.get(at..at + NUMBER_DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether the server did what was asked; unless `may_miss`, that includes that every operation found its row.
fn check(reply: &[u8], may_miss: bool) -> Result<(), BenchError> {
    let has = |text: &str| memmem::find(reply, text.as_bytes()).is_some();
    if has("\"error\":null") && !has("\"details\"") && (may_miss || !has("\"count\":0")) {
        Ok(())
    } else {
        Err(BenchError::Refused(String::from_utf8_lossy(reply).into_owned()))
    }
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The time from each request to its reply.
    pub(crate) latencies: Vec<Duration>,
    /// From the first request to the last reply.
    pub(crate) elapsed: Duration,
}

struct Lane {
    stream: Stream,
    framer: Framer,
    out: Vec<u8>,
    written: usize,
    under_way: VecDeque<(u64, Instant)>,
}

impl Lane {
    fn open(address: &str) -> Result<Lane, BenchError> {
        let stream = Stream::open(address)?;
        stream.set_nonblocking(true)?;
        Ok(Lane {
            stream,
            framer: Framer::new(MESSAGE_BYTES_MAX),
            out: Vec::new(),
            written: 0,
            under_way: VecDeque::new(),
        })
    }

    fn flush(&mut self) -> Result<(), BenchError> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
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

    /// Reads what is there and notes the latencies of the replies.
    fn read(&mut self, chunk: &mut [u8], latencies: &mut Vec<Duration>) -> Result<(), BenchError> {
        match self.stream.read(chunk) {
            Ok(0) => return Err(BenchError::Closed),
            Ok(n) => self.framer.push(&chunk[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let now = Instant::now();
        while let Some(reply) = self.framer.message()? {
            // A probe of the server has no number of ours; traffic goes on, so it needs no answer.
            let Some(number) = number_of(reply) else { continue };
            check(reply, false)?;
            if let Some(at) = self.under_way.iter().position(|(n, _)| *n == number)
                && let Some((_, sent)) = self.under_way.remove(at)
            {
                latencies.push(now - sent);
            }
        }
        Ok(())
    }
}

/// Keeps a server busy for `time`, with numbers from `first` on.
pub(crate) fn run(
    address: &str,
    template: &Template,
    shape: Shape,
    time: Duration,
    first: u64,
) -> Result<Outcome, BenchError> {
    let mut lanes = Vec::new();
    for _ in 0..shape.connections {
        lanes.push(Lane::open(address)?);
    }
    let mut chunk = vec![0; READ_BYTES];
    let mut outcome = Outcome::default();
    let mut number = first;
    let start = Instant::now();
    let mut last_reply = start;
    loop {
        let now = Instant::now();
        let sending = now - start < time;
        for lane in &mut lanes {
            while sending && lane.under_way.len() < shape.depth {
                template.append(&mut lane.out, number);
                lane.under_way.push_back((number, now));
                number += 1;
            }
            lane.flush()?;
        }
        if lanes.iter().all(|lane| lane.under_way.is_empty()) {
            break;
        }
        let count = outcome.latencies.len();
        for at in ready(&lanes)? {
            lanes[at].read(&mut chunk, &mut outcome.latencies)?;
        }
        if outcome.latencies.len() > count {
            last_reply = Instant::now();
        } else if last_reply.elapsed() > SILENCE_MAX {
            return Err(BenchError::Silent { seconds: SILENCE_MAX.as_secs() });
        }
    }
    outcome.elapsed = last_reply - start;
    Ok(outcome)
}

/// The connections with something to read; waits a moment for one.
fn ready(lanes: &[Lane]) -> Result<Vec<usize>, BenchError> {
    let mut fds: Vec<PollFd<'_>> = lanes
        .iter()
        .map(|lane| {
            let flags = if lane.out.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            PollFd::new(&lane.stream, flags)
        })
        .collect();
    wait(&mut fds)?;
    Ok((0..lanes.len()).filter(|at| fds[*at].revents().intersects(READABLE)).collect())
}

/// What makes reading worth while, be it to learn of an error.
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);

fn wait(fds: &mut [PollFd<'_>]) -> Result<(), BenchError> {
    const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    match poll(fds, Some(&MOMENT)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// Sends requests one after the other, each of which must succeed.
pub(crate) fn send_all(address: &str, requests: &[String]) -> Result<(), BenchError> {
    let mut stream = Stream::open(address)?;
    let mut framer = Framer::new(MESSAGE_BYTES_MAX);
    let mut chunk = vec![0; READ_BYTES];
    for request in requests {
        stream.write_all(request.as_bytes())?;
        loop {
            if let Some(reply) = framer.message()? {
                // A probe of the server is no reply.
                if memmem::find(reply, b"\"method\"").is_some() {
                    continue;
                }
                check(reply, true)?;
                break;
            }
            match stream.read(&mut chunk)? {
                0 => return Err(BenchError::Closed),
                n => framer.push(&chunk[..n]),
            }
        }
    }
    Ok(())
}

/// A connection that waits for one long reply.
pub(crate) struct Reader {
    stream: Stream,
    framer: Framer,
    bytes: u64,
    done: bool,
}

impl Reader {
    /// Connects.
    pub(crate) fn open(address: &str) -> Result<Reader, BenchError> {
        let stream = Stream::open(address)?;
        Ok(Reader { stream, framer: Framer::new(MESSAGE_BYTES_MAX), bytes: 0, done: false })
    }

    /// Sends the request.
    pub(crate) fn send(&mut self, request: &str) -> Result<(), BenchError> {
        self.stream.write_all(request.as_bytes())?;
        self.stream.set_nonblocking(true)?;
        Ok(())
    }

    /// Reads what is there. Looks for the reply's end if its `length` is not known, else only counts, so that the
    /// reader's own work does not stand in the way of many replies at once.
    fn read(&mut self, chunk: &mut [u8], length: Option<u64>) -> Result<(), BenchError> {
        let n = match self.stream.read(chunk) {
            Ok(0) => return Err(BenchError::Closed),
            Ok(n) => n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        self.bytes += n as u64;
        match length {
            Some(length) => self.done = self.bytes >= length,
            None => {
                self.framer.push(&chunk[..n]);
                self.done = self.framer.message()?.is_some();
            }
        }
        Ok(())
    }
}

/// Reads the replies of all connections to their ends; gives the length of one.
pub(crate) fn read_all(readers: &mut [Reader], length: Option<u64>) -> Result<u64, BenchError> {
    const CHUNK_BYTES: usize = 1 << 20;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut last = Instant::now();
    loop {
        let waiting: Vec<usize> = (0..readers.len()).filter(|at| !readers[*at].done).collect();
        if waiting.is_empty() {
            return Ok(readers.first().map_or(0, |reader| reader.bytes));
        }
        let mut fds: Vec<PollFd<'_>> =
            waiting.iter().map(|at| PollFd::new(&readers[*at].stream, PollFlags::IN)).collect();
        wait(&mut fds)?;
        let ready: Vec<usize> = waiting
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| fd.revents().intersects(READABLE))
            .map(|(at, _)| *at)
            .collect();
        if !ready.is_empty() {
            last = Instant::now();
        } else if last.elapsed() > SILENCE_MAX {
            return Err(BenchError::Silent { seconds: SILENCE_MAX.as_secs() });
        }
        for at in ready {
            readers[at].read(&mut chunk, length)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ovsdb::json::Json;

    #[test]
    fn fields_are_filled() {
        let template = Template::new(Operation::PortAdd, false);
        let mut out = Vec::new();
        template.append(&mut out, 42);
        assert_eq!(number_of(&out), Some(42));
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("new-0000000042") && !text.contains('#') && !text.contains('@'), "{text}");
        assert!(Json::parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn shapes() {
        assert_eq!("8x16".parse(), Ok(Shape { connections: 8, depth: 16 }));
        assert!("8".parse::<Shape>().is_err() && "0x1".parse::<Shape>().is_err());
    }
}
