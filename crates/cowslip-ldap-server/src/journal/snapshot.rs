//! Snapshot files: a whole root as a stream of records, in checked blocks.
//!
//! A header names the database, the journal file from which on batches are to be replayed, and the numbers of the last
//! commit and the next batch; an end block counts what came before it. Invariants: a snapshot has its final name only
//! after all of it was synced; a record never crosses a block, so a record larger than a block makes a larger block.

use std::io;

use cowslip_engine::storage::StorageFile;
use uuid::Uuid;

use super::error::CodecError;
use super::format::{
    FILE_HEADER_BYTES, Fault, bytes, checksum, decode_header, encode_header, take_u32, take_u64,
};
use super::log::Start;

/// The length at which a block of a snapshot is written.
pub const BLOCK_BYTES: usize = 1 << 20;
/// The most bytes of payload in one block, and so of one record.
pub const BLOCK_BYTES_MAX: usize = 1 << 30;
/// A snapshot is synced as often as this many bytes were written, so that no sync of the journal has to wait for long
/// until the device has taken what is before it.
const SYNC_BYTES: u64 = 32 << 20;

const MAGIC: [u8; 8] = *b"cwl-snap";
const BLOCK_HEADER_BYTES: usize = 24;
const RECORDS: u32 = 1;
const END: u32 = 2;

/// What a snapshot says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotHeader {
    pub(super) database: Uuid,
    /// The number of the first journal file to be replayed, which the snapshot's name has, too.
    pub(super) number: u64,
    /// The number of the last commit in it.
    pub(super) commits: u64,
    /// The number of the first batch that is not in it.
    pub(super) sequence: u64,
}

impl SnapshotHeader {
    /// Where the log goes on behind it.
    pub(super) fn start(&self) -> Start {
        let Self { database, number, commits, sequence } = *self;
        Start { database, number, sequence, commits }
    }

    fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        encode_header(&MAGIC, self.database, [self.number, self.commits, self.sequence])
    }

    fn decode(header: &[u8]) -> Result<Self, Fault> {
        let (database, [number, commits, sequence]) = decode_header(&MAGIC, header)?;
        Ok(Self { database, number, commits, sequence })
    }
}

/// Takes the records of a snapshot.
pub struct SnapshotWriter<'a> {
    file: &'a dyn StorageFile,
    seed: u64,
    end: u64,
    synced: u64,
    block: Vec<u8>,
    blocks: u64,
    records: u64,
}

impl<'a> SnapshotWriter<'a> {
    pub(super) fn new(file: &'a dyn StorageFile, header: &SnapshotHeader) -> io::Result<Self> {
        file.write_at(0, &header.encode())?;
        let block = vec![0; BLOCK_HEADER_BYTES];
        let end = bytes(FILE_HEADER_BYTES);
        Ok(Self { file, seed: header.number, end, synced: 0, block, blocks: 0, records: 0 })
    }

    /// Writes one record, which the function appends to what it is given and leaves alone otherwise.
    ///
    /// # Errors
    /// The record is larger than [`BLOCK_BYTES_MAX`], or the file cannot be written.
    pub fn record(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let start = self.block.len();
        self.block.extend([0; 4]);
        fill(&mut self.block);
        debug_assert!(self.block.len() >= start + 4, "the function only appends");
        let length = self.block.len() - start - 4;
        let length = u32::try_from(length).ok().filter(|length| *length as usize <= BLOCK_BYTES_MAX / 2);
        let length = length.ok_or_else(|| io::Error::other("a record is too large for a snapshot"))?;
        self.block[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        if self.block.len() >= BLOCK_BYTES { self.flush(RECORDS) } else { Ok(()) }
    }

    fn flush(&mut self, kind: u32) -> io::Result<()> {
        let length = u32::try_from(self.block.len() - BLOCK_HEADER_BYTES).map_err(io::Error::other)?;
        self.block[8..12].copy_from_slice(&kind.to_le_bytes());
        self.block[12..16].copy_from_slice(&length.to_le_bytes());
        self.block[16..24].copy_from_slice(&self.blocks.to_le_bytes());
        let check = checksum(self.seed, &self.block[8..]);
        self.block[..8].copy_from_slice(&check.to_le_bytes());
        self.file.write_at(self.end, &self.block)?;
        self.end += bytes(self.block.len());
        self.blocks += 1;
        self.block.truncate(BLOCK_HEADER_BYTES);
        self.block.shrink_to(2 * BLOCK_BYTES);
        if self.end - self.synced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.synced = self.end;
        }
        Ok(())
    }

    /// Completes and syncs the file; gives its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        if self.block.len() > BLOCK_HEADER_BYTES {
            self.flush(RECORDS)?;
        }
        self.block.extend(self.blocks.to_le_bytes());
        self.block.extend(self.records.to_le_bytes());
        self.flush(END)?;
        self.file.sync_data()?;
        Ok(self.end)
    }
}

/// Why a snapshot was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file cannot be read.
    #[error("cannot read the snapshot: {source}")]
    Io {
        /// What went wrong.
        #[from]
        source: io::Error,
    },
    /// Something in it is damaged.
    #[error("the snapshot is damaged: {fault}")]
    Damaged {
        /// What is wrong.
        #[from]
        fault: Fault,
    },
    /// A record means nothing.
    #[error("cannot make sense of a record: {source}")]
    Content {
        /// What is wrong with it.
        #[from]
        source: CodecError,
    },
}

/// Gives the records of a snapshot.
pub struct SnapshotReader<'a> {
    file: &'a dyn StorageFile,
    header: SnapshotHeader,
    file_bytes: u64,
    /// Where the block in hand begins, and the one after it.
    start: u64,
    end: u64,
    block: Vec<u8>,
    /// Where the next record begins in the block.
    at: usize,
    blocks: u64,
    records: u64,
    is_done: bool,
}

impl<'a> SnapshotReader<'a> {
    pub(super) fn new(file: &'a dyn StorageFile) -> Result<Self, SnapshotError> {
        let file_bytes = file.len()?;
        let mut header = [0; FILE_HEADER_BYTES];
        if file.read_at(0, &mut header)? < FILE_HEADER_BYTES {
            return Err(Fault::Short.into());
        }
        let header = SnapshotHeader::decode(&header)?;
        let end = bytes(FILE_HEADER_BYTES);
        let (block, at) = (Vec::new(), 0);
        Ok(Self { file, header, file_bytes, start: 0, end, block, at, blocks: 0, records: 0, is_done: false })
    }

    pub(super) fn header(&self) -> &SnapshotHeader {
        &self.header
    }

    /// The number of the last commit that is in the snapshot.
    pub fn commits(&self) -> u64 {
        self.header.commits
    }

    /// The length of the file in bytes, for showing progress.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Where the block begins from which the last record came, in bytes.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// How many records were read so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn record(&mut self) -> Result<Option<&[u8]>, SnapshotError> {
        while self.at >= self.block.len() {
            if self.is_done {
                return Ok(None);
            }
            self.load()?;
        }
        let mut rest = &self.block[self.at..];
        let length = take_u32(&mut rest).ok_or(Fault::Inconsistent)? as usize;
        let record = rest.get(..length).ok_or(Fault::Inconsistent)?;
        self.at += 4 + length;
        self.records += 1;
        Ok(Some(record))
    }

    /// Takes the next block in hand.
    fn load(&mut self) -> Result<(), SnapshotError> {
        self.start = self.end;
        let mut header = [0; BLOCK_HEADER_BYTES];
        if self.file.read_at(self.start, &mut header)? < BLOCK_HEADER_BYTES {
            return Err(Fault::Short.into());
        }
        let mut input = &header[8..];
        let (kind, length) = (take_u32(&mut input).unwrap_or(0), take_u32(&mut input).unwrap_or(0));
        let room = self.file_bytes.saturating_sub(self.start + bytes(BLOCK_HEADER_BYTES));
        if u64::from(length) > room || length as usize > BLOCK_BYTES_MAX {
            return Err(Fault::Length { bytes: length.into() }.into());
        }
        self.block.clear();
        self.block.resize(BLOCK_HEADER_BYTES + length as usize, 0);
        if self.file.read_at(self.start, &mut self.block)? < self.block.len() {
            return Err(Fault::Short.into());
        }
        let check = checksum(self.header.number, &self.block[8..]);
        if self.block[..8] != check.to_le_bytes() {
            return Err(Fault::Checksum.into());
        }
        if self.block[16..24] != self.blocks.to_le_bytes() {
            return Err(Fault::Misplaced.into());
        }
        self.end = self.start + bytes(self.block.len());
        self.at = BLOCK_HEADER_BYTES;
        match kind {
            RECORDS => self.blocks += 1,
            END => self.finish()?,
            _ => return Err(Fault::Inconsistent.into()),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SnapshotError> {
        let mut totals = &self.block[self.at..];
        let is_complete =
            take_u64(&mut totals) == Some(self.blocks) && take_u64(&mut totals) == Some(self.records);
        if !is_complete {
            return Err(Fault::Inconsistent.into());
        }
        self.at = self.block.len();
        self.is_done = true;
        Ok(())
    }

    /// Reads what is left, and so checks it.
    pub(super) fn drain(&mut self) -> Result<(), SnapshotError> {
        while self.record()?.is_some() {}
        Ok(())
    }
}

/// Checks a snapshot file's bytes; gives the number of records in it. For tests with bytes from anywhere.
///
/// # Errors
/// The bytes are no snapshot, or a damaged one.
pub fn decode_snapshot_file(content: &[u8]) -> Result<u64, SnapshotError> {
    let content = Bytes(content);
    let mut reader = SnapshotReader::new(&content)?;
    reader.drain()?;
    Ok(reader.records())
}

/// Bytes in memory as a file that is only read.
struct Bytes<'a>(&'a [u8]);

impl StorageFile for Bytes<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(bytes(self.0.len()))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cowslip_engine::sim::SimDisk;
    use cowslip_engine::storage::{OpenMode, Storage};

    use super::*;

    const HEADER: SnapshotHeader =
        SnapshotHeader { database: Uuid::from_u128(5), number: 4, commits: 30, sequence: 20 };

    fn written(records: &[Vec<u8>]) -> Vec<u8> {
        let disk = SimDisk::new();
        let path = Path::new("/s");
        let file = disk.open(path, OpenMode::Create).expect("the disk works");
        let mut writer = SnapshotWriter::new(&*file, &HEADER).expect("the disk works");
        for record in records {
            writer.record(|out| out.extend(record)).expect("the disk works");
        }
        let length = writer.finish().expect("the disk works");
        assert_eq!(length, file.len().expect("the disk works"));
        disk.read(path).expect("the disk works")
    }

    #[test]
    fn records_of_all_sizes_come_back() {
        for sizes in [&[][..], &[0], &[3, 0, 5], &[BLOCK_BYTES / 3; 10], &[3 * BLOCK_BYTES, 1, BLOCK_BYTES]] {
            let expected: Vec<_> = sizes.iter().zip(1_u8..).map(|(size, byte)| vec![byte; *size]).collect();
            let content = written(&expected);
            let content = Bytes(&content);
            let mut reader = SnapshotReader::new(&content).expect("it is whole");
            assert_eq!(*reader.header(), HEADER);
            for record in &expected {
                assert_eq!(reader.record().expect("it is whole"), Some(&record[..]));
            }
            assert_eq!(reader.record().expect("it is whole"), None);
            assert_eq!(reader.record().expect("it stays at its end"), None);
        }
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let content = written(&[b"one".to_vec(), b"three".to_vec(), Vec::new()]);
        assert_eq!(decode_snapshot_file(&content).expect("it is whole"), 3);
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 0x10;
            assert!(decode_snapshot_file(&changed).is_err(), "byte {at}");
            assert!(decode_snapshot_file(&content[..at]).is_err(), "cut at {at}");
        }
    }
}
