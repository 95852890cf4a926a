//! What a session has still to send.
//!
//! Small messages are put together into buffers; large texts that several sessions send are shared. A session with more
//! than [`OUTPUT_BYTES_MAX`] to send takes no more updates from the history and reads no more requests.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Bytes that may wait to be sent before a session stops making more.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Where one buffer ends and the next begins.
const BUFFER_BYTES: usize = 64 << 10;

/// The most buffers given to the system at once.
const SLICES_MAX: usize = 16;

#[derive(Debug)]
enum Chunk {
    Own(String),
    Shared(Arc<str>),
}

impl Chunk {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Chunk::Own(text) => text.as_bytes(),
            Chunk::Shared(text) => text.as_bytes(),
        }
    }
}

/// The bytes to send, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    chunks: VecDeque<Chunk>,
    /// How much of the first chunk is sent.
    sent: usize,
    bytes: usize,
}

impl Output {
    /// Appends what `write` writes, which may be nothing.
    pub(crate) fn append<T>(&mut self, write: impl FnOnce(&mut String) -> T) -> T {
        if !matches!(self.chunks.back(), Some(Chunk::Own(last)) if last.len() < BUFFER_BYTES) {
            self.chunks.push_back(Chunk::Own(String::new()));
        }
        let Some(Chunk::Own(last)) = self.chunks.back_mut() else {
            unreachable!("a buffer of our own was pushed just now");
        };
        let before = last.len();
        let result = write(last);
        self.bytes += last.len() - before;
        result
    }

    /// Appends a text that others may be sending, too.
    pub(crate) fn append_shared(&mut self, text: Arc<str>) {
        self.bytes += text.len();
        self.chunks.push_back(Chunk::Shared(text));
    }

    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether more may be made.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < OUTPUT_BYTES_MAX
    }

    /// The next bytes to send, in a few pieces.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut skip = self.sent;
        let mut slices = Vec::with_capacity(self.chunks.len().min(SLICES_MAX));
        for chunk in self.chunks.iter().take(SLICES_MAX) {
            slices.push(IoSlice::new(&chunk.as_bytes()[skip..]));
            skip = 0;
        }
        slices
    }

    /// Takes away what was sent.
    pub(crate) fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.chunks.front() {
            let left = first.as_bytes().len() - self.sent;
            if count < left {
                self.sent += count;
                return;
            }
            count -= left;
            self.sent = 0;
            let is_last = self.chunks.len() == 1;
            match self.chunks.front_mut() {
                // The last buffer is kept to be filled again.
                Some(Chunk::Own(text)) if is_last && text.capacity() <= 2 * BUFFER_BYTES => {
                    text.clear();
                    return;
                }
                _ => self.chunks.pop_front(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_however_they_are_taken() {
        for step in [1, 3, 7, 1000] {
            let mut output = Output::default();
            let mut want = String::new();
            for i in 0..40 {
                let text = format!("message {i};");
                want.push_str(&text);
                if i % 3 == 0 {
                    output.append_shared(text.into());
                } else {
                    output.append(|out| out.push_str(&text));
                }
            }
            let mut got = Vec::new();
            while !output.is_empty() {
                let taken: Vec<u8> = output.slices().iter().flat_map(|s| s.to_vec()).take(step).collect();
                output.advance(taken.len());
                got.extend(taken);
            }
            assert_eq!(String::from_utf8(got).unwrap(), want, "steps of {step}");
            output.append(|out| out.push('x'));
            assert!(!output.is_empty());
        }
    }
}
