//! Lines of LDIF: continuations joined, comments left out, numbers kept.

use std::io::BufRead;

use super::{LdifError, LdifErrorKind};

/// Reads logical lines into one buffer.
pub(super) struct Lines<R> {
    input: R,
    /// The number of the physical line that is read next, the first being 1.
    next_line: u64,
    line: Vec<u8>,
    line_bytes_max: usize,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line with something on it: the text is [`Lines::text`].
    Text,
    /// An empty line, which ends a record.
    Blank,
    /// The input's end.
    End,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, line_bytes_max: usize) -> Self {
        Self { input, next_line: 1, line: Vec::new(), line_bytes_max }
    }

    /// The text of the line that was read last, without its end.
    pub(super) fn text(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next logical line and says where it began.
    pub(super) fn next(&mut self) -> Result<(Line, u64), LdifError> {
        loop {
            let number = self.next_line;
            self.line.clear();
            if !self.physical(number)? {
                return Ok((Line::End, number));
            }
            if self.line.is_empty() {
                return Ok((Line::Blank, number));
            }
            if self.line[0] == b' ' {
                return Err(LdifError { line: number, kind: LdifErrorKind::LoneContinuation });
            }
            while self.peek(number)? == Some(b' ') {
                self.input.consume(1);
                self.physical(number)?;
            }
            if self.line[0] != b'#' {
                return Ok((Line::Text, number));
            }
        }
    }

    fn peek(&mut self, line: u64) -> Result<Option<u8>, LdifError> {
        loop {
            match self.input.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(LdifError { line, kind: LdifErrorKind::Io(e) }),
            }
        }
    }

    /// Appends one physical line without its end; answers whether there was one. Of a line that is too long, the rest
    /// is read and dropped, so that the next line can be read.
    fn physical(&mut self, number: u64) -> Result<bool, LdifError> {
        let mut is_anything = false;
        let mut is_too_long = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(LdifError { line: number, kind: LdifErrorKind::Io(e) }),
            };
            if buffer.is_empty() {
                break;
            }
            is_anything = true;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= self.line.len() + part.len() > self.line_bytes_max;
            if !is_too_long {
                self.line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.input.consume(consumed);
            if end.is_some() {
                break;
            }
        }
        self.next_line += u64::from(is_anything);
        if is_too_long {
            self.line.clear();
            return Err(LdifError {
                line: number,
                kind: LdifErrorKind::LineTooLong { max: self.line_bytes_max },
            });
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(is_anything)
    }
}
