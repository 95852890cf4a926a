//! The framing of a database file: one record after the other, each with its length and SHA-1.
//!
//! A record is a header line `OVSDB JSON <bytes> <sha1>` and that many bytes of JSON; the JSON's final line feed counts
//! and is hashed, too. Invariants: the reader hands out only bytes whose hash is right, never allocates more than the
//! file holds, and after a bad record stays at that record's offset.

use std::fmt;
use std::io;

use cowslip_engine::storage::StorageFile;
use sha1::{Digest, Sha1};

/// The longest header line that is looked for.
pub const HEADER_BYTES_MAX: usize = 128;

/// The smallest piece that is read from the disk at once.
const READ_BYTES: usize = 1 << 20;

/// The SHA-1 of a record.
pub type Hash = [u8; 20];

/// What is wrong with the framing of a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The disk gave an error.
    #[error("reading failed: {source}")]
    Io {
        /// What went wrong.
        #[from]
        source: io::Error,
    },
    /// There is no header line of the form it must have.
    #[error("no record header, but \"{found}\"")]
    Header {
        /// The beginning of what is there instead.
        found: String,
    },
    /// The file belongs to a clustered database.
    #[error("a record of a clustered database")]
    Clustered,
    /// The file ends inside the record.
    #[error("the record should have {announced} bytes, and the file ends after {present}")]
    Torn {
        /// The bytes that the header announces.
        announced: u64,
        /// The bytes that are there.
        present: u64,
    },
    /// The content is not what was written.
    #[error("the record's {bytes} bytes don't match their SHA-1")]
    Hash {
        /// The bytes of the content.
        bytes: usize,
    },
}

/// A record whose hash is right.
#[derive(Debug)]
pub struct Record<'b> {
    /// Where its header begins.
    pub offset: u64,
    /// Its content with the final line feed.
    pub body: &'b [u8],
    /// The content's SHA-1.
    pub hash: Hash,
}

/// Reads a file record by record.
pub struct LogReader<'f> {
    file: &'f dyn StorageFile,
    length: u64,
    /// Where the next record begins; `buffer[start..]` is what was read from there on.
    offset: u64,
    buffer: Vec<u8>,
    start: usize,
}

impl<'f> LogReader<'f> {
    /// Begins at an offset where a record begins or the file ends.
    ///
    /// # Errors
    /// The file's length cannot be told.
    pub fn new(file: &'f dyn StorageFile, offset: u64) -> io::Result<Self> {
        Ok(Self { file, length: file.len()?, offset, buffer: Vec::new(), start: 0 })
    }

    /// Where the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The length of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next record, or none at the end of the file.
    ///
    /// # Errors
    /// The record is bad; nothing after it can be relied on.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, FrameFault> {
        self.fill(HEADER_BYTES_MAX)?;
        let rest = &self.buffer[self.start..];
        if rest.is_empty() {
            return Ok(None);
        }
        let header = Header::parse(rest)?;
        let present = self.length.saturating_sub(self.offset + header.line_bytes as u64);
        if header.body_bytes > present {
            return Err(FrameFault::Torn { announced: header.body_bytes, present });
        }
        let body_bytes = usize::try_from(header.body_bytes).map_err(io::Error::other)?;
        let whole = header.line_bytes + body_bytes;
        self.fill(whole)?;
        let Some(body) = self.buffer.get(self.start + header.line_bytes..self.start + whole) else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        if hash(body) != header.hash {
            return Err(FrameFault::Hash { bytes: body_bytes });
        }
        let offset = self.offset;
        self.offset += whole as u64;
        let body = self.start + header.line_bytes..self.start + whole;
        self.start += whole;
        Ok(Some(Record { offset, body: &self.buffer[body], hash: header.hash }))
    }

    /// Goes back to a record just read, as if it had been bad.
    pub fn rewind(&mut self, offset: u64) {
        self.offset = offset;
        self.buffer.clear();
        self.start = 0;
    }

    /// Makes the buffer hold at least so many bytes from the offset on, unless the file ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        let present = self.buffer.len() - self.start;
        if present >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let at = self.offset + present as u64;
        let rest = usize::try_from(self.length.saturating_sub(at)).map_err(io::Error::other)?;
        let wanted = (bytes - present).max(READ_BYTES).min(rest);
        self.buffer.resize(present + wanted, 0);
        let length = self.file.read_at(at, &mut self.buffer[present..])?;
        self.buffer.truncate(present + length);
        Ok(())
    }
}

/// A header line taken apart.
struct Header {
    line_bytes: usize,
    body_bytes: u64,
    hash: Hash,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, FrameFault> {
        let window = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
        let end = window.iter().position(|byte| *byte == b'\n').unwrap_or(window.len());
        let line = String::from_utf8_lossy(&window[..end]);
        let mut words = line.split(' ');
        let fields = (words.next(), words.next(), words.next(), words.next(), words.next());
        let bad = || FrameFault::Header { found: line.escape_debug().to_string() };
        let (Some("OVSDB"), Some(magic), Some(length), Some(digest), None) = fields else {
            return Err(bad());
        };
        if magic == "CLUSTER" {
            return Err(FrameFault::Clustered);
        }
        if magic != "JSON" || end == window.len() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let body_bytes = length.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(bad)?;
        let hash = parse_hash(digest).ok_or_else(bad)?;
        Ok(Self { line_bytes: end + 1, body_bytes, hash })
    }
}

fn parse_hash(hex: &str) -> Option<Hash> {
    let digits = hex.as_bytes();
    if digits.len() != 40 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut hash = Hash::default();
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}

/// The SHA-1 of a content.
pub fn hash(body: &[u8]) -> Hash {
    Sha1::digest(body).into()
}

/// The header line of a content.
pub fn header(body_bytes: u64, hash: &Hash) -> String {
    use fmt::Write;
    let mut line = format!("OVSDB JSON {body_bytes} ");
    for byte in hash {
        // Writing to a `String` cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line.push('\n');
    line
}

/// Appends a record with this JSON text (without a line feed) as its content, and gives its hash.
pub fn write_record(out: &mut Vec<u8>, json: &mut String) -> Hash {
    json.push('\n');
    let hash = hash(json.as_bytes());
    out.extend_from_slice(header(json.len() as u64, &hash).as_bytes());
    out.extend_from_slice(json.as_bytes());
    hash
}

/// How many intact records begin within these bytes, for a report: what a person might want to save by hand.
pub fn intact_records(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while let Some(found) = find(&bytes[at..], b"OVSDB ") {
        at += found;
        let whole = Header::parse(&bytes[at..]).ok().and_then(|header| {
            let end = header.line_bytes.checked_add(usize::try_from(header.body_bytes).ok()?)?;
            let body = bytes[at..].get(header.line_bytes..end)?;
            (hash(body) == header.hash).then_some(end)
        });
        count += usize::from(whole.is_some());
        at += whole.unwrap_or(1);
    }
    count
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_engine::sim::SimDisk;
    use cowslip_engine::storage::{OpenMode, Storage};
    use std::path::Path;

    fn records(content: &[u8]) -> (Vec<String>, u64, Option<FrameFault>) {
        let disk = SimDisk::new();
        let file = disk.open(Path::new("/log"), OpenMode::CreateNew).expect("an empty disk has room");
        file.append(content).expect("nothing fails");
        let mut reader = LogReader::new(&*file, 0).expect("the file is there");
        let mut bodies = Vec::new();
        loop {
            match reader.next_record() {
                Ok(Some(record)) => bodies.push(String::from_utf8_lossy(record.body).into_owned()),
                Ok(None) => return (bodies, reader.offset(), None),
                Err(fault) => return (bodies, reader.offset(), Some(fault)),
            }
        }
    }

    fn two() -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        write_record(&mut out, &mut "{\"a\":1}".to_string());
        let first = out.len();
        write_record(&mut out, &mut format!("{{\"b\":\"{}\"}}", "x".repeat(3 * READ_BYTES)));
        (out, first)
    }

    #[test]
    fn a_record_is_what_the_reference_tool_writes() {
        let mut out = Vec::new();
        write_record(&mut out, &mut "{\"a\":1}".to_string());
        // `printf '{"a":1}\n' | sha1sum`
        assert_eq!(out, b"OVSDB JSON 8 8a3d961f7fe8ef7b41d461059884a9461be85059\n{\"a\":1}\n");
    }

    #[test]
    fn what_was_written_is_read() {
        let (out, _) = two();
        let (bodies, end, fault) = records(&out);
        assert_eq!((bodies.len(), end), (2, out.len() as u64));
        assert!(fault.is_none());
    }

    #[test]
    fn a_torn_record_stops_at_its_beginning_wherever_it_is_torn() {
        let (out, first) = two();
        for cut in [first + 1, first + 6, first + 40, first + 60, out.len() - 2 * READ_BYTES, out.len() - 1] {
            let (bodies, end, fault) = records(&out[..cut]);
            assert_eq!((bodies.len(), end), (1, first as u64), "cut at {cut}");
            assert!(fault.is_some());
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let (out, first) = two();
        for at in [first, first + 7, first + 12, first + 30, out.len() - 1] {
            let mut bad = out.clone();
            bad[at] ^= 1;
            let (bodies, end, fault) = records(&bad);
            assert_eq!((bodies.len(), end), (1, first as u64), "flipped at {at}");
            assert!(fault.is_some());
        }
    }

    #[test]
    fn an_announced_length_beyond_the_file_allocates_nothing() {
        let line = format!("OVSDB JSON 18446744073709551615 {}\n", "0".repeat(40));
        assert!(matches!(records(line.as_bytes()).2, Some(FrameFault::Torn { .. })));
    }

    #[test]
    fn a_clustered_database_is_named() {
        let line = format!("OVSDB CLUSTER 8 {}\n{{\"a\":1}}\n", "0".repeat(40));
        assert!(matches!(records(line.as_bytes()).2, Some(FrameFault::Clustered)));
    }

    #[test]
    fn intact_records_are_counted_behind_damage() {
        let (out, first) = two();
        let mut bytes = out[first + 1..].to_vec();
        bytes.extend_from_slice(&out[..first]);
        bytes.extend_from_slice(&out);
        assert_eq!(intact_records(&bytes), 3);
        assert_eq!(intact_records(b"OVSDB OVSDB JSON 1"), 0);
    }
}
