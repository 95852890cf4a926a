//! Cuts a byte stream into messages.
//!
//! OVSDB sends JSON values one after another without a delimiter (RFC 7047 section 4). [`Framer`] finds where a value
//! ends by following brackets and strings, byte by byte and each byte once; the parser then sees whole messages only.
//!
//! Invariants: what is buffered is at most one incomplete message plus what the last read brought; an incomplete message
//! longer than the limit, and anything that cannot begin or go on as JSON brackets, ends the stream.

use crate::json::{DEPTH_MAX, Json, JsonError};
use std::fmt;

/// The default limit on one message, in bytes; large enough for a backup of a large database in one transaction.
pub const MESSAGE_BYTES_MAX: usize = 500 * 1000 * 1000;

/// How much of an incomplete message is checked before the rest is there.
const BEGINNING_BYTES_MAX: usize = 4096;

/// Why a stream cannot be cut any further.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FramingError {
    /// A byte between messages that begins neither an object nor an array.
    NotAMessage {
        /// The byte.
        byte: u8,
    },
    /// The beginning of a message that is no JSON.
    NotJson(JsonError),
    /// A closing bracket that does not match the open one.
    Unbalanced,
    /// More than [`DEPTH_MAX`] brackets are open.
    TooDeep,
    /// The message is longer than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FramingError::NotAMessage { byte } => write!(f, "byte {byte:#04x} begins no JSON message"),
            FramingError::NotJson(error) => write!(f, "no JSON: {error}"),
            FramingError::Unbalanced => f.write_str("brackets do not match"),
            FramingError::TooDeep => write!(f, "more than {DEPTH_MAX} open brackets"),
            FramingError::TooLong { limit } => write!(f, "message is longer than the limit of {limit} bytes"),
        }
    }
}

impl std::error::Error for FramingError {}

/// Collects bytes and gives back whole messages.
///
/// ```
/// use cowslip_ovsdb::framing::Framer;
/// let mut framer = Framer::new(1000);
/// framer.push(br#"{"a":"}"} [1,"#);
/// assert_eq!(framer.message().unwrap(), Some(&br#"{"a":"}"}"#[..]));
/// assert_eq!(framer.message().unwrap(), None);
/// framer.push(b"2]");
/// assert_eq!(framer.message().unwrap(), Some(&b"[1,2]"[..]));
/// ```
#[derive(Debug)]
pub struct Framer {
    buffer: Vec<u8>,
    /// Where the message being read begins.
    start: usize,
    /// Up to where it was looked at.
    seen: usize,
    /// The closing brackets that are due, innermost last.
    open: Vec<u8>,
    in_string: bool,
    escaped: bool,
    limit: usize,
}

impl Framer {
    /// A framer that accepts messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Framer {
            buffer: Vec::new(),
            start: 0,
            seen: 0,
            open: Vec::new(),
            in_string: false,
            escaped: false,
            limit,
        }
    }

    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer, to read into its end; call [`Framer::message`] after.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.make_room();
        &mut self.buffer
    }

    /// Whether bytes of an incomplete message are waiting.
    pub fn is_partial(&self) -> bool {
        !self.open.is_empty()
    }

    fn make_room(&mut self) {
        if self.start == self.buffer.len() {
            const KEEP_MAX: usize = 1 << 20;
            if self.buffer.capacity() > KEEP_MAX {
                self.buffer = Vec::new();
            }
            self.buffer.clear();
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
        } else {
            return;
        }
        self.seen -= self.start;
        self.start = 0;
    }

    /// The next whole message, if one is there.
    ///
    /// # Errors
    /// The stream cannot go on: the connection is to be closed.
    pub fn message(&mut self) -> Result<Option<&[u8]>, FramingError> {
        if self.open.is_empty() && !self.begin()? {
            return Ok(None);
        }
        while self.seen < self.buffer.len() {
            if self.in_string {
                self.skip_string();
                continue;
            }
            let byte = self.buffer[self.seen];
            self.seen += 1;
            match byte {
                b'"' => self.in_string = true,
                b'[' | b'{' => self.open_bracket(byte)?,
                b']' | b'}' => {
                    if self.open.pop() != Some(byte) {
                        return Err(FramingError::Unbalanced);
                    }
                    if self.open.is_empty() {
                        let start = std::mem::replace(&mut self.start, self.seen);
                        return Ok(Some(&self.buffer[start..self.seen]));
                    }
                }
                _ => {}
            }
        }
        self.check_beginning()?;
        if self.buffer.len() - self.start > self.limit {
            return Err(FramingError::TooLong { limit: self.limit });
        }
        Ok(None)
    }

    /// Finds out early that the beginning of a message cannot become JSON, so that its sender is not left waiting. Only
    /// a short beginning is looked at, because it is looked at again after each read.
    fn check_beginning(&self) -> Result<(), FramingError> {
        let beginning = &self.buffer[self.start..];
        if beginning.len() > BEGINNING_BYTES_MAX {
            return Ok(());
        }
        match Json::parse(beginning) {
            Err(error) if !error.is_incomplete => Err(FramingError::NotJson(error)),
            _ => Ok(()),
        }
    }

    /// Skips white space before a message and takes its first bracket.
    fn begin(&mut self) -> Result<bool, FramingError> {
        while let Some(&byte) = self.buffer.get(self.seen) {
            self.seen += 1;
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.start = self.seen,
                b'{' | b'[' => {
                    self.open_bracket(byte)?;
                    return Ok(true);
                }
                _ => return Err(FramingError::NotAMessage { byte }),
            }
        }
        Ok(false)
    }

    fn open_bracket(&mut self, byte: u8) -> Result<(), FramingError> {
        if self.open.len() == DEPTH_MAX {
            return Err(FramingError::TooDeep);
        }
        self.open.push(if byte == b'[' { b']' } else { b'}' });
        Ok(())
    }

    fn skip_string(&mut self) {
        if self.escaped {
            self.escaped = false;
            self.seen += 1;
            return;
        }
        match memchr::memchr2(b'"', b'\\', &self.buffer[self.seen..]) {
            None => self.seen = self.buffer.len(),
            Some(at) => {
                self.seen += at + 1;
                if self.buffer[self.seen - 1] == b'\\' {
                    self.escaped = true;
                } else {
                    self.in_string = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_cut() {
        let stream = br#" {"a":"x\"}\\"}[[1],"]"] {"b":{}}"#;
        let want: [&[u8]; 3] = [br#"{"a":"x\"}\\"}"#, br#"[[1],"]"]"#, br#"{"b":{}}"#];
        for size in 1..stream.len() {
            let mut framer = Framer::new(100);
            let mut got: Vec<Vec<u8>> = Vec::new();
            for piece in stream.chunks(size) {
                framer.push(piece);
                while let Some(message) = framer.message().unwrap() {
                    got.push(message.to_vec());
                }
            }
            assert_eq!(got, want, "pieces of {size}");
        }
    }

    #[test]
    fn what_ends_the_stream() {
        for (text, want) in [
            ("\"x\"", FramingError::NotAMessage { byte: b'"' }),
            ("[}", FramingError::Unbalanced),
            (&"[".repeat(DEPTH_MAX + 1), FramingError::TooDeep),
            (&format!("[\"{}", "x".repeat(2000)), FramingError::TooLong { limit: 1999 }),
        ] {
            let mut framer = Framer::new(1999);
            framer.push(text.as_bytes());
            assert_eq!(framer.message(), Err(want), "{text:.20}");
        }
    }
}
