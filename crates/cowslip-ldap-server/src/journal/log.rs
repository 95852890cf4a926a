//! Walking over the batches of a folder, and judging where they end.
//!
//! A file of a higher number goes on where its first batch says: what files of lower numbers have from that batch on
//! was cut off. Where the next batch is not found the log ends, and what is behind it tells why: a batch that was written
//! when the missing one was already durable proves damage; anything else was never synced, and so was never answered
//! for. Invariant: each commit is given out once, whole, and in order; a commit whose parts are not all there is not.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cowslip_engine::storage::{OpenMode, Storage};
use uuid::Uuid;

use super::error::OpenError;
use super::folder::{Names, journal_path};
use super::format::{
    FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Fault, FileHeader, Frame, FrameHeader,
    FrameKind, LENGTH_AT, bytes, frame_bytes, marks, take_u32,
};

/// Where a walk begins: behind a snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) database: Uuid,
    /// The number of the first file.
    pub(super) number: u64,
    /// The number of the first batch.
    pub(super) sequence: u64,
    /// The number of the last commit before it.
    pub(super) commits: u64,
}

/// A batch that a walk came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    pub(super) path: &'a Path,
    pub(super) offset: u64,
    pub(super) header: &'a FrameHeader,
}

/// Who wants to see what a walk finds.
pub(super) trait Visitor {
    /// A batch, before its records; perhaps one of which nothing counts in the end.
    fn batch(&mut self, _batch: &Passed<'_>) {}

    /// The record of a commit, and the batch with which it is complete.
    fn record(&mut self, commit: u64, record: &[u8], batch: &Passed<'_>) -> Result<(), OpenError>;
}

/// A place in a journal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) offset: u64,
}

/// What is behind the end of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing: the next batch can be written there.
    Clean,
    /// Batches that were never durable, or pieces of such.
    Torn { at: Place },
    /// Something that was durable is not there.
    Damaged { at: Place, fault: Fault, intact_commits: u64 },
}

/// Bytes that may not be durable although they can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubtful {
    sequence: u64,
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// What a walk found.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    /// The number of the next batch.
    pub(super) sequence: u64,
    /// The number of the last commit.
    pub(super) commits: u64,
    /// Behind the last batch that counts; none if there is no batch.
    pub(super) end: Option<Place>,
    pub(super) tail: Tail,
    /// Batches behind the last that was known to be durable when it was overtaken.
    pub(super) doubtful: VecDeque<Doubtful>,
    /// The files in which nothing was ever written.
    pub(super) unused: Vec<u64>,
    /// The files in which something was written, needed or not.
    pub(super) used: Vec<u64>,
    /// The bytes of batches that count.
    pub(super) log_bytes: u64,
}

/// A file of the log, known by its header and its first batch.
struct LogFile {
    path: PathBuf,
    header: FileHeader,
    /// The number of its first batch, if that is whole.
    first: Option<u64>,
}

/// The parts so far of a commit's record, and where the log ends if it is never completed.
struct Parts {
    record: Vec<u8>,
    sequence: u64,
    end: Option<Place>,
    start: Place,
    log_bytes: u64,
}

struct Walk<'a> {
    storage: &'a dyn Storage,
    folder: &'a Path,
    files: Vec<LogFile>,
    found: Walked,
    parts: Option<Parts>,
}

/// Walks over all batches behind a snapshot.
pub(super) fn walk(
    storage: &dyn Storage,
    folder: &Path,
    names: &Names,
    start: Start,
    visitor: &mut dyn Visitor,
) -> Result<Walked, OpenError> {
    let numbers = names.journals.iter().copied().filter(|number| *number >= start.number);
    let files: Result<Vec<_>, _> =
        numbers.map(|number| LogFile::open(storage, folder, number, start.database)).collect();
    let found = Walked {
        sequence: start.sequence,
        commits: start.commits,
        end: None,
        tail: Tail::Clean,
        doubtful: VecDeque::new(),
        unused: Vec::new(),
        used: Vec::new(),
        log_bytes: 0,
    };
    let mut walk = Walk { storage, folder, files: files?, found, parts: None };
    walk.run(visitor)?;
    Ok(walk.found)
}

impl LogFile {
    fn open(storage: &dyn Storage, folder: &Path, number: u64, database: Uuid) -> Result<Self, OpenError> {
        let path = journal_path(folder, number);
        let read = |length: usize| {
            let mut content = vec![0; length];
            let file = storage.open(&path, OpenMode::Read)?;
            let filled = file.read_at(0, &mut content)?;
            content.truncate(filled);
            Ok(content)
        };
        let read = |length| read(length).map_err(OpenError::io(&path, "read the journal"));
        let content = read(FILE_HEADER_BYTES + FRAME_HEADER_BYTES)?;
        let header = FileHeader::decode(&content).and_then(|header| {
            let is_ours = header.database == database && header.number == number;
            if is_ours { Ok(header) } else { Err(Fault::Misplaced) }
        });
        let header = header.map_err(|fault| OpenError::Damaged {
            folder: folder.to_owned(),
            path: path.clone(),
            offset: 0,
            fault,
            intact_commits: 0,
        })?;
        // Nothing of the first batch is checked yet; an older life of the file may have left its length there.
        let mut rest = content.get(FILE_HEADER_BYTES + LENGTH_AT..).unwrap_or_default();
        let is_marked = marks(&header, &content, FILE_HEADER_BYTES).next() == Some(FILE_HEADER_BYTES);
        let length = take_u32(&mut rest).filter(|_| is_marked).map_or(0, |length| length as usize);
        let content = read(FILE_HEADER_BYTES + frame_bytes(length.min(FRAME_PAYLOAD_BYTES_MAX)))?;
        let first = Frame::read(&header, &content, FILE_HEADER_BYTES).ok();
        let first = first.map(|frame| frame.header.sequence);
        Ok(Self { path, header, first })
    }

    fn place(&self, offset: usize) -> Place {
        Place { number: self.header.number, path: self.path.clone(), offset: bytes(offset) }
    }
}

impl Walk<'_> {
    fn run(&mut self, visitor: &mut dyn Visitor) -> Result<(), OpenError> {
        // Where the last batch ends that was found.
        let mut stop: Option<(usize, usize)> = None;
        for at in 0..self.files.len() {
            let begins = self.files[at].first == Some(self.found.sequence);
            if begins && self.limit(at) > self.found.sequence {
                let content = self.content(at)?;
                stop = Some((at, self.walk_file(at, &content, visitor)?));
            }
        }
        self.judge(stop)
    }

    /// The first batch that a later file has instead of this one.
    fn limit(&self, at: usize) -> u64 {
        self.files[at + 1..].iter().filter_map(|file| file.first).min().unwrap_or(u64::MAX)
    }

    fn content(&self, at: usize) -> Result<Vec<u8>, OpenError> {
        let path = &self.files[at].path;
        self.storage.read(path).map_err(OpenError::io(path, "read the journal"))
    }

    /// Takes the batches of a file that count; gives the offset behind them.
    fn walk_file(
        &mut self,
        at: usize,
        content: &[u8],
        visitor: &mut dyn Visitor,
    ) -> Result<usize, OpenError> {
        let limit = self.limit(at);
        let mut offset = FILE_HEADER_BYTES;
        while self.found.sequence < limit {
            let file = &self.files[at];
            let Ok(frame) = Frame::read(&file.header, content, offset) else { break };
            if frame.header.sequence != self.found.sequence {
                break;
            }
            let place = file.place(offset);
            if frame.header.first_commit != self.found.commits + 1 {
                return Err(self.inconsistent(place));
            }
            let passed = Passed { path: &place.path, offset: place.offset, header: &frame.header };
            visitor.batch(&passed);
            self.take(&frame, &passed, &place, visitor)?;
            offset += frame.bytes();
            self.note(&frame, &place, offset);
        }
        Ok(offset)
    }

    fn take(
        &mut self,
        frame: &Frame<'_>,
        passed: &Passed<'_>,
        place: &Place,
        visitor: &mut dyn Visitor,
    ) -> Result<(), OpenError> {
        match (frame.header.kind, &mut self.parts) {
            (FrameKind::Whole, None) => {
                let before = self.found.commits;
                for record in frame.records() {
                    let record = record.map_err(|_| self.inconsistent(place.clone()))?;
                    self.found.commits += 1;
                    visitor.record(self.found.commits, record, passed)?;
                }
                if self.found.commits - before != u64::from(frame.header.commits) {
                    return Err(self.inconsistent(place.clone()));
                }
            }
            (FrameKind::First, None) => {
                self.parts = Some(Parts {
                    record: frame.payload.to_vec(),
                    sequence: self.found.sequence,
                    end: self.found.end.clone(),
                    start: place.clone(),
                    log_bytes: self.found.log_bytes,
                });
            }
            (FrameKind::Middle, Some(parts)) => parts.record.extend(frame.payload),
            (FrameKind::Last, Some(parts)) => {
                parts.record.extend(frame.payload);
                self.found.commits += 1;
                visitor.record(self.found.commits, &parts.record, passed)?;
                self.parts = None;
            }
            _ => return Err(self.inconsistent(place.clone())),
        }
        Ok(())
    }

    fn note(&mut self, frame: &Frame<'_>, place: &Place, end: usize) {
        let length = bytes(frame.bytes());
        let found = &mut self.found;
        let sequence = found.sequence;
        found.sequence += 1;
        found.log_bytes += length;
        found.end = Some(Place { offset: bytes(end), ..place.clone() });
        while found.doubtful.front().is_some_and(|doubtful| doubtful.sequence < frame.header.synced) {
            found.doubtful.pop_front();
        }
        let (path, offset) = (place.path.clone(), place.offset);
        found.doubtful.push_back(Doubtful { sequence, path, offset, bytes: length });
    }

    /// Finds out why the log ends where it does.
    fn judge(&mut self, stop: Option<(usize, usize)>) -> Result<(), OpenError> {
        let incomplete = self.parts.take();
        if let Some(parts) = &incomplete {
            self.found.sequence = parts.sequence;
            self.found.end.clone_from(&parts.end);
            self.found.log_bytes = parts.log_bytes;
            self.found.doubtful.retain(|doubtful| doubtful.sequence < parts.sequence);
        }
        let missing = self.found.sequence;
        let (first, from) = stop.unwrap_or((0, FILE_HEADER_BYTES));
        let mut fault = None;
        let (mut torn, mut proof, mut intact_commits) = (None, false, 0);
        for at in 0..self.files.len() {
            let number = self.files[at].header.number;
            if at < first {
                self.found.used.push(number);
                continue;
            }
            let content = self.content(at)?;
            let file = &self.files[at];
            let from = if at == first { from } else { FILE_HEADER_BYTES };
            let mut places = marks(&file.header, &content, FILE_HEADER_BYTES).peekable();
            let is_used = places.peek().is_some();
            if is_used { &mut self.found.used } else { &mut self.found.unused }.push(number);
            if at == first {
                fault = Frame::read(&file.header, &content, from).err();
            }
            for offset in places.skip_while(|offset| *offset < from) {
                torn.get_or_insert_with(|| file.place(offset));
                if let Ok(frame) = Frame::read(&file.header, &content, offset)
                    && frame.header.sequence > missing
                {
                    proof |= frame.header.synced > missing;
                    intact_commits += u64::from(frame.header.commits);
                }
            }
        }
        let torn = incomplete.map(|parts| parts.start).or(torn);
        if proof {
            // If nothing follows in this file, the missing batch was probably the first of the next one.
            let is_full = matches!(fault, Some(Fault::Unmarked | Fault::Short));
            let next = self.files[first + 1..].iter().find(|file| {
                is_full && file.first.is_none() && self.found.used.contains(&file.header.number)
            });
            let (at, fault) = match next {
                Some(file) => (file.place(FILE_HEADER_BYTES), Fault::Checksum),
                None => (self.files[first].place(from), fault.unwrap_or(Fault::Inconsistent)),
            };
            self.found.tail = Tail::Damaged { at, fault, intact_commits };
        } else if let Some(at) = torn {
            self.found.tail = Tail::Torn { at };
        }
        Ok(())
    }

    fn inconsistent(&self, place: Place) -> OpenError {
        OpenError::Damaged {
            folder: self.folder.to_owned(),
            path: place.path,
            offset: place.offset,
            fault: Fault::Inconsistent,
            intact_commits: 0,
        }
    }
}
