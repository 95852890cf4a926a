//! A batch's commits as bytes, before it is known which files they go to.
//!
//! Invariants: whole commits share a frame as long as it stays within the maximum; a commit that is longer than that is
//! split over frames that hold nothing else, so that the log can end behind any commit.

use std::ops::Range;

use cowslip_engine::{Commit, Model};

use super::codec::Codec;
use super::error::CodecError;
use super::format::{FRAME_HEADER_BYTES, FrameKind, frame_bytes};

/// The capacity that is kept from one batch to the next.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Frames without their headers' content.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) buffer: Vec<u8>,
    pub(super) frames: Vec<Encoded>,
    /// A record that has to be moved.
    moved: Vec<u8>,
}

/// One frame in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    /// Header, payload and padding.
    pub(super) range: Range<usize>,
    pub(super) kind: FrameKind,
    pub(super) first_commit: u64,
    pub(super) commits: u32,
    pub(super) payload: u32,
}

impl Encoder {
    /// Encodes a batch that comes behind a number of commits.
    pub(super) fn encode<M: Model, C: Codec<M>>(
        &mut self,
        codec: &C,
        batch: &[Commit<M>],
        commits: u64,
        payload_max: usize,
    ) -> Result<(), CodecError> {
        self.buffer.clear();
        self.frames.clear();
        let mut open: Option<Encoded> = None;
        for (number, commit) in (commits + 1..).zip(batch) {
            let frame = open.take().unwrap_or_else(|| self.begin(FrameKind::Whole, number));
            let start = self.buffer.len();
            self.buffer.extend([0; 4]);
            codec.encode_commit(commit, &mut self.buffer)?;
            let length = self.buffer.len() - start - 4;
            if self.buffer.len() - frame.range.start - FRAME_HEADER_BYTES <= payload_max {
                open = Some(self.accept(frame, start, length)?);
                continue;
            }
            // It doesn't fit: the frame ends before it.
            self.moved.clear();
            self.moved.extend_from_slice(&self.buffer[start + 4..]);
            self.buffer.truncate(start);
            if frame.commits == 0 {
                self.buffer.truncate(frame.range.start);
            } else {
                self.end(frame)?;
            }
            open = self.place_moved(number, payload_max)?;
        }
        if let Some(frame) = open {
            self.end(frame)?;
        }
        Ok(())
    }

    /// Gives back memory that few batches need.
    pub(super) fn shrink(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.moved.clear();
        self.moved.shrink_to(BUFFER_BYTES_KEPT);
    }

    fn begin(&mut self, kind: FrameKind, first_commit: u64) -> Encoded {
        let start = self.buffer.len();
        self.buffer.resize(start + FRAME_HEADER_BYTES, 0);
        Encoded { range: start..start, kind, first_commit, commits: 0, payload: 0 }
    }

    fn accept(&mut self, frame: Encoded, start: usize, length: usize) -> Result<Encoded, CodecError> {
        let length = u32::try_from(length).map_err(|_| too_long())?;
        self.buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(Encoded { commits: frame.commits + 1, ..frame })
    }

    fn end(&mut self, mut frame: Encoded) -> Result<(), CodecError> {
        let payload = self.buffer.len() - frame.range.start - FRAME_HEADER_BYTES;
        frame.payload = u32::try_from(payload).map_err(|_| too_long())?;
        frame.range.end = frame.range.start + frame_bytes(payload);
        self.buffer.resize(frame.range.end, 0);
        self.frames.push(frame);
        Ok(())
    }

    /// Puts the record that was moved into a frame that stays open, or into several of its own.
    fn place_moved(&mut self, number: u64, payload_max: usize) -> Result<Option<Encoded>, CodecError> {
        let moved = std::mem::take(&mut self.moved);
        let placed = if moved.len() + 4 <= payload_max {
            let frame = self.begin(FrameKind::Whole, number);
            let start = self.buffer.len();
            self.buffer.extend([0; 4]);
            self.buffer.extend_from_slice(&moved);
            self.accept(frame, start, moved.len()).map(Some)
        } else {
            self.split(&moved, number, payload_max).map(|()| None)
        };
        self.moved = moved;
        placed
    }

    fn split(&mut self, record: &[u8], number: u64, payload_max: usize) -> Result<(), CodecError> {
        // Two at least, because it is more than fits into one.
        let part_bytes = payload_max.min(record.len().div_ceil(2)).max(1);
        let parts = record.len().div_ceil(part_bytes);
        for (at, part) in record.chunks(part_bytes).enumerate() {
            let (kind, commits) = match at {
                0 => (FrameKind::First, 0),
                _ if at + 1 == parts => (FrameKind::Last, 1),
                _ => (FrameKind::Middle, 0),
            };
            let frame = self.begin(kind, number);
            self.buffer.extend_from_slice(part);
            self.end(Encoded { commits, ..frame })?;
        }
        Ok(())
    }
}

fn too_long() -> CodecError {
    CodecError::new("the record of a commit is too long")
}
