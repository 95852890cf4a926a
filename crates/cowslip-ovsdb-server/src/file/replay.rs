//! Reading a database file into a root.
//!
//! Records are applied in order up to the first that is bad in any way; that one and everything after it is reported as
//! damage and left alone. Invariants: the root is exactly what the good records say, apart from weak references to rows
//! that do not exist (Open vSwitch 3.1 leaves some in its files), whose removal is told separately; the name of a state
//! depends on the records up to it and on nothing else.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cowslip_engine::storage::StorageFile;
use cowslip_engine::{ChangeSet, Draft, Entry, Root, Strength, TableIx, Uuid};
use cowslip_ovsdb::atom::Atom;
use cowslip_ovsdb::datum::{Datum, Member, MemberChange};
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::row::{Note, Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb::types::{BaseType, ColumnType};
use sha1::{Digest, Sha1};

use super::convert::convert;
use super::error::OpenError;
use super::log::{FrameFault, Hash, LogReader, intact_records};
use super::record::{ContentFault, Decoder};

/// What a file says.
pub(super) struct Replayed {
    /// The state after the last good record.
    pub(super) root: Root<Ovsdb>,
    /// Where the last good record ends.
    pub(super) end: u64,
    /// Where the first transaction ends, which is all of the data after a compaction.
    pub(super) base_bytes: u64,
    /// The number of transactions.
    pub(super) transactions: u64,
    /// The name of the state after the last good record.
    pub(super) chain: Uuid,
    /// The newest changes.
    pub(super) history: History,
    /// What could not be read.
    pub(super) damage: Option<Damage>,
}

/// The part of a file that could not be read.
#[derive(Debug)]
pub struct Damage {
    /// Where it begins; it goes to the end of the file.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What is wrong with the first record in it.
    pub fault: RecordFault,
    /// How many records in it look intact.
    pub intact_records: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, bytes, fault, intact_records } = self;
        write!(
            f,
            "{bytes} bytes from offset {offset} on are not used ({intact_records} records in them look intact): {fault}"
        )
    }
}

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// Its framing: length or checksum.
    #[error(transparent)]
    Frame {
        /// What exactly.
        #[from]
        source: FrameFault,
    },
    /// Its content, although that is what was written.
    #[error(transparent)]
    Content {
        /// What exactly.
        #[from]
        source: ContentFault,
    },
}

/// The newest changes of a file, ready for the feed, so that clients of a restarted server get differences.
pub struct History {
    /// The generation before the first entry.
    pub floor: u64,
    /// The name of the state before the first entry.
    pub floor_position: Uuid,
    /// The changes, oldest first; their generations count up to the root's.
    pub entries: VecDeque<Entry<Ovsdb>>,
    bytes: usize,
    bytes_max: usize,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("floor", &self.floor).field("entries", &self.entries.len()).finish()
    }
}

impl History {
    fn new(bytes_max: usize, floor_position: Uuid) -> Self {
        Self { floor: 0, floor_position, entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// The generation after the last entry.
    pub(super) fn newest(&self) -> u64 {
        self.floor + self.entries.len() as u64
    }

    pub(super) fn push(&mut self, changes: Arc<ChangeSet<Ovsdb>>, note: Note, position: Uuid) {
        self.bytes += changes.bytes();
        let generation = self.newest() + 1;
        self.entries.push_back(Entry { generation, changes, note: Arc::new(note), meta: None, position });
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.changes.bytes();
            self.floor = oldest.generation;
            self.floor_position = oldest.position;
        }
    }

    /// Forgets everything: what comes has nothing to do with what was.
    fn restart(&mut self, position: Uuid) {
        self.floor = self.newest() + 1;
        self.floor_position = position;
        self.entries.clear();
        self.bytes = 0;
    }
}

/// The name of the state that a record leads to, from the name of the state before it.
pub(super) fn next_position(before: &Uuid, record: &Hash) -> Uuid {
    let digest = Sha1::new().chain_update(before.as_bytes()).chain_update(record).finalize();
    let mut name = [0; 16];
    name.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(name)
}

/// The name of the state that a schema's record leads to: an empty database.
pub(super) fn first_position(schema: &Hash) -> Uuid {
    next_position(&Uuid::nil(), schema)
}

/// Reads the first record.
///
/// # Errors
/// The file is no standalone database.
pub(super) fn read_schema(path: &Path, reader: &mut LogReader<'_>) -> Result<(Schema, Hash), OpenError> {
    let no_schema = |source| OpenError::NoSchema { path: path.to_owned(), source };
    let record = match reader.next_record() {
        Ok(Some(record)) => record,
        Ok(None) => return Err(no_schema(None)),
        Err(FrameFault::Io { source }) => return Err(OpenError::io(path, "read", source)),
        Err(FrameFault::Clustered) => return Err(OpenError::Clustered { path: path.to_owned() }),
        Err(fault) => return Err(no_schema(Some(fault))),
    };
    let bad = |source| OpenError::BadSchema { path: path.to_owned(), source };
    Ok((Schema::parse(record.body).map_err(bad)?, record.hash))
}

/// Reads a whole file.
///
/// # Errors
/// The file is no standalone database, or the disk fails. A bad record after the first is no error.
pub(super) fn replay(
    path: &Path,
    file: &dyn StorageFile,
    history_bytes_max: usize,
) -> Result<Replayed, OpenError> {
    let unreadable = |source| OpenError::io(path, "read", source);
    let mut reader = LogReader::new(file, 0).map_err(unreadable)?;
    let (schema, hash) = read_schema(path, &mut reader)?;
    let chain = first_position(&hash);
    let mut state = State::new(Arc::new(schema), chain, History::new(history_bytes_max, chain));
    let mut base_bytes = reader.offset();
    let mut transactions = 0;
    let mut fault = None;
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(FrameFault::Io { source }) => return Err(unreadable(source)),
            Err(source) => {
                fault = Some(RecordFault::Frame { source });
                break;
            }
        };
        let offset = record.offset;
        if let Err(source) = state.apply(record.body, &record.hash) {
            fault = Some(RecordFault::Content { source });
            reader.rewind(offset);
            break;
        }
        transactions += 1;
        if transactions == 1 {
            base_bytes = reader.offset();
        }
    }
    let (end, length) = (reader.offset(), reader.length());
    let damage = fault.map(|fault| damage(file, end, length, fault)).transpose().map_err(unreadable)?;
    let State { mut root, chain, history, .. } = state;
    root.set_generation(history.newest());
    Ok(Replayed { root, end, base_bytes, transactions, chain, history, damage })
}

fn damage(file: &dyn StorageFile, offset: u64, end: u64, fault: RecordFault) -> std::io::Result<Damage> {
    let bytes = read_range(file, offset, end)?;
    Ok(Damage { offset, bytes: end - offset, fault, intact_records: intact_records(&bytes) })
}

/// A part of a file that is known to be there.
pub(super) fn read_range(file: &dyn StorageFile, start: u64, end: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - start).map_err(std::io::Error::other)?];
    let length = file.read_at(start, &mut bytes)?;
    if length == bytes.len() { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

struct State {
    root: Root<Ovsdb>,
    decoder: Decoder,
    chain: Uuid,
    history: History,
}

impl State {
    fn new(schema: Arc<Schema>, chain: Uuid, history: History) -> Self {
        let decoder = Decoder::new(Arc::clone(&schema));
        Self { root: Root::new(schema), decoder, chain, history }
    }

    fn apply(&mut self, body: &[u8], hash: &Hash) -> Result<(), ContentFault> {
        let json = Json::parse(body).map_err(|source| ContentFault::Json { source })?;
        if is_schema(&json) {
            return self.change_schema(&json, hash);
        }
        let mut draft = Draft::new(&self.root);
        let note = self.decoder.decode(&json, &mut draft)?;
        let changes = draft.finish().map_err(|conflict| ContentFault::Duplicate {
            table: self.root.meta().at(conflict.table).name.to_string(),
            rows: conflict.ids,
        })?;
        self.root.apply(&changes);
        self.chain = next_position(&self.chain, hash);
        self.history.push(Arc::new(changes), note, self.chain);
        Ok(())
    }

    /// A conversion wrote its schema into the running file: the rows so far live on under the new schema.
    fn change_schema(&mut self, json: &Json<'_>, hash: &Hash) -> Result<(), ContentFault> {
        let schema = Schema::from_json(json).map_err(|source| ContentFault::Schema { source })?;
        let converted = convert(&self.root, Arc::new(schema)).map_err(|error| ContentFault::Value {
            table: error.table,
            column: error.column,
            source: error.source,
        })?;
        self.root = converted;
        self.decoder = Decoder::new(Arc::clone(self.root.meta()));
        self.chain = next_position(&self.chain, hash);
        self.history.restart(self.chain);
        Ok(())
    }
}

/// Whether a record is a schema: in a transaction, `name` could only be a table, whose content is an object.
fn is_schema(json: &Json<'_>) -> bool {
    let member = |name| json.as_object().and_then(|object| object.member(name));
    matches!((member("name"), member("tables")), (Some(Json::Str(_)), Some(Json::Object(_))))
}

/// The removal of weak references to rows that do not exist, and how many there are.
///
/// Where a column would be left with too few members its references stay: dropping the row would be worse.
pub(super) fn prune(root: &Root<Ovsdb>) -> (ChangeSet<Ovsdb>, usize) {
    let schema = root.meta();
    let mut draft = Draft::new(root);
    let mut count = 0;
    for (table, definition) in schema.numbered_tables() {
        let is_weak = |ty: &ColumnType| {
            let weak = |base: &BaseType| matches!(&base.reference, Some(r) if r.strength == Strength::Weak);
            weak(&ty.key) || ty.value.as_ref().is_some_and(weak)
        };
        let weak: Vec<_> =
            definition.references.iter().filter(|c| is_weak(&definition.data(**c).ty)).collect();
        if weak.is_empty() {
            continue;
        }
        for (id, row) in root.scan(table) {
            let mut pruned: Option<(Row, RowDelta)> = None;
            for &&column in &weak {
                let (value, ty) = (row.data(column), &definition.data(column).ty);
                let changes = dangling(root, ty, value);
                if changes.is_empty() || value.len() - changes.len() < ty.min as usize {
                    continue;
                }
                count += changes.len();
                let (new, delta) = pruned.get_or_insert_with(|| (Row::clone(row), RowDelta::default()));
                new.columns[usize::from(column.0)] = value.with(&changes);
                delta.change(column, changes);
            }
            if let Some((new, delta)) = pruned {
                draft.put(table, id, Arc::new(Row { version: Uuid::new_v4(), ..new }), delta);
            }
        }
    }
    (draft.into_changes(), count)
}

/// The removal of a value's members that weakly refer to nothing.
fn dangling(root: &Root<Ovsdb>, ty: &ColumnType, value: &Datum) -> Vec<MemberChange> {
    let exists = |table: TableIx, target: &Uuid| root.record(table, target).is_some();
    let dangles = |base: &BaseType, atom: &Atom| match (&base.reference, atom.as_uuid()) {
        (Some(reference), Some(target)) => {
            reference.strength == Strength::Weak && !exists(reference.table, target)
        }
        _ => false,
    };
    let members = value.members().filter(|(key, value)| {
        dangles(&ty.key, key)
            || matches!((&ty.value, value), (Some(base), Some(value)) if dangles(base, value))
    });
    let removal = |(key, value): (&Atom, Option<&Atom>)| MemberChange {
        key: key.clone(),
        old: value.map_or(Member::Element, |value| Member::Value(value.clone())),
        new: Member::Absent,
    };
    members.map(removal).collect()
}
