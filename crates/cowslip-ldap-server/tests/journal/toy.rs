//! Numbered byte strings as a model, its codec, and a database as the pipeline would run it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cowslip_engine::sim::SimDisk;
use cowslip_engine::storage::Storage;
use cowslip_engine::{
    AppendError, ChangeSet, Commit, Draft, IndexIx, Journal, KeyChanges, Model, RecordNumber,
    ReferenceChanges, Root, Step, TableIx, TableLayout, Uuid,
};
use cowslip_ldap_server::journal::{
    self, BinaryLog, Codec, CodecError, JournalOptions, OpenError, OpenReport, SnapshotError, SnapshotReader,
    SnapshotWriter,
};

pub const FOLDER: &str = "/db";
pub const TABLE: TableIx = TableIx(0);

#[derive(Debug)]
pub struct Toy;

impl Model for Toy {
    type Id = RecordNumber;
    type Value = Vec<u8>;
    type Key = ();
    type Delta = ();
    type Meta = u32;
    type Note = ();

    fn layout(_: &u32) -> Vec<TableLayout> {
        vec![TableLayout::default()]
    }

    fn keys(_: &u32, _: TableIx, _: IndexIx, _: &Step<'_, Self>, _: &mut KeyChanges<()>) {}

    fn references(_: &u32, _: TableIx, _: &Step<'_, Self>, _: &mut ReferenceChanges<RecordNumber>) {}

    fn merge((): &mut (), (): ()) {}
}

/// Everything that a root holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    pub meta: u32,
    pub values: BTreeMap<u32, Vec<u8>>,
}

impl Content {
    pub fn of(root: &Root<Toy>) -> Self {
        let values = root.scan(TABLE).map(|(id, value)| (id.0, value.to_vec())).collect();
        Self { meta: **root.meta(), values }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ToyCodec;

fn word(input: &mut &[u8]) -> Result<u32, CodecError> {
    let (word, rest) = input.split_first_chunk().ok_or_else(|| CodecError::new("it ends too early"))?;
    *input = rest;
    Ok(u32::from_le_bytes(*word))
}

impl Codec<Toy> for ToyCodec {
    type State = Content;

    fn encode_commit(&self, commit: &Commit<Toy>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let meta = commit.root.as_ref().map_or(0, |root| **root.meta());
        out.extend(meta.to_le_bytes());
        for change in commit.changes.tables().iter().flat_map(|table| &table.records) {
            let length = change.new.as_ref().map_or(u32::MAX, |value| value.len() as u32);
            out.extend(change.id.0.to_le_bytes());
            out.extend(length.to_le_bytes());
            change.new.iter().for_each(|value| out.extend(&***value));
        }
        // So that some commit cannot be kept.
        if out.ends_with(UNWRITABLE) { Err(CodecError::new("nobody can write this")) } else { Ok(()) }
    }

    fn replay(&self, state: &mut Content, _commit: u64, mut record: &[u8]) -> Result<(), CodecError> {
        let meta = word(&mut record)?;
        if meta != 0 {
            state.meta = meta;
        }
        while !record.is_empty() {
            let (id, length) = (word(&mut record)?, word(&mut record)?);
            if length == u32::MAX {
                state.values.remove(&id).ok_or_else(|| CodecError::new("it removes what is not there"))?;
                continue;
            }
            let value = record.split_at_checked(length as usize);
            let (value, rest) = value.ok_or_else(|| CodecError::new("it ends too early"))?;
            state.values.insert(id, value.to_vec());
            record = rest;
        }
        Ok(())
    }

    fn write_snapshot(&self, root: &Root<Toy>, snapshot: &mut SnapshotWriter<'_>) -> std::io::Result<()> {
        snapshot.record(|out| out.extend(root.meta().to_le_bytes()))?;
        root.scan(TABLE).try_for_each(|(id, value)| {
            snapshot.record(|out| {
                out.extend(id.0.to_le_bytes());
                out.extend(&**value);
            })
        })
    }

    fn read_snapshot(&self, snapshot: &mut SnapshotReader<'_>) -> Result<Content, SnapshotError> {
        let mut content = Content::default();
        let mut first = snapshot.record()?.unwrap_or_default();
        content.meta = word(&mut first)?;
        while let Some(mut record) = snapshot.record()? {
            content.values.insert(word(&mut record)?, record.to_vec());
        }
        Ok(content)
    }

    fn finish(&self, state: Content) -> Result<Root<Toy>, CodecError> {
        let mut root = Root::new(Arc::new(state.meta));
        let mut draft = Draft::new(&root);
        for (id, value) in state.values {
            draft.put(TABLE, RecordNumber(id), Arc::new(value), ());
        }
        let changes = draft.into_changes();
        root.apply(&changes);
        Ok(root)
    }
}

/// A value that the codec refuses.
pub const UNWRITABLE: &[u8] = b"unwritable";

/// One change: a value for a record, or its removal.
pub type Change = (u32, Option<Vec<u8>>);

pub fn put(id: u32, bytes: usize) -> Change {
    (id, Some((0..bytes).map(|at| (id as usize + at) as u8).collect()))
}

/// Small files, so that there are many.
pub fn options() -> JournalOptions {
    let mut options = JournalOptions::default();
    options.file_bytes = 4096;
    options.record_bytes_max = 600;
    options.compaction_bytes_min = 8192;
    options.in_background = false;
    options
}

/// A database as the pipeline would run it.
#[derive(Debug)]
pub struct Db {
    pub journal: BinaryLog<Toy, ToyCodec>,
    pub root: Root<Toy>,
    pub report: OpenReport,
}

impl Db {
    pub fn create(storage: &dyn Storage) -> Result<Uuid, OpenError> {
        journal::create(storage, Path::new(FOLDER), &ToyCodec, &Root::new(Arc::new(1)))
    }

    pub fn open(disk: &SimDisk) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(disk.clone()))
    }

    pub fn open_on(storage: Arc<dyn Storage>) -> Result<Self, OpenError> {
        let opened = journal::open(storage, Path::new(FOLDER), ToyCodec, &options())?;
        assert_eq!(Journal::<Toy>::position(&opened.journal), opened.position);
        assert_eq!(opened.root.generation(), opened.journal.commits());
        Ok(Self { journal: opened.journal, root: opened.root, report: opened.report })
    }

    /// A new database on a new disk.
    pub fn new() -> (SimDisk, Self) {
        let disk = SimDisk::new();
        Self::create(&disk).expect("the disk works");
        let db = Self::open(&disk).expect("it was made just now");
        (disk, db)
    }

    pub fn content(&self) -> Content {
        Content::of(&self.root)
    }

    /// The commits that these changes make, one for each slice, and the root they lead to.
    pub fn prepare(&self, batch: &[Vec<Change>]) -> (Vec<Commit<Toy>>, Root<Toy>) {
        let mut root = self.root.clone();
        let commits = batch.iter().map(|changes| {
            let mut draft = Draft::new(&root);
            for (id, value) in changes {
                match value {
                    Some(value) => draft.put(TABLE, RecordNumber(*id), Arc::new(value.clone()), ()),
                    None => {
                        draft.remove(TABLE, &RecordNumber(*id));
                    }
                }
            }
            let changes = Arc::new(draft.into_changes());
            root.apply(&changes);
            root.set_generation(root.generation() + 1);
            Commit { changes, note: Arc::new(()), root: None }
        });
        let commits = commits.collect();
        (commits, root)
    }

    pub fn append(&mut self, commits: &[Commit<Toy>], root: Root<Toy>) -> Result<(), AppendError> {
        let positions = self.journal.append(commits)?;
        assert_eq!(positions.len(), commits.len());
        self.root = root;
        Ok(())
    }

    pub fn commit(&mut self, changes: Vec<Change>) -> Result<(), AppendError> {
        let (commits, root) = self.prepare(&[changes]);
        self.append(&commits, root)
    }

    pub fn commit_durably(&mut self, changes: Vec<Change>) -> Result<(), AppendError> {
        self.commit(changes)?;
        self.sync()
    }

    pub fn sync(&mut self) -> Result<(), AppendError> {
        Journal::<Toy>::make_durable(&mut self.journal).map_err(|source| AppendError::Unknown { source })
    }

    /// The commit of another meta, and the root it leads to.
    pub fn prepare_meta(&self, meta: u32) -> (Commit<Toy>, Root<Toy>) {
        let mut root = self.root.with_meta(Arc::new(meta));
        root.set_generation(self.root.generation() + 1);
        let changes = Arc::new(ChangeSet::empty());
        (Commit { changes, note: Arc::new(()), root: Some(Arc::new(root.clone())) }, root)
    }

    /// A whole compaction.
    pub fn compact(&mut self) -> Result<(), AppendError> {
        let begun = self.journal.begin_compaction(Arc::new(self.root.clone()));
        let compaction = begun.map_err(|source| AppendError::NotWritten { source })?;
        let compacted = BinaryLog::<Toy, ToyCodec>::run_compaction(compaction);
        self.journal.finish_compaction(compacted)
    }
}
