//! A small database on a simulated disk, and changes to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cowslip_engine::sim::SimDisk;
use cowslip_engine::{AppendError, ChangeSet, Commit, Draft, Journal, Root, Strength, TableIx, Uuid};
use cowslip_ovsdb::atom::{Atom, Real};
use cowslip_ovsdb::datum::{Datum, Member, MemberChange};
use cowslip_ovsdb::row::{Note, Ovsdb, Row, RowDelta};
use cowslip_ovsdb::schema::{Column, ColumnIx, Schema};
use cowslip_ovsdb_server::file::{self, FileJournal, OpenError, OpenOptions, Report};

pub(crate) const PATH: &str = "/db/conf.db";

const SCHEMA: &str = r#"{"name":"Farm","version":"1.0.0","tables":{
    "Cow":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "weight":{"type":"real"},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "notes":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "pair":{"type":{"key":"integer","min":1,"max":2}},
        "mood":{"type":"string","ephemeral":true},
        "meadows":{"type":{"key":{"type":"uuid","refTable":"Meadow","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "Meadow":{"isRoot":true,"columns":{
        "size":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;

/// The same with a column less, a column more, and a set where there was a scalar.
const NEXT_SCHEMA: &str = r#"{"name":"Farm","version":"2.0.0","tables":{
    "Cow":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "weight":{"type":{"key":"real","min":0,"max":"unlimited"}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "notes":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "pair":{"type":{"key":"integer","min":1,"max":2}},
        "horns":{"type":"integer"},
        "mood":{"type":"string","ephemeral":true},
        "meadows":{"type":{"key":{"type":"uuid","refTable":"Meadow","refType":"weak"},"min":0,"max":"unlimited"}}}},
    "Meadow":{"isRoot":true,"columns":{
        "size":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;

pub(crate) fn schema() -> Schema {
    Schema::parse(SCHEMA.as_bytes()).expect("the test's schema is good")
}

pub(crate) fn next_schema() -> Schema {
    Schema::parse(NEXT_SCHEMA.as_bytes()).expect("the test's schema is good")
}

/// One change. Rows and members are named by small numbers, so that changes meet.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert { cow: u8 },
    Rename { cow: u8, name: u8 },
    Weigh { cow: u8, weight: f64 },
    Tag { cow: u8, tags: Vec<u16>, present: bool },
    Note { cow: u8, key: u8, value: Option<u8> },
    Pair { cow: u8, pair: Vec<i64> },
    Mood { cow: u8, mood: u8 },
    Graze { cow: u8, meadow: u8, present: bool },
    Delete { cow: u8 },
    Fence { meadow: u8, size: Option<i64> },
    Plough { meadow: u8 },
}

fn cow_id(cow: u8) -> Uuid {
    Uuid::from_u128(0xc0 << 96 | u128::from(cow))
}

fn meadow_id(meadow: u8) -> Uuid {
    Uuid::from_u128(0xee << 96 | u128::from(meadow))
}

/// Makes changes on a draft as a transaction would.
pub(crate) struct Editor<'r> {
    draft: Draft<'r, Ovsdb>,
    schema: &'r Schema,
}

impl<'r> Editor<'r> {
    pub(crate) fn new(root: &'r Root<Ovsdb>) -> Self {
        Self { draft: Draft::new(root), schema: root.meta() }
    }

    /// None if the changes are not acceptable.
    pub(crate) fn finish(self) -> Option<ChangeSet<Ovsdb>> {
        self.draft.finish().ok()
    }

    pub(crate) fn make(&mut self, change: &Change) {
        match change {
            Change::Insert { cow } => {
                let name = Datum::One(Atom::string(format!("cow {cow}")));
                self.insert("Cow", cow_id(*cow), &[("name", name)]);
            }
            Change::Rename { cow, name } => {
                self.set("Cow", cow_id(*cow), "name", Datum::One(Atom::string(format!("cow {name}"))));
            }
            Change::Weigh { cow, weight } => {
                let weight = Real::new(*weight).expect("the test's weights are finite");
                self.set("Cow", cow_id(*cow), "weight", Datum::One(Atom::Real(weight)));
            }
            Change::Tag { cow, tags, present } => {
                let tags =
                    Datum::from_atoms(tags.iter().map(|tag| Atom::string(format!("t{tag}"))).collect());
                self.alter("Cow", cow_id(*cow), "tags", |old| {
                    if *present { old.changes_of_insert(&tags) } else { old.changes_of_delete(&tags) }
                });
            }
            Change::Note { cow, key, value } => {
                let key = Atom::string(format!("k{key}"));
                let new =
                    value.map_or(Member::Absent, |value| Member::Value(Atom::string(format!("v\n{value}"))));
                self.alter("Cow", cow_id(*cow), "notes", |old| one_change(old, &key, new.clone()));
            }
            Change::Pair { cow, pair } => {
                self.set(
                    "Cow",
                    cow_id(*cow),
                    "pair",
                    Datum::from_atoms(pair.iter().copied().map(Atom::Integer).collect()),
                );
            }
            Change::Mood { cow, mood } => {
                self.set("Cow", cow_id(*cow), "mood", Datum::One(Atom::string(format!("m{mood}"))));
            }
            Change::Graze { cow, meadow, present } => {
                let target = meadow_id(*meadow);
                let exists = self.draft.record(self.table("Meadow"), &target).is_some();
                let new = if *present && exists { Member::Element } else { Member::Absent };
                self.alter("Cow", cow_id(*cow), "meadows", |old| {
                    one_change(old, &Atom::Uuid(target), new.clone())
                });
            }
            Change::Delete { cow } => {
                self.draft.remove(self.table("Cow"), &cow_id(*cow));
            }
            Change::Fence { meadow, size } => {
                self.insert("Meadow", meadow_id(*meadow), &[]);
                let size = size.map_or(Datum::EMPTY, |size| Datum::One(Atom::Integer(size)));
                self.set("Meadow", meadow_id(*meadow), "size", size);
            }
            Change::Plough { meadow } => self.plough(meadow_id(*meadow)),
        }
    }

    /// Deletes a meadow and prunes what refers to it.
    fn plough(&mut self, meadow: Uuid) {
        let table = self.table("Meadow");
        if !self.draft.remove(table, &meadow) {
            return;
        }
        let referrers: Vec<_> = self.draft.referrers(table, &meadow).map(|(referrer, _)| referrer).collect();
        for referrer in referrers {
            assert_eq!(referrer.strength, Strength::Weak);
            self.alter("Cow", referrer.source, "meadows", |old| {
                one_change(old, &Atom::Uuid(meadow), Member::Absent)
            });
        }
    }

    fn table(&self, name: &str) -> TableIx {
        self.schema.table(name).expect("the test's schema has the table")
    }

    fn column(&self, table: &str, name: &str) -> ColumnIx {
        match self.schema.at(self.table(table)).column(name) {
            Some(Column::Data(column)) => column,
            _ => panic!("the test's schema has column {name}"),
        }
    }

    fn insert(&mut self, table: &str, id: Uuid, values: &[(&str, Datum)]) {
        let ix = self.table(table);
        if self.draft.record(ix, &id).is_some() || self.draft.was_deleted_here(ix, &id) {
            return;
        }
        let mut row = Row { version: Uuid::new_v4(), columns: self.schema.at(ix).defaults().into() };
        for (name, value) in values {
            row.columns[usize::from(self.column(table, name).0)] = value.clone();
        }
        self.draft.put(ix, id, Arc::new(row), RowDelta::default());
    }

    fn set(&mut self, table: &str, id: Uuid, column: &str, value: Datum) {
        let (ix, column) = (self.table(table), self.column(table, column));
        let Some(old) = self.draft.record(ix, &id) else { return };
        let mut row = Row { version: Uuid::new_v4(), columns: old.columns.clone() };
        let is_set = self.schema.at(ix).data(column).ty.is_set() && value.as_one().is_some();
        debug_assert!(is_set || !value.is_empty() || self.schema.at(ix).data(column).ty.min == 0);
        row.columns[usize::from(column.0)] = value;
        let mut delta = RowDelta::default();
        delta.touch(column);
        self.draft.put(ix, id, Arc::new(row), delta);
    }

    fn alter(&mut self, table: &str, id: Uuid, column: &str, changes: impl Fn(&Datum) -> Vec<MemberChange>) {
        let (ix, column) = (self.table(table), self.column(table, column));
        let Some(old) = self.draft.record(ix, &id) else { return };
        let changes = changes(old.data(column));
        let mut row = Row { version: Uuid::new_v4(), columns: old.columns.clone() };
        row.columns[usize::from(column.0)] = old.data(column).with(&changes);
        let mut delta = RowDelta::default();
        delta.change(column, changes);
        self.draft.put(ix, id, Arc::new(row), delta);
    }
}

fn one_change(old: &Datum, key: &Atom, new: Member) -> Vec<MemberChange> {
    let old = old.member(key);
    if old == new { Vec::new() } else { vec![MemberChange { key: key.clone(), old, new }] }
}

/// What a restart must bring back: everything but `_version` and ephemeral columns.
pub(crate) type Content = BTreeMap<(String, Uuid), Vec<(String, Datum)>>;

pub(crate) fn content(root: &Root<Ovsdb>) -> Content {
    let schema = root.meta();
    let mut content = Content::new();
    for (table, definition) in schema.numbered_tables() {
        for (id, row) in root.scan(table) {
            let columns = definition.data_columns().filter(|(_, column)| column.persistent);
            let columns = columns.map(|(ix, column)| (column.name.to_string(), row.data(ix).clone()));
            content.insert((definition.name.to_string(), id), columns.collect());
        }
    }
    content
}

/// A database as the pipeline would run it.
pub(crate) struct Db {
    pub(crate) journal: FileJournal,
    pub(crate) root: Root<Ovsdb>,
    pub(crate) report: Report,
}

impl Db {
    pub(crate) fn create(disk: &SimDisk) -> Result<(), OpenError> {
        file::create(disk, Path::new(PATH), &schema())
    }

    pub(crate) fn open(disk: &SimDisk) -> Result<Self, OpenError> {
        let opened = file::open(Arc::new(disk.clone()), Path::new(PATH), &OpenOptions::default())?;
        Ok(Self { journal: opened.journal, root: opened.root, report: opened.report })
    }

    /// The changes of a transaction, if it is acceptable.
    pub(crate) fn draft(&self, changes: &[Change]) -> Option<ChangeSet<Ovsdb>> {
        let mut editor = Editor::new(&self.root);
        changes.iter().for_each(|change| editor.make(change));
        editor.finish()
    }

    /// A transaction's commit, ready to be appended.
    pub(crate) fn prepare(&self, changes: &[Change]) -> Commit<Ovsdb> {
        let changes = self.draft(changes).expect("the test's changes are acceptable");
        commit(Arc::new(changes))
    }

    /// Appends a transaction and applies it; false if it was not acceptable.
    pub(crate) fn commit(&mut self, changes: &[Change]) -> Result<bool, AppendError> {
        let Some(changes) = self.draft(changes) else { return Ok(false) };
        let changes = Arc::new(changes);
        self.journal.append(&[commit(Arc::clone(&changes))])?;
        self.root.apply(&changes);
        Ok(true)
    }

    /// The content under the next schema.
    pub(crate) fn converted(&self) -> Root<Ovsdb> {
        file::convert(&self.root, Arc::new(next_schema())).expect("the content fits")
    }

    /// Changes the schema.
    pub(crate) fn convert(&mut self) -> Result<(), AppendError> {
        let root = self.converted();
        let commit = Commit {
            changes: Arc::new(ChangeSet::empty()),
            note: Arc::new(Note::default()),
            root: Some(Arc::new(root.clone())),
        };
        self.journal.append(&[commit])?;
        self.root = root;
        Ok(())
    }
}

fn commit(changes: Arc<ChangeSet<Ovsdb>>) -> Commit<Ovsdb> {
    let note = Arc::new(Note { comment: Some("a comment".to_owned()) });
    Commit { changes, note, root: None }
}
