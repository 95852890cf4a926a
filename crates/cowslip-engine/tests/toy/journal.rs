//! A journal for the toy model, as small as one can be that survives crashes: checked records in one file, a torn end
//! is cut off at opening, compaction writes a second file and renames it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cowslip_engine::storage::{OpenMode, Storage, StorageFile};
use cowslip_engine::{AppendError, Commit, Draft, Feed, Journal, Root, Strength, TableIx, Uuid};

use super::{Id, Item, TABLES, Toy, put};

const LOG: &str = "/db/log";
const NEXT: &str = "/db/log.next";
const DIR: &str = "/db";

pub struct ToyJournal {
    storage: Arc<dyn Storage>,
    file: Box<dyn StorageFile>,
    end: u64,
    position: Uuid,
    /// Where the log ended when the running compaction began.
    compacting_from: Option<u64>,
}

/// What replaying gave.
pub struct Opened {
    pub root: Root<Toy>,
    pub position: Uuid,
    pub journal: ToyJournal,
}

impl Opened {
    pub fn feed(&self, bytes_max: usize) -> Feed<Toy> {
        Feed::new(bytes_max, self.root.generation(), self.position)
    }
}

pub fn open(storage: Arc<dyn Storage>) -> io::Result<Opened> {
    let file = storage.open(Path::new(LOG), OpenMode::Create)?;
    storage.sync_dir(Path::new(DIR))?;
    let log = storage.read(Path::new(LOG))?;
    let mut root = Root::new(Arc::new(0));
    let mut position = Uuid::nil();
    let mut end = 0;
    while let Some((payload, length)) = record(&log[end..]) {
        replay(&mut root, &mut position, payload);
        end += length;
    }
    if end < log.len() {
        file.truncate(end as u64)?;
        file.sync_data()?;
    }
    let journal = ToyJournal { storage, file, end: end as u64, position, compacting_from: None };
    Ok(Opened { root, position, journal })
}

fn replay(root: &mut Root<Toy>, position: &mut Uuid, payload: &[u8]) {
    let mut input = payload;
    if take::<1>(&mut input) == [1] {
        *position = Uuid::from_bytes(take(&mut input));
        *root = Root::new(Arc::new(0));
    } else {
        *position = next_position(*position, payload);
    }
    let mut draft = Draft::new(root);
    while !input.is_empty() {
        let table = TableIx(u16::from_le_bytes(take(&mut input)));
        let id = Id::from_bytes(take(&mut input));
        match decode_item(&mut input) {
            Some(item) => put(&mut draft, table, id, item),
            None => assert!(draft.remove(table, &id), "the journal removes what is there"),
        }
    }
    let changes = draft.into_changes();
    root.apply(&changes);
    root.set_generation(root.generation() + 1);
}

fn next_position(position: Uuid, payload: &[u8]) -> Uuid {
    Uuid::from_u128((position.as_u128() ^ u128::from(checksum(payload))).wrapping_mul(0x0100_0000_01b3))
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("toys are small");
    [&length.to_le_bytes()[..], &checksum(payload).to_le_bytes()[..], payload].concat()
}

/// The first record's payload and the length it takes, if it is whole.
fn record(log: &[u8]) -> Option<(&[u8], usize)> {
    let length = u32::from_le_bytes(log.get(..4)?.try_into().ok()?) as usize;
    let sum = u64::from_le_bytes(log.get(4..12)?.try_into().ok()?);
    let payload = log.get(12..12 + length)?;
    (length > 0 && checksum(payload) == sum).then_some((payload, 12 + length))
}

fn take<const N: usize>(input: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = input.split_first_chunk().expect("checked by the record's sum");
    *input = rest;
    *taken
}

fn take_u32(input: &mut &[u8]) -> u32 {
    u32::from_le_bytes(take(input))
}

fn encode_item(item: Option<&Item>, out: &mut Vec<u8>) {
    out.push(u8::from(item.is_some()));
    let Some(item) = item else { return };
    let mut word = |word: u32| out.extend(word.to_le_bytes());
    word(item.name);
    word(item.group.map_or(0, |group| group + 1));
    word(u32::try_from(item.tags.len()).expect("toys are small"));
    item.tags.iter().copied().for_each(&mut word);
    word(u32::try_from(item.links.len()).expect("toys are small"));
    for (table, id, strength) in &item.links {
        out.extend(table.0.to_le_bytes());
        out.extend(id.as_bytes());
        out.push(u8::from(*strength == Strength::Weak));
    }
}

fn decode_item(input: &mut &[u8]) -> Option<Item> {
    if take::<1>(input) == [0] {
        return None;
    }
    let name = take_u32(input);
    let group = take_u32(input).checked_sub(1);
    let tags = (0..take_u32(input)).map(|_| take_u32(input)).collect();
    let links = (0..take_u32(input)).map(|_| {
        let table = TableIx(u16::from_le_bytes(take(input)));
        let id = Id::from_bytes(take(input));
        (table, id, if take::<1>(input) == [1] { Strength::Weak } else { Strength::Strong })
    });
    Some(Item { name, group, tags, links: links.collect() })
}

fn encode_commit(commit: &Commit<Toy>) -> Vec<u8> {
    let mut payload = vec![0];
    for table in commit.changes.tables() {
        for change in &table.records {
            payload.extend(table.table.0.to_le_bytes());
            payload.extend(change.id.as_bytes());
            encode_item(change.new.as_deref(), &mut payload);
        }
    }
    payload
}

fn encode_snapshot(root: &Root<Toy>, position: Uuid) -> Vec<u8> {
    let mut payload = vec![1];
    payload.extend(position.as_bytes());
    for table in TABLES {
        for (id, item) in root.scan(table) {
            payload.extend(table.0.to_le_bytes());
            payload.extend(id.as_bytes());
            encode_item(Some(item), &mut payload);
        }
    }
    payload
}

pub struct Compaction {
    storage: Arc<dyn Storage>,
    snapshot: Arc<Root<Toy>>,
    position: Uuid,
}

pub struct Compacted {
    file: Box<dyn StorageFile>,
    end: u64,
}

impl ToyJournal {
    fn cut_back(&mut self, source: io::Error) -> AppendError {
        match self.file.truncate(self.end).and_then(|()| self.file.sync_data()) {
            Ok(()) => AppendError::NotWritten { source },
            Err(source) => AppendError::Unknown { source },
        }
    }

    fn copy_tail(&self, from: u64, next: &Compacted) -> io::Result<u64> {
        let mut tail = vec![0; usize::try_from(self.end - from).expect("toys are small")];
        self.file.read_at(from, &mut tail)?;
        next.file.write_at(next.end, &tail)?;
        next.file.sync_data()?;
        Ok(next.end + tail.len() as u64)
    }
}

impl Journal<Toy> for ToyJournal {
    type Compaction = Compaction;
    type Compacted = io::Result<Compacted>;

    fn append(&mut self, batch: &[Commit<Toy>]) -> Result<Vec<Uuid>, AppendError> {
        let mut position = self.position;
        let mut bytes = Vec::new();
        let mut positions = Vec::new();
        for commit in batch {
            let payload = encode_commit(commit);
            position = next_position(position, &payload);
            positions.push(position);
            bytes.extend(frame(&payload));
        }
        self.file.write_at(self.end, &bytes).map_err(|error| self.cut_back(error))?;
        self.end += bytes.len() as u64;
        self.position = position;
        Ok(positions)
    }

    fn make_durable(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn position(&self) -> Uuid {
        self.position
    }

    fn begin_compaction(&mut self, snapshot: Arc<Root<Toy>>) -> io::Result<Compaction> {
        self.compacting_from = Some(self.end);
        Ok(Compaction { storage: Arc::clone(&self.storage), snapshot, position: self.position })
    }

    fn run_compaction(compaction: Compaction) -> io::Result<Compacted> {
        let file = compaction.storage.open(Path::new(NEXT), OpenMode::Create)?;
        file.truncate(0)?;
        let bytes = frame(&encode_snapshot(&compaction.snapshot, compaction.position));
        file.write_at(0, &bytes)?;
        file.sync_data()?;
        // Long enough that commits come meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(Compacted { file, end: bytes.len() as u64 })
    }

    fn abandon_compaction(&mut self) {
        self.compacting_from = None;
    }

    fn finish_compaction(&mut self, compacted: io::Result<Compacted>) -> Result<(), AppendError> {
        let from = self.compacting_from.take().expect("a compaction was begun");
        let compacted = compacted.map_err(|source| AppendError::NotWritten { source })?;
        let end = self.copy_tail(from, &compacted).map_err(|source| AppendError::NotWritten { source })?;
        let switched = self.storage.rename(&PathBuf::from(NEXT), &PathBuf::from(LOG));
        switched
            .and_then(|()| self.storage.sync_dir(Path::new(DIR)))
            .map_err(|source| AppendError::Unknown { source })?;
        self.file = compacted.file;
        self.end = end;
        Ok(())
    }
}
