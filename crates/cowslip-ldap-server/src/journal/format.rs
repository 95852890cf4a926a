//! The bytes of journal files: a header, then batches one behind the other.
//!
//! All numbers are little-endian. A batch begins at a multiple of [`ALIGNMENT`]; its checksum covers its header and its
//! payload and is seeded with a random number of the file, as is the mark that its header carries. So what an earlier
//! life of the same file left, or what somebody has put into a value to look like a batch, is never taken for one.
//! Invariant: whoever reads checks the lengths before he uses them.

use std::fmt;

use twox_hash::XxHash3_64;
use uuid::Uuid;

/// The length of a journal file's header.
pub(super) const FILE_HEADER_BYTES: usize = 64;
/// The length of a batch's header.
pub(super) const FRAME_HEADER_BYTES: usize = 56;
/// Batches begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// The version of the format that is written here.
pub(super) const VERSION: u32 = 1;
/// The most bytes of payload that a reader accepts in one batch, whatever the writer was told.
pub(super) const FRAME_PAYLOAD_BYTES_MAX: usize = 64 << 20;

const FILE_MAGIC: [u8; 8] = *b"cwl-jrnl";
/// Where a batch's mark lies in its header.
const MARK_AT: usize = 8;
/// Where its payload's length lies in it.
pub(super) const LENGTH_AT: usize = 52;

/// A checksum of bytes.
pub(super) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Takes the next bytes of an input.
pub(super) fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*taken)
}

pub(super) fn take_u32(input: &mut &[u8]) -> Option<u32> {
    take(input).map(u32::from_le_bytes)
}

pub(super) fn take_u64(input: &mut &[u8]) -> Option<u64> {
    take(input).map(u64::from_le_bytes)
}

/// A length as offsets are counted.
pub(super) fn bytes(length: usize) -> u64 {
    length as u64
}

/// The name of the state after a commit, which is the same whenever it is asked for.
pub(super) fn position(database: Uuid, commit: u64) -> Uuid {
    let mut named = [0; 24];
    named[..16].copy_from_slice(database.as_bytes());
    named[16..].copy_from_slice(&commit.to_le_bytes());
    let (high, low) = (checksum(1, &named), checksum(2, &named));
    uuid::Builder::from_custom_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
}

/// What makes something no header, batch or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It ends too early.
    Short,
    /// What stands there was never one.
    Unmarked,
    /// It was written by a version of the format that is not known here.
    Version {
        /// The version.
        found: u32,
    },
    /// Its checksum is another one.
    Checksum,
    /// It says that it belongs somewhere else.
    Misplaced,
    /// It is larger than anything that is written.
    Length {
        /// What it says its payload's length is, in bytes.
        bytes: u64,
    },
    /// Its checksum is right and its content contradicts itself or what comes before it.
    Inconsistent,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("it ends too early"),
            Self::Unmarked => f.write_str("what is written there is something else"),
            Self::Version { found } => {
                write!(f, "its format has version {found}, and only {VERSION} is known")
            }
            Self::Checksum => f.write_str("its checksum is wrong"),
            Self::Misplaced => f.write_str("it belongs to another file or database"),
            Self::Length { bytes } => write!(f, "its length of {bytes} bytes is impossible"),
            Self::Inconsistent => f.write_str("it does not go on where what comes before it ends"),
        }
    }
}

impl std::error::Error for Fault {}

/// How journal files and snapshots begin: mark, version, database, three numbers, checksum.
pub(super) fn encode_header(magic: &[u8; 8], database: Uuid, numbers: [u64; 3]) -> [u8; FILE_HEADER_BYTES] {
    let mut out = [0; FILE_HEADER_BYTES];
    out[..8].copy_from_slice(magic);
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[16..32].copy_from_slice(database.as_bytes());
    for (place, number) in out[32..56].chunks_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let check = checksum(0, &out[..56]);
    out[56..].copy_from_slice(&check.to_le_bytes());
    out
}

/// What a header says that begins with this mark.
pub(super) fn decode_header(magic: &[u8; 8], file: &[u8]) -> Result<(Uuid, [u64; 3]), Fault> {
    let header: &[u8; FILE_HEADER_BYTES] = file.first_chunk().ok_or(Fault::Short)?;
    let mut input = &header[..];
    let fields = (|| {
        let found = take::<8>(&mut input)?;
        let version = take_u32(&mut input)?;
        take_u32(&mut input)?;
        let database = Uuid::from_bytes(take(&mut input)?);
        let numbers = [take_u64(&mut input)?, take_u64(&mut input)?, take_u64(&mut input)?];
        Some((found, version, database, numbers, take_u64(&mut input)?))
    })();
    let (found, version, database, numbers, check) = fields.ok_or(Fault::Short)?;
    if found != *magic {
        return Err(Fault::Unmarked);
    }
    if checksum(0, &header[..56]) != check {
        return Err(Fault::Checksum);
    }
    if version != VERSION {
        return Err(Fault::Version { found: version });
    }
    Ok((database, numbers))
}

/// The beginning of a journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) database: Uuid,
    /// The number that its name has, too.
    pub(super) number: u64,
    /// Random, new whenever the file is used again.
    pub(super) seed: u64,
}

impl FileHeader {
    pub(super) fn new(database: Uuid, number: u64) -> Self {
        Self { database, number, seed: Uuid::new_v4().as_u64_pair().1 }
    }

    pub(super) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        encode_header(&FILE_MAGIC, self.database, [self.number, self.seed, 0])
    }

    pub(super) fn decode(file: &[u8]) -> Result<Self, Fault> {
        let (database, [number, seed, _]) = decode_header(&FILE_MAGIC, file)?;
        Ok(Self { database, number, seed })
    }

    /// What every batch of this file carries.
    pub(super) fn mark(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = checksum(self.seed, b"mark").to_le_bytes();
        [a, b, c, d]
    }
}

/// What a batch's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The records of whole commits, each behind its length.
    Whole,
    /// The beginning of the record of one large commit.
    First,
    /// A part of it.
    Middle,
    /// Its end, which makes it count.
    Last,
}

/// The beginning of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: FrameKind,
    /// The file's number.
    pub(super) number: u64,
    /// Batches are numbered without gaps.
    pub(super) sequence: u64,
    /// The number of the first commit in it, or of the one of which it is a part.
    pub(super) first_commit: u64,
    /// All batches below this number were durable before this one was written.
    pub(super) synced: u64,
    /// How many commits it completes.
    pub(super) commits: u32,
    /// The length of its payload.
    pub(super) length: u32,
}

/// A batch that was found to be whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) header: FrameHeader,
    pub(super) payload: &'a [u8],
}

impl FrameHeader {
    /// Fills in the header of a batch whose payload is in place behind it, with its padding.
    pub(super) fn seal(&self, file: &FileHeader, frame: &mut [u8]) {
        debug_assert_eq!(frame.len(), frame_bytes(self.length as usize), "payload and padding are in place");
        let kind: u32 = match self.kind {
            FrameKind::Whole => 1,
            FrameKind::First => 2,
            FrameKind::Middle => 3,
            FrameKind::Last => 4,
        };
        frame[MARK_AT..12].copy_from_slice(&file.mark());
        frame[12..16].copy_from_slice(&kind.to_le_bytes());
        frame[16..24].copy_from_slice(&self.number.to_le_bytes());
        frame[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        frame[32..40].copy_from_slice(&self.first_commit.to_le_bytes());
        frame[40..48].copy_from_slice(&self.synced.to_le_bytes());
        frame[48..52].copy_from_slice(&self.commits.to_le_bytes());
        frame[LENGTH_AT..FRAME_HEADER_BYTES].copy_from_slice(&self.length.to_le_bytes());
        let check = checksum(file.seed, &frame[MARK_AT..]);
        frame[..MARK_AT].copy_from_slice(&check.to_le_bytes());
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let kind = match take_u32(input)? {
            1 => FrameKind::Whole,
            2 => FrameKind::First,
            3 => FrameKind::Middle,
            4 => FrameKind::Last,
            _ => return None,
        };
        Some(Self {
            kind,
            number: take_u64(input)?,
            sequence: take_u64(input)?,
            first_commit: take_u64(input)?,
            synced: take_u64(input)?,
            commits: take_u32(input)?,
            length: take_u32(input)?,
        })
    }
}

/// The length that a batch with so much payload takes in a file.
pub(super) fn frame_bytes(payload: usize) -> usize {
    (FRAME_HEADER_BYTES + payload).next_multiple_of(ALIGNMENT)
}

impl<'a> Frame<'a> {
    /// The length that it takes in its file.
    pub(super) fn bytes(&self) -> usize {
        frame_bytes(self.payload.len())
    }

    /// The batch that begins at an offset of a file.
    pub(super) fn read(file: &FileHeader, content: &'a [u8], offset: usize) -> Result<Self, Fault> {
        let rest = content.get(offset..).ok_or(Fault::Short)?;
        let (mut input, check, mark) = (rest, rest.first_chunk().ok_or(Fault::Short)?, file.mark());
        take_u64(&mut input);
        if take::<4>(&mut input).ok_or(Fault::Short)? != mark {
            return Err(Fault::Unmarked);
        }
        if rest.len() < FRAME_HEADER_BYTES {
            return Err(Fault::Short);
        }
        let header = FrameHeader::decode(&mut input).ok_or(Fault::Unmarked)?;
        let length = header.length as usize;
        if length > FRAME_PAYLOAD_BYTES_MAX {
            return Err(Fault::Length { bytes: bytes(length) });
        }
        let frame = rest.get(..frame_bytes(length)).ok_or(Fault::Short)?;
        if checksum(file.seed, &frame[MARK_AT..]).to_le_bytes() != *check {
            return Err(Fault::Checksum);
        }
        if header.number != file.number {
            return Err(Fault::Misplaced);
        }
        Ok(Self { header, payload: &frame[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + length] })
    }

    /// The records of whole commits in it.
    pub(super) fn records(&self) -> Records<'a> {
        Records { rest: self.payload }
    }
}

/// The offsets, at or behind `from`, where something carries the mark of the file's batches, whole or not.
pub(super) fn marks(file: &FileHeader, content: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let mark = file.mark();
    let from = from.next_multiple_of(ALIGNMENT).min(content.len());
    let places = content[from..].chunks_exact(ALIGNMENT).skip(1).enumerate();
    places.filter(move |(_, place)| place[..4] == mark).map(move |(at, _)| from + at * ALIGNMENT)
}

/// Walks over records that stand behind their lengths.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a [u8], Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = take_u32(&mut self.rest).and_then(|length| self.rest.split_at_checked(length as usize));
        match record {
            Some((record, rest)) => {
                self.rest = rest;
                Some(Ok(record))
            }
            None => {
                self.rest = &[];
                Some(Err(Fault::Inconsistent))
            }
        }
    }
}

/// Checks a journal file's bytes; gives the number of whole batches in it. For tests with bytes from anywhere.
///
/// # Errors
/// The bytes are no journal file, or a batch that is whole contradicts itself.
pub fn decode_journal_file(content: &[u8]) -> Result<usize, Fault> {
    let file = FileHeader::decode(content)?;
    let mut offset = FILE_HEADER_BYTES;
    let mut whole = 0;
    while let Ok(frame) = Frame::read(&file, content, offset) {
        if frame.header.kind == FrameKind::Whole {
            frame.records().try_for_each(|record| record.map(drop))?;
        }
        offset += frame.bytes();
        whole += 1;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> FileHeader {
        FileHeader::new(Uuid::from_u128(7), 3)
    }

    fn frame(file: &FileHeader, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; FRAME_HEADER_BYTES];
        frame.extend(payload);
        frame.resize(frame_bytes(payload.len()), 0);
        header(payload).seal(file, &mut frame);
        frame
    }

    fn header(payload: &[u8]) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Whole,
            number: 3,
            sequence: 9,
            first_commit: 20,
            synced: 8,
            commits: 1,
            length: u32::try_from(payload.len()).expect("a test's payload is small"),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let file = file();
        assert_eq!(FileHeader::decode(&file.encode()), Ok(file));
        for length in 0..20 {
            let payload = vec![5; length];
            let written = frame(&file, &payload);
            let read = Frame::read(&file, &written, 0).expect("it was written just now");
            assert_eq!(
                (read.header, read.payload, read.bytes()),
                (header(&payload), &payload[..], written.len())
            );
        }
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let file = file();
        let written = frame(&file, b"\x04\0\0\0four");
        let headers = file.encode();
        for bit in 0..8 * headers.len() {
            let mut headers = headers;
            headers[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::decode(&headers).is_err(), "bit {bit}");
        }
        for bit in 0..8 * written.len() {
            let mut changed = written.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::read(&file, &changed, 0).is_err(), "bit {bit}");
        }
        for length in 0..written.len() {
            assert!(Frame::read(&file, &written[..length], 0).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn another_life_of_the_file_has_other_batches() {
        let (old, new) = (file(), file());
        let written = frame(&old, b"\x04\0\0\0four");
        assert_eq!(Frame::read(&new, &written, 0).err(), Some(Fault::Unmarked));
        assert_eq!(marks(&old, &[&[0; 16][..], &written].concat(), 0).collect::<Vec<_>>(), [16]);
        assert_eq!(marks(&new, &[&[0; 16][..], &written].concat(), 0).count(), 0);
    }

    #[test]
    fn records_that_do_not_fit_are_inconsistent() {
        for payload in [&b"\x05\0\0\0four"[..], b"\x01\0\0", b"\xff\xff\xff\xff"] {
            assert!(Records { rest: payload }.any(|record| record == Err(Fault::Inconsistent)));
        }
    }

    #[test]
    fn positions_are_steady_and_differ() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(position(one, 1), position(one, 1));
        assert_ne!(position(one, 1), position(one, 2));
        assert_ne!(position(one, 1), position(other, 1));
        assert_eq!(position(one, 1).get_version_num(), 8);
    }
}
